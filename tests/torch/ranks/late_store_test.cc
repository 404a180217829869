// The store of ranks that met in shared memory.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "ranks.h"
#include "torch/torch_doctest.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using testing::run_group;
using testing::values_of;

std::vector<std::uint8_t> bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

TEST_CASE("rank 0 serves the store as soon as another rank asks, while it computes") {
  void* shared = ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto& is_answered = *new (shared) std::atomic<bool>(false);
  const auto ends = run_group(2, [&](ProcessGroup& group) {
    if (group.rank() == 1) {
      const auto store = group.c10d()->getStore();
      store->set("word", bytes("here"));
      const bool is_there = store->get("word") == bytes("here") && store->add("count", 41) == 41;
      is_answered = is_there;
    }
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!is_answered && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(1ms);  // rank 0 has not asked the store for anything
    }
    const bool was_answered = is_answered;
    group.barrier();
    const auto store = group.c10d()->getStore();
    const bool is_same = store->get("word") == bytes("here") && store->add("count", 0) == 41;
    group.barrier();
    return std::vector<double>{was_answered ? 1.0 : 0.0, is_same ? 1.0 : 0.0};
  });
  CHECK(values_of(ends) == std::vector<double>{1, 1});
  CHECK(testing::are_equal(ends));
  ::munmap(shared, sizeof(std::atomic<bool>));
}

}  // namespace
}  // namespace tune
