#include "trainables/huge_heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/freed_memory.h"

namespace tune {
namespace {

constexpr std::size_t kHugePage = 2u << 20;
constexpr std::size_t kRoom = 128u << 20;  // address space: LibTorch takes 55 MB
constexpr int kUsualPadding = 128 << 10;   // glibc's
constexpr std::size_t kBlock = 100u << 10;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1

bool has_huge_pages_on_request() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  std::getline(file, modes);
  return modes.find("[madvise]") != std::string::npos;
}

char* end_of_heap() {
  return static_cast<char*>(::sbrk(0));
}

char* at_huge_page(char* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return reinterpret_cast<char*>((value + kHugePage - 1) / kHugePage * kHugePage);
}

}  // namespace

// malloc takes the room in one piece when it needs some, and keeps it: the setting for freed memory
// says so, too.
HugeHeap::HugeHeap() {
  if (!has_huge_pages_on_request() || ::mallopt(M_TOP_PAD, kRoom) == 0) return;
  keep_freed_memory();
  char* const before = end_of_heap();
  std::vector<std::unique_ptr<void, void (*)(void*)>> blocks;
  constexpr std::size_t kMostBlocks = 64;
  while (end_of_heap() == before && blocks.size() < kMostBlocks) {
    blocks.emplace_back(std::malloc(kBlock), std::free);
  }
  if (end_of_heap() < before + kRoom) return;  // another malloc
  begin_ = at_huge_page(before);
  bytes_ = static_cast<std::size_t>(end_of_heap() - begin_) / kHugePage * kHugePage;
  ::madvise(begin_, bytes_, MADV_HUGEPAGE);
}

HugeHeap::~HugeHeap() {
  ::mallopt(M_TOP_PAD, kUsualPadding);
  if (begin_ != nullptr) ::madvise(begin_, bytes_, MADV_NOHUGEPAGE);  // leaves those that are there
}

void make_heap_huge() {
  if (!has_huge_pages_on_request()) return;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (line.find("[heap]") == std::string::npos ||
        std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) {
      continue;
    }
    char* const first = at_huge_page(reinterpret_cast<char*>(begin));
    if (reinterpret_cast<std::uintptr_t>(first) >= end) continue;
    ::madvise(first, (end - reinterpret_cast<std::uintptr_t>(first)) / kHugePage * kHugePage,
              kCollapse);
  }
}

}  // namespace tune
