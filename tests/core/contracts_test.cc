#include <doctest/doctest.h>

#include <set>

#include "core/agent_contract.h"
#include "core/filled.h"
#include "core/journal_format.h"
#include "core/random.h"
#include "core/refusal.h"
#include "core/trial.h"
#include "core/worker_contract.h"

namespace tune {
namespace {

using testing::filled;

// Calls `check` with a filled variant of each of its messages.
template <class Variant, std::size_t... I, class Check>
void each(std::index_sequence<I...>, Check&& check) {
  (check(Variant(std::in_place_index<I>, filled<std::variant_alternative_t<I, Variant>>())), ...);
}

template <class Check>
void every_message(Check&& check) {
  const auto all = [&]<class Variant>(const Variant*) {
    each<Variant>(std::make_index_sequence<std::variant_size_v<Variant>>(), check);
  };
  all(static_cast<const Command*>(nullptr));
  all(static_cast<const AgentEvent*>(nullptr));
  all(static_cast<const WorkerCommand*>(nullptr));
  all(static_cast<const WorkerEvent*>(nullptr));
  check(filled<Trial>());
  check(Trial());
  check(Launch());
  check(Reported());
}

TEST_CASE("every message comes back as it was sent") {
  int messages = 0;
  every_message([&]<class T>(const T& message) {
    ++messages;
    const std::string bytes = encoded(message);
    CHECK(encoded(decoded<T>(bytes)) == bytes);
  });
  CHECK(messages == 37);
}

TEST_CASE("the fields of a message arrive each in its place") {
  const Reported sent = filled<Reported>();
  const auto got = std::get<Reported>(decoded<AgentEvent>(encoded(AgentEvent(sent))));
  CHECK(got.trial == sent.trial);
  CHECK(got.attempt == sent.attempt);
  CHECK(got.iteration == sent.iteration);
  CHECK(got.time_total == sent.time_total);
  CHECK(got.timesteps_total == sent.timesteps_total);
  CHECK(got.waiting);
  CHECK(got.result == sent.result);
  const SetupExperiment setup = filled<SetupExperiment>();
  const auto back = decoded<SetupExperiment>(encoded(setup));
  CHECK(back.stop == setup.stop);
  CHECK(back.environment == setup.environment);
  CHECK(back.checkpoint == setup.checkpoint);
  CHECK(back.keep == setup.keep);
}

TEST_CASE("a message cut short at any byte is refused") {
  every_message([]<class T>(const T& message) {
    const std::string bytes = encoded(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      testing::refusal([&] { decoded<T>(bytes.substr(0, size)); }, ErrorCode::kProtocol);
    }
    testing::refusal([&] { decoded<T>(bytes + '\0'); }, ErrorCode::kProtocol);
  });
}

TEST_CASE("a message with any byte changed decodes or is refused, nothing else") {
  int refused = 0;
  int decoded_count = 0;
  every_message([&]<class T>(const T& message) {
    const std::string bytes = encoded(message);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const int change : {0x01, 0x40, 0x80, 0xff}) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ change);
        try {
          (void)encoded(decoded<T>(damaged));
          ++decoded_count;
        } catch (const Error& error) {
          ++refused;
          REQUIRE(error.code() == ErrorCode::kProtocol);
        }
      }
    }
  });
  CHECK(refused > 1000);        // types and lengths
  CHECK(decoded_count > 1000);  // plain numbers and texts
}

TEST_CASE("noise is refused or decodes, nothing else") {
  RandomStream random(7, "noise", 0);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(static_cast<std::size_t>(random.integer(0, 40)), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next());
    try {
      (void)decoded<AgentEvent>(bytes);
      (void)decoded<StartWorker>(bytes);
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::kProtocol);
    }
  }
}

TEST_CASE("an unknown message, enumerator, count of fields or number too large is refused") {
  const auto refused = [](auto write, auto type) {
    PackWriter out;
    write(out);
    return testing::refusal([&] { decoded<decltype(type)>(out.bytes()); }, ErrorCode::kProtocol);
  };
  CHECK_HAS(refused([](PackWriter& out) { out.array(2), out.integer(8), out.array(0); }, Command()),
            "message type 8");
  CHECK_HAS(refused(
                [](PackWriter& out) {
                  out.array(3);
                  out.null();
                  out.null();
                  out.null();
                },
                Command()),
            "message 3");
  CHECK_HAS(refused([](PackWriter& out) { out.integer(8); }, Outcome()), "enumerator 8");
  CHECK_HAS(refused([](PackWriter& out) { out.array(1), out.integer(1); }, KillAttempt()),
            "number of fields 1");
  CHECK_HAS(refused([](PackWriter& out) { out.integer(1LL << 32); }, TrialNumber()), "4294967296");
  CHECK_HAS(refused([](PackWriter& out) { out.integer(-1); }, TrialNumber()), "negative");
  CHECK_HAS(refused([](PackWriter& out) { out.integer(1LL << 31); }, std::int32_t()), "2147483648");
  CHECK_HAS(refused([](PackWriter& out) { out.text("x"); }, false), "a bool");
}

// One message in three builds: as it began, with what was added since, and with more than this
// build knows.
struct Began {
  std::uint32_t first = 1;
  std::string second = "x";
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.first, s.second);
  }
};
struct Grown {
  std::uint32_t first = 1;
  std::string second = "x";
  double third = 0.5;
  std::optional<std::uint64_t> fourth = 7;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.first, s.second);
    f.added(s.third);
    f.added(s.fourth);
  }
};

TEST_CASE("fields that were added are skipped where they are not known, and may be missing") {
  const auto grown = decoded<std::vector<Grown>>(encoded(std::vector<Began>{{5, "five"}, {6, ""}}));
  REQUIRE(grown.size() == 2);
  CHECK(grown[0].first == 5);
  CHECK(grown[0].second == "five");
  CHECK(grown[0].third == 0.5);
  CHECK(grown[0].fourth == 7);
  CHECK(grown[1].first == 6);

  const std::vector<Grown> later = {{5, "five", 2.5, {}}, {6, "", 3.5, 9}};
  const auto began = decoded<std::vector<Began>>(encoded(later));
  REQUIRE(began.size() == 2);
  CHECK(began[0].second == "five");
  CHECK(began[1].first == 6);
  const auto same = decoded<std::vector<Grown>>(encoded(later));
  CHECK_FALSE(same.at(0).fourth);
  CHECK(same.at(1).third == 3.5);
  CHECK(same.at(1).fourth == 9);

  PackWriter half;  // of what was added, the first half
  half.array(3), half.integer(5), half.text("five"), half.number(1.5);
  CHECK(decoded<Grown>(half.bytes()).third == 1.5);
  CHECK(decoded<Grown>(half.bytes()).fourth == 7);
  PackWriter less;
  less.array(1), less.integer(5);
  CHECK_HAS(testing::refusal([&] { decoded<Grown>(less.bytes()); }, ErrorCode::kProtocol),
            "number of fields 1 does not fit 2");
}

TEST_CASE("a worker of another version of its contract is told so, whatever else has changed") {
  PackWriter other;  // StartWorker of a version to come
  other.array(2), other.integer(0), other.array(20), other.integer(kWorkerContract + 1);
  for (int i = 1; i < 20; ++i) other.boolean(true);
  const std::string told =
      testing::refusal([&] { decoded<WorkerCommand>(other.bytes()); }, ErrorCode::kProtocol);
  CHECK_HAS(told, "speaks version " + std::to_string(kWorkerContract + 1));
  CHECK_HAS(told, "this program version " + std::to_string(kWorkerContract));
  CHECK_HAS(told, "build both");
}

TEST_CASE("a zygote of another version of the worker contract is refused, naming both") {
  ZygoteReady ready;
  ready.contract = kWorkerContract;
  CHECK(understood(ready).error.empty());
  ready.contract = kWorkerContract + 1;
  CHECK_HAS(understood(ready).error, "speaks version " + std::to_string(kWorkerContract + 1));
  CHECK_HAS(understood(ready).error, "this tune version " + std::to_string(kWorkerContract));
  ready.error = "no such file";  // tells more
  CHECK(understood(ready).error == "no such file");
}

TEST_CASE("a frame above the limit is refused before it is read") {
  const std::string huge(kMaxFrameBytes + 1, '\0');
  CHECK_HAS(testing::refusal([&] { decoded<Warning>(huge); }, ErrorCode::kProtocol), "16777217");
}

TEST_CASE("only exceptions, signals, exits and hanging count as failures") {
  std::set<std::string> names;
  std::set<std::string> failures;
  for (int i = 0; i <= static_cast<int>(Outcome::kLast); ++i) {
    const auto outcome = static_cast<Outcome>(i);
    names.insert(outcome_name(outcome));
    if (is_failure(outcome)) failures.insert(outcome_name(outcome));
  }
  CHECK(names.size() == 8);
  CHECK(failures == std::set<std::string>{"exception", "exit", "hung", "signal"});
}

TEST_CASE("an attempt's key holds trial and attempt") {
  CHECK(attempt_key(TrialNumber{2}, AttemptNumber{3}) == (2ULL << 32 | 3));
  CHECK(attempt_key(TrialNumber{UINT32_MAX}, AttemptNumber{UINT32_MAX}) == UINT64_MAX);
}

}  // namespace
}  // namespace tune
