// The memory through which the ranks of one host speak: a memfd that all of them inherited. It
// needs no place in /dev/shm, whose size a container limits, and no name: it is gone with the last
// process that has it, however that ends.
//
// It holds one or more regions, one for each group. In a region each rank has a slot, which says
// whether it is there, and a bell, which the others ring when it sleeps; and each ordered pair of
// ranks has two rings, one for collectives and one for messages. Whatever the tensors' sizes that
// is at most 5 MiB for each rank, and with more than 65 ranks 80 KiB for each of the others; the
// system gives only what is used of it. Behind the regions lie the blocks of the ranks' heaps.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/process.h"
#include "trainables/shared_memory/heap.h"
#include "trainables/shared_memory/ring.h"

namespace tune::shared_memory {

// The backend that this rank would have its group use for tensors of the CPU; all must agree.
enum class Way : std::uint32_t { kNone, kShared, kSharedBesideGpu, kOther };

struct Slot;
class Segment;

class RankMemory {
 public:
  using Milliseconds = std::chrono::milliseconds;

  RankMemory(std::shared_ptr<Segment> segment, std::uint32_t region);
  ~RankMemory();  // unmaps; the others hear that this rank has left
  RankMemory(const RankMemory&) = delete;

  int rank() const;
  int size() const;
  const std::shared_ptr<Segment>& segment() const { return segment_; }

  // ---- Being there --------------------------------------------------------------------------
  void arrive(Way way);  // the last step of joining
  Way way_of(int rank) const;
  bool are_all_here() const;
  bool await_all_here(std::chrono::milliseconds longest);
  void leave();
  bool has_left(int rank) const;
  void say_alone(bool alone);
  bool is_any_alone() const;

  // ---- Rings; none with itself --------------------------------------------------------------
  RingSender& out(int rank) { return rings_[index(rank)].out; }
  RingReceiver& in(int rank) { return rings_[index(rank)].in; }
  RingSender& message_out(int rank) { return rings_[index(rank)].message_out; }
  RingReceiver& message_in(int rank) { return rings_[index(rank)].message_in; }
  std::size_t capacity() const { return capacity_; }  // of a ring for collectives
  CopyingChoice& copying() { return copying_; }       // into rings for collectives

  // ---- Bells --------------------------------------------------------------------------------
  void ring(int rank);  // after a change that this rank may sleep for
  void ring_own();      // other threads of this process
  void ring_all();
  std::uint64_t changes() const {
    return changes_.load(std::memory_order_relaxed);
  }  // by this rank, for which it rang
  // To sleep: prepare, look once more, sleep unless it has come, and wake in any case.
  std::uint32_t prepare_sleep();
  void sleep(std::uint32_t prepared, std::chrono::microseconds longest);
  void wake();

 private:
  friend class Segment;
  struct Pair {
    RingSender out, message_out;
    RingReceiver in, message_in;
  };
  Slot& slot(int rank) const;
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  void ring_bell(Slot& slot);

  std::shared_ptr<Segment> segment_;
  char* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;
  std::vector<Pair> rings_;
  CopyingChoice copying_;
  bool has_left_ = false;
  std::atomic<std::uint64_t> changes_ = 0;
  pid_t process_ = 0;
};

// The memfd itself, and the processes that share it.
class Segment {
 public:
  // `memory`: see memory_of_ranks() of core/platform/rank_place.h.
  // Throws Error (kProcess) when it cannot be mapped.
  Segment(FileDescriptor memory, int rank, int size);
  ~Segment();
  Segment(const Segment&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // A region that no group uses, ready for one. One rank of the group to be calls this and tells
  // the others.
  std::uint32_t take_region();

  // From here on has_ended() knows; all ranks are here.
  void watch(const RankMemory& first);
  std::vector<bool> ended() const;  // by rank: its process has ended
  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }

  Heap& heap() { return *heap_; }
  std::shared_ptr<char> allocate(std::size_t bytes);  // of this rank's heap; see Heap::allocate()

 private:
  friend class RankMemory;
  void grow(std::size_t bytes);
  void reset(std::uint32_t region);
  bool is_free(std::uint32_t region);

  FileDescriptor memory_;
  int rank_;
  int size_;
  char* header_ = nullptr;
  std::shared_ptr<Heap> heap_;  // lives as long as its blocks
  pid_t process_;
  std::vector<FileDescriptor> processes_;
  std::vector<pid_t> pids_;
};

}  // namespace tune::shared_memory
