// Memory of one rank that the other ranks of its host can map: what lies in it they need not be
// sent. A block is a part of the ranks' memfd (see rank_memory.h) that is never given twice, so
// that a rank which still has the mapping of a freed block cannot meet another tensor there.
//
// Its pages are taken when it is allocated, and given back when it is freed.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "core/platform/process.h"

namespace tune::shared_memory {

// Of bytes within a block; the same number for all ranks.
struct HeapPlace {
  std::uint64_t block = 0;  // 0: the bytes are in no block
  std::uint64_t block_bytes = 0;
  std::uint64_t offset = 0;  // of the bytes in the block
};

// Whether the limit for files (ulimit -f) lets one have so many bytes. One that grows beyond it
// ends the process by a signal.
bool file_may_have(std::uint64_t bytes);

class Heap : public std::enable_shared_from_this<Heap> {
 public:
  static constexpr std::uint64_t kStart = std::uint64_t{1} << 40;  // in the memfd: behind all rings

  explicit Heap(FileDescriptor memory);
  ~Heap();
  Heap(const Heap&) = delete;

  // Not zeroed by promise; aligned to pages. `end`, shared by all ranks, counts what they have
  // taken. Null when the system has no such memory left, or limits the size of files to less.
  // The block keeps the heap.
  std::shared_ptr<char> allocate(std::size_t bytes, std::atomic<std::uint64_t>& end);

  HeapPlace place_of(const char* data, std::size_t bytes) const;

  // Where the bytes of another rank are in this process, until a thousand other blocks were asked
  // for. Throws Error (kProcess) when they cannot be mapped.
  char* map(const HeapPlace& place);

 private:
  struct Block {
    std::uint64_t place = 0;
    std::size_t bytes = 0;
  };
  struct Mapping {
    std::uint64_t place = 0;
    char* at = nullptr;
    std::size_t bytes = 0;
  };
  void free(char* at);

  FileDescriptor memory_;
  const pid_t process_;
  mutable std::mutex mutex_;
  std::map<const char*, Block> own_;  // by their first byte
  std::list<Mapping> others_;         // the latest first
};

}  // namespace tune::shared_memory
