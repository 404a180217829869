// TrainerWorkers: what a TorchTrainer's workers do for it, here with functions in the place of an
// operator. They are forked from this process.
#include "trainables/torch/trainer_workers.h"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

// A test that waits for ever is ended by SIGALRM.
class Limit {
 public:
  Limit() { alarm(60); }
  ~Limit() { alarm(0); }
};

bool is_rank(int rank) {
  return std::getenv("RANK") == std::to_string(rank);
}

Value echo(const Value& command) {
  return command;
}

TrainerWorkers::Serve begin_echo() {
  return echo;
}

std::unique_ptr<TrainerWorkers> workers(int count,
                                        const std::function<TrainerWorkers::Serve()>& begin) {
  return std::make_unique<TrainerWorkers>(count, 1, false, begin);
}

TEST_CASE("workers answer commands, and rank 0's answer counts") {
  const Limit limit;
  const auto made = workers(2, [] {
    return [](const Value& command) -> Value { return command.integer() + (is_rank(0) ? 10 : 20); };
  });
  CHECK(made->call(Value(1)).integer() == 11);
  CHECK(made->call(Value(2)).integer() == 12);
  made->end();
  CHECK_HAS(refusal([&] { made->call(Value(3)); }, ErrorCode::kProcess), "have ended");
}

TEST_CASE("groups of workers that live beside each other end one by one, in any order") {
  const Limit limit;
  auto first = workers(2, begin_echo);
  auto second = workers(2, begin_echo);
  first->end();
  CHECK(second->call(Value(1)).integer() == 1);
  auto third = workers(1, begin_echo);
  second = workers(2, begin_echo);  // the former one is destroyed after this one is made
  third.reset();
  CHECK(second->call(Value(2)).integer() == 2);
}

TEST_CASE("a worker that ends without an answer is told with its rank and how it ended") {
  const Limit limit;
  for (const int code : {0, 3}) {
    CAPTURE(code);
    const std::string ended = " exited with code " + std::to_string(code) + " before it answered";
    for (const int rank : {0, 1}) {
      const std::string in_setup = refusal(
          [&] {
            workers(2, [&]() -> TrainerWorkers::Serve {
              if (is_rank(rank)) std::_Exit(code);
              return echo;
            });
          },
          ErrorCode::kProcess);
      CHECK_HAS(in_setup, "rank " + std::to_string(rank) + " (pid ");
      CHECK_HAS(in_setup, ended);
    }
    const auto made = workers(2, [&] {
      return [code](const Value& command) -> Value {
        if (is_rank(1)) std::_Exit(code);
        return command;
      };
    });
    CHECK_HAS(refusal([&] { made->call(Value(1)); }, ErrorCode::kProcess), ended);
    CHECK_HAS(refusal([&] { made->call(Value(1)); }, ErrorCode::kProcess), "make a new one");
  }
}

TEST_CASE("what a worker throws comes out with its rank, message and code") {
  const Limit limit;
  const auto thrown = [](ErrorCode code, const std::function<void()>& raise) {
    const auto made = workers(2, [&] {
      return [raise](const Value& command) -> Value {
        if (is_rank(1)) raise();
        return command;
      };
    });
    return refusal([&] { made->call(Value(1)); }, code);
  };
  for (const ErrorCode code : {ErrorCode::kBadInput, ErrorCode::kIo, ErrorCode::kTrialFailed}) {
    CHECK(thrown(code, [code] { throw Error(code, "its cause"); }) == "rank 1: its cause");
  }
  CHECK(thrown(ErrorCode::kProcess, [] { throw std::runtime_error("its cause"); }) ==
        "rank 1: its cause");
  CHECK_HAS(thrown(ErrorCode::kProcess, [] { throw 3; }), "rank 1: threw something that is no");
  // Longer than a message may be.
  const std::string long_one =
      thrown(ErrorCode::kProcess, [] { throw std::runtime_error(std::string(20 << 20, 'x')); });
  CHECK_HAS(long_one, "rank 1: xxx");
}

TEST_CASE("a worker that a peer's end made fail is not the cause") {
  const Limit limit;
  const auto made = workers(2, [] {
    return [](const Value&) -> Value {
      if (is_rank(0)) throw Error(ErrorCode::kProcess, "connection closed by peer");
      std::_Exit(5);
    };
  });
  CHECK_HAS(refusal([&] { made->call(Value(1)); }, ErrorCode::kProcess),
            "exited with code 5 before it answered");
}

TEST_CASE("the end of the process that looks after the workers is told") {
  const Limit limit;
  const auto kill_keeper = [] {
    if (is_rank(0)) kill(getppid(), SIGKILL);
    while (true) pause();
  };
  const std::string in_setup = refusal(
      [&] {
        workers(2, [&]() -> TrainerWorkers::Serve {
          kill_keeper();
          return echo;
        });
      },
      ErrorCode::kProcess);
  CHECK_HAS(in_setup, "looks after the workers was killed by signal 9 (SIGKILL)");
}

TEST_CASE("workers for which descriptors are lacking are refused with the numbers") {
  const Limit limit;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{.rlim_cur = 50, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const std::string said = refusal([] { workers(16, begin_echo); }, ErrorCode::kProcess);
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK_HAS(said, "starting 16 workers takes ");
  CHECK_HAS(said, " open files, the limit is 50: raise it (ulimit -n ");
}

}  // namespace
}  // namespace tune
