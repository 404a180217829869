// Memory for a vector that is read here and there. Of many pages, the processor knows the place of
// few: another is looked up with each read, before the memory itself can be asked for.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace tune {

// An allocator. Large memory lies in pages of 2 MiB where the system has them on request
// (transparent huge pages, "madvise" or "always"); elsewhere it is usual memory. So is small
// memory, as a page of its own would hold little else. Large memory is the system's own: a heap
// would hand out again what lies in small pages.
template <class T>
class HugePages {
 public:
  using value_type = T;

  HugePages() = default;
  template <class U>
  explicit HugePages(const HugePages<U>&) {}

  // std::bad_alloc when there is no memory.
  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kPage) return static_cast<T*>(::operator new(bytes, kAlignment));
    const std::size_t whole = whole_pages(bytes);
    void* const mapped =
        ::mmap(nullptr, whole + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    char* const begin = static_cast<char*>(mapped);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % kPage;
    char* const at = begin + before;
    if (before > 0) ::munmap(begin, before);
    if (before < kPage) ::munmap(at + whole, kPage - before);
    ::madvise(at, whole, MADV_HUGEPAGE);
    return reinterpret_cast<T*>(at);
  }
  void deallocate(T* at, std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kPage) return ::operator delete(at, kAlignment);
    ::munmap(at, whole_pages(bytes));
  }

  friend bool operator==(const HugePages&, const HugePages&) { return true; }

 private:
  static constexpr std::size_t kPage = 2u << 20;
  static constexpr std::align_val_t kAlignment{alignof(T)};
  static_assert(alignof(T) <= kPage);
  static std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
};

}  // namespace tune
