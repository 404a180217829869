#include "trainables/huge_heap.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

#include "huge_memory.h"
#include "skip.h"

namespace tune {
namespace {

constexpr std::size_t kMegabyte = 1u << 20;

void allocate(std::size_t bytes) {
  constexpr std::size_t kBlock = 64u << 10;
  for (std::size_t done = 0; done < bytes; done += kBlock) {
    void* block = std::malloc(kBlock);
    std::memset(block, 1, kBlock);
  }
}

int code_of(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_CASE("what is allocated while it lasts lies in huge pages, and nothing later") {
  if (testing::kOwnMalloc) return testing::skip("the malloc of a sanitizer");
  if (!testing::has_huge_pages_on_request()) return testing::skip("no huge pages on request here");
  CHECK(code_of([] {
          const std::size_t before = testing::huge_bytes();
          {
            const HugeHeap heap;
            allocate(40 * kMegabyte);
          }
          const std::size_t during = testing::huge_bytes();
          allocate(16 * kMegabyte);
          // The last page that was begun may be filled.
          return during >= before + 32 * kMegabyte && testing::huge_bytes() <= during;
        }) == 0);
}

TEST_CASE("a forked process that writes there changes its own memory alone") {
  CHECK(code_of([] {
          std::optional<HugeHeap> heap(std::in_place);
          std::string text(3 * kMegabyte, 'a');
          heap.reset();
          const bool is_child_right = code_of([&] {
                                        text[kMegabyte] = 'b';
                                        return text[0] == 'a' && text[kMegabyte] == 'b';
                                      }) == 0;
          return is_child_right && text[kMegabyte] == 'a';
        }) == 0);
}

TEST_CASE("a heap becomes huge later, and keeps what is in it") {
  if (testing::kOwnMalloc) return testing::skip("the malloc of a sanitizer");
  if (!testing::has_huge_pages_on_request()) return testing::skip("no huge pages on request here");
  CHECK(code_of([] {
          allocate(16 * kMegabyte);
          char* last = static_cast<char*>(std::malloc(100));
          std::strcpy(last, "still here");
          const std::size_t before = testing::huge_bytes();
          make_heap_huge();
          const std::size_t now = testing::huge_bytes();
          // Before Linux 6.1 it does nothing.
          return (now == before || now >= before + 8 * kMegabyte) &&
                 std::strcmp(last, "still here") == 0;
        }) == 0);
}

}  // namespace
}  // namespace tune
