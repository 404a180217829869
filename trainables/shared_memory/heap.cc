#include "trainables/shared_memory/heap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"

namespace tune::shared_memory {
namespace {

constexpr std::size_t kMostMappings = 1000;

std::size_t whole_pages(std::size_t bytes) {
  constexpr std::size_t kSize = 4096;
  return (std::max<std::size_t>(bytes, 1) + kSize - 1) / kSize * kSize;
}

char* map_file(int memory, std::uint64_t place, std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory,
                    static_cast<off_t>(place));
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

}  // namespace

bool file_may_have(std::uint64_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

Heap::Heap(FileDescriptor memory) : memory_(std::move(memory)), process_(::getpid()) {}

Heap::~Heap() {
  for (const Mapping& one : others_) ::munmap(one.at, one.bytes);
}

std::shared_ptr<char> Heap::allocate(std::size_t bytes, std::atomic<std::uint64_t>& end) {
  const std::size_t whole = whole_pages(bytes);
  std::uint64_t start = 0;
  end.compare_exchange_strong(start, kStart);
  const std::uint64_t place = end.fetch_add(whole);
  const auto begin = static_cast<off_t>(place), size = static_cast<off_t>(whole);
  // Taking the pages now makes a lack of memory an answer instead of a signal later.
  if (!file_may_have(place + whole) || ::fallocate(memory_.get(), 0, begin, size) != 0)
    return nullptr;
  char* at = map_file(memory_.get(), place, whole);
  if (at == nullptr) {
    ::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, size);
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  own_[at] = {place, whole};
  return {at, [heap = shared_from_this()](char* block) { heap->free(block); }};
}

// A process that this rank has forked frees its copy of the mapping alone.
void Heap::free(char* at) {
  const std::lock_guard lock(mutex_);
  const auto found = own_.find(at);
  ::munmap(at, found->second.bytes);
  if (::getpid() == process_) {
    ::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(found->second.place), static_cast<off_t>(found->second.bytes));
  }
  own_.erase(found);
}

HeapPlace Heap::place_of(const char* data, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto next = own_.upper_bound(data);
  if (next == own_.begin()) return {};
  const auto& [at, block] = *--next;
  const auto offset = static_cast<std::size_t>(data - at);
  if (offset + bytes > block.bytes) return {};
  return {block.place, block.bytes, offset};
}

char* Heap::map(const HeapPlace& place) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(others_, place.block, &Mapping::place);
  if (known != others_.end()) {
    others_.splice(others_.begin(), others_, known);
    return others_.front().at + place.offset;
  }
  char* at = map_file(memory_.get(), place.block, place.block_bytes);
  if (at == nullptr) {
    throw Error(ErrorCode::kProcess, "memory of another rank, " +
                                         std::to_string(place.block_bytes) +
                                         " bytes: mapping it: " + std::strerror(errno));
  }
  ::madvise(at, place.block_bytes, MADV_DONTFORK);
  others_.push_front({place.block, at, place.block_bytes});
  if (others_.size() > kMostMappings) {
    ::munmap(others_.back().at, others_.back().bytes);
    others_.pop_back();
  }
  return at + place.offset;
}

}  // namespace tune::shared_memory
