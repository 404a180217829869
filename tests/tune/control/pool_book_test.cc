#include "tune/control/pool_book.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tune/drive/pool_script.h"
#include "tune/spec/experiment_identity.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using testing::kJobEnded;
using testing::kJobQueued;
using testing::kJobRunning;
using testing::PoolScript;

TEST_CASE("a host whose agent said hello is fine, though the engine names it later") {
  PoolBook book;
  const auto start_in_vain = [&](PoolBook::Number number) {
    book.change({number, kJobRunning, "7", "n1", ""}, 1s);
    book.change({number, kJobEnded, "7", "n1", "FAILED", AllocationFault::kStart}, 2s);
  };
  start_in_vain(1);
  start_in_vain(2);
  book.change({3, kJobQueued, "8", "", "PENDING"}, 3s);
  book.node_has_joined(3);
  book.change({3, kJobRunning, "8", "n1", ""}, 4s);
  start_in_vain(4);
  CHECK(book.excluded().empty());
  start_in_vain(5);
  // What is known already tells nothing new.
  book.change({3, kJobRunning, "8", "n1", "a new reason"}, 5s);
  start_in_vain(6);
  CHECK(book.excluded() == std::vector<std::string>{"n1"});
}

TEST_CASE("a host that only the end of its allocation names is fine if its agent said hello") {
  PoolBook book;
  for (const PoolBook::Number number : {1, 2, 3, 4}) {
    book.change({number, kJobQueued, "7", "", ""}, 1s);
    if (number == 2) book.node_has_joined(number);
    const auto fault = number == 2 ? AllocationFault::kNone : AllocationFault::kStart;
    book.change({number, kJobEnded, "7", "n1", "FAILED", fault}, 2s);
  }
  CHECK(book.excluded().empty());
}

TEST_CASE("the book comes back as it was saved") {
  PoolScript script({.max = 3});
  script.scene_.wanted = 4;
  script.look();
  script.start_all();
  script.join(1);
  script.book_.order({.max = 7, .paused = true, .cause = "why"});
  PackWriter out;
  script.book_.save(out);
  const std::string state = out.take();
  PackReader in(state);
  PoolBook other;
  other.restore(in);
  in.expect_end();
  PackWriter again;
  other.save(again);
  CHECK(again.take() == state);
  CHECK(other.max() == 7u);
  CHECK(other.why_paused() == "why");
  CHECK(other.next_number() == script.book_.next_number());
}

TEST_CASE("it is told why trials wait") {
  PoolBook book;
  CHECK(why_trials_wait(book, 12, 60s).empty());
  for (const PoolBook::Number number : {1, 2, 3}) {
    book.change(
        {number, kJobQueued, "j", "", number < 3 ? "PENDING (Priority)" : "PENDING (Resources)"},
        number * 60s);
  }
  CHECK(
      why_trials_wait(book, 12, 41min + 60s) ==
      "12 trials wait: 2 jobs PENDING (Priority) for 41 min, 1 job PENDING (Resources) for 39 min");
  CHECK(why_trials_wait(book, 0, 60s).empty());
  book.node_has_joined(3);
  CHECK(why_trials_wait(book, 1, 2min) == "1 trial waits: 2 jobs PENDING (Priority) for 60 s");
}

TEST_CASE("names of allocations are told from others") {
  ExperimentSpec spec;
  spec.store_prefix = "tune:s:2f1e0";
  CHECK(allocation_prefix_of(spec) == "tune-2f1e0-");
  const auto number_of = [](const char* name) { return allocation_number(name, "tune-2f1e0-"); };
  CHECK(number_of("tune-2f1e0-17") == 17);
  CHECK(number_of("gpu-17") == 0);
  CHECK(number_of("tune-2f1e1-17") == 0);
  CHECK(number_of("tune-2f1e0-x-17") == 0);
  CHECK(number_of("tune-2f1e0-017") == 0);
  CHECK(number_of("tune-2f1e0-0") == 0);
  CHECK(number_of("tune-2f1e0--1") == 0);
  CHECK(number_of("tune-2f1e0-") == 0);
  CHECK(number_of("tune-2f1e0-1x") == 0);
  CHECK(number_of("") == 0);
}

}  // namespace
}  // namespace tune
