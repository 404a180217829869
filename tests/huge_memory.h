// What tests ask about memory in pages of 2 MiB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>

namespace tune::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kOwnMalloc = true;
#else
inline constexpr bool kOwnMalloc = false;
#endif

// Of this process, in huge pages.
inline std::size_t huge_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  std::size_t kilobytes = 0;
  while (file >> word) {
    if (word == "AnonHugePages:") file >> kilobytes;
  }
  return kilobytes << 10;
}

// Whether memory lies in huge pages where it is asked for, and nowhere else.
inline bool has_huge_pages_on_request() {
  constexpr std::size_t kBytes = 32u << 20;
  void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::madvise(at, kBytes, MADV_HUGEPAGE);
  const std::size_t before = huge_bytes();
  std::memset(at, 1, kBytes);
  const bool has = huge_bytes() >= before + kBytes / 2;
  ::munmap(at, kBytes);
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  std::getline(file, modes);
  return has && modes.find("[madvise]") != std::string::npos;
}

}  // namespace tune::testing
