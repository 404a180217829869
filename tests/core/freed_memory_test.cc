#include "core/freed_memory.h"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "skip.h"

namespace tune {
namespace {

// The page faults of a step that fills ten tensors of 8 MiB and frees them.
long faults_of_a_step() {
  constexpr std::size_t kBytes = 8u << 20;
  const auto faults = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  const long before = faults();
  std::vector<void*> tensors;
  for (int i = 0; i < 10; ++i) {
    tensors.push_back(std::malloc(kBytes));
    std::memset(tensors.back(), i, kBytes);
  }
  for (void* tensor : tensors) std::free(tensor);
  return faults() - before;
}

// A sanitizer's own malloc knows no such option.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnMalloc = true;
#else
constexpr bool kOwnMalloc = false;
#endif

TEST_CASE("the next step finds the memory that the last one freed") {
  if (kOwnMalloc) return testing::skip("the malloc of a sanitizer");
  const pid_t child = ::fork();
  if (child == 0) {
    keep_freed_memory();
    const long first = faults_of_a_step();
    const long second = faults_of_a_step();
    ::_exit(first > 1000 && second < first / 10 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

// The settings that a malloc took which takes no more than these.
std::vector<int> values_set;
int most_taken = 0;

int limited_mallopt(int, int value) {
  if (value > most_taken) return 0;
  values_set.push_back(value);
  return 1;
}

TEST_CASE(
    "of a malloc that takes less, less is asked; of one that takes nothing, nothing is left") {
  for (const auto& [most, set] :
       {std::pair(1 << 30, std::vector{1 << 30, -1}),
        std::pair(32 << 20, std::vector{32 << 20, -1}), std::pair(0, std::vector<int>{})}) {
    most_taken = most;
    values_set.clear();
    keep_freed_memory(limited_mallopt);
    CHECK(values_set == set);
  }
}

}  // namespace
}  // namespace tune
