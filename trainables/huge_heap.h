// The heap of a process that loads much and then forks often.
#pragma once

#include <cstddef>

namespace tune {

// Memory allocated during its lifetime lies in pages of 2 MiB, where the system has them on request
// (transparent huge pages, "madvise"); that of later, here and in forked processes, does not, so
// that no short-lived one fills such a page for a few bytes. Elsewhere it does nothing.
//
// A fork copies the table of all pages: with LibTorch in the heap, 55 MB, 0.3 ms instead of 1.1.
// Loading it is no slower. Collapsing the pages afterwards would take 40 ms.
class HugeHeap {
 public:
  HugeHeap();
  ~HugeHeap();
  HugeHeap(const HugeHeap&) = delete;

 private:
  char* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

// The same for what a process has allocated before: for a process that may take that time.
void make_heap_huge();

}  // namespace tune
