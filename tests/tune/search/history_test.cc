#include "tune/search/history.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/refusal.h"
#include "core/wire.h"

namespace tune {
namespace {

constexpr double kWorst = -std::numeric_limits<double>::infinity();

TEST_CASE("an earlier trial has values at rungs, and how it ended") {
  History history(Mode::kMin);
  history.add_earlier({0.5}, {{1, 0.9}, {3, 0.5}, {4, 0.75}}, TrialEnd::kStopped);
  history.add_earlier({0.6}, {}, TrialEnd::kError);
  const KnownTrial& trial = history.trials()[0];
  CHECK_FALSE(trial.number.has_value());
  CHECK(trial.standing == Standing::kStopped);
  CHECK(trial.newest == ValueAt{4, -0.75});
  CHECK(trial.rungs == std::vector<ValueAt>{{1, -0.9}, {3, -0.5}});
  CHECK(history.trials()[1].standing == Standing::kFailed);
  CHECK_FALSE(history.trials()[1].newest.has_value());
}

TEST_CASE("of a trial the newest value counts, larger is better") {
  History history(Mode::kMin);
  history.add({0}, {0.5});
  CHECK(history.trials()[0].standing == Standing::kRunning);
  CHECK_FALSE(history.trials()[0].newest.has_value());
  history.result({0}, 1, 4.0);
  history.result({0}, 2, 3.0);
  CHECK(history.trials()[0].newest == ValueAt{2, -3});
  history.result({0}, 2, 9.0);  // known already
  CHECK(history.trials()[0].newest == ValueAt{2, -3});
}

TEST_CASE("what is not finite is the worst, in either mode") {
  for (const Mode mode : {Mode::kMax, Mode::kMin}) {
    for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      History history(mode);
      history.add({0}, {0.5});
      history.result({0}, 1, value);
      CHECK(history.trials()[0].newest == ValueAt{1, kWorst});
    }
  }
}

TEST_CASE("the first value at or after each power of 3 is kept") {
  History history;
  history.add({0}, {0.5});
  for (const std::uint64_t iteration : {1, 2, 4, 8, 9, 10, 100, 243}) {
    history.result({0}, iteration, static_cast<double>(iteration));
  }
  CHECK(history.trials()[0].rungs ==
        std::vector<ValueAt>{{1, 1}, {4, 4}, {9, 9}, {100, 100}, {243, 243}});
  CHECK(history.trials()[0].newest == ValueAt{243, 243});
  history.add({1}, {0.5});
  for (std::uint64_t iteration = 1; iteration <= 100'000; ++iteration) {
    history.result({1}, iteration, 1);
  }
  CHECK(history.trials()[1].rungs.size() == 11);  // 3^10 is 59,049
}

TEST_CASE("a trial stands as it was told last") {
  History history;
  history.add({0}, {0.5});
  const auto standing = [&] { return history.trials()[0].standing; };
  history.pause({0});
  CHECK(standing() == Standing::kPaused);
  history.go_on({0});
  CHECK(standing() == Standing::kRunning);
  history.end({0}, TrialEnd::kStopped);
  CHECK(standing() == Standing::kStopped);
  history.end({0}, TrialEnd::kCompleted);
  CHECK(standing() == Standing::kCompleted);
  history.end({0}, TrialEnd::kError);
  CHECK(standing() == Standing::kFailed);
  history.add({0}, {0.5});  // tried again on resume
  CHECK(standing() == Standing::kRunning);
  CHECK(history.trials().size() == 1);
}

TEST_CASE("trials that were never added are left alone") {
  History history;
  history.add({3}, {0.5});
  history.result({2}, 1, 1.0);
  history.result({7}, 1, 1.0);
  history.end({2}, TrialEnd::kError);
  history.pause({100});
  CHECK(history.trials().size() == 1);
  CHECK(history.find({2}) == nullptr);
  REQUIRE(history.find({3}) != nullptr);
  CHECK(history.find({3})->number == TrialNumber{3});
}

History told() {
  History history(Mode::kMin);
  history.add_earlier({0.1, kInactive}, {{9, 0.5}}, TrialEnd::kCompleted);
  for (std::uint32_t i = 0; i < 5; ++i) {
    history.add({2 * i}, {0.2 * i, 1.0 / 3});
    for (std::uint64_t step = 1; step <= i; ++step) history.result({2 * i}, step, 1.0 / (i + 1.0));
  }
  history.result({8}, 5, std::nan(""));
  history.end({2}, TrialEnd::kStopped);
  history.pause({4});
  return history;
}

TEST_CASE("saved and restored it is the same and goes on alike") {
  History before = told();
  History after(Mode::kMin);
  after.restore(before.save(), 2);
  CHECK(after.save() == before.save());
  CHECK(after.fingerprints() == before.fingerprints());
  CHECK(after.trials()[0].number == std::nullopt);
  CHECK(after.trials()[0].newest == ValueAt{9, -0.5});
  for (History* each : {&before, &after}) {
    each->result({6}, 27, 0.25);
    each->add({20}, {0.7, 0.7});
    each->end({0}, TrialEnd::kError);
  }
  CHECK(after.save() == before.save());
}

TEST_CASE("a copy knows nothing of what is told later") {
  History history = told();
  const History copy = history;
  const std::string before = copy.save();
  history.result({6}, 27, 0.25);
  history.add({20}, {0.7, 0.7});
  history.add_proposed({0.8, 0.8});
  CHECK(copy.save() == before);
  CHECK(history.trials()[history.trials().size() - 1].standing == Standing::kRunning);
  CHECK(history.trials()[history.trials().size() - 1].number == std::nullopt);
}

TEST_CASE("a state that is not its own is refused and leaves no trace") {
  History history = told();
  const std::string own = history.save();
  std::vector<std::string> foreign = {"", "\xc1", encoded(std::string("text")),
                                      encoded(std::vector<std::string>{"another", "state"}),
                                      own + '\0'};
  for (std::size_t size = 0; size < own.size(); ++size) foreign.push_back(own.substr(0, size));
  for (const std::string& state : foreign) {
    testing::refusal([&] { history.restore(state, 2); }, ErrorCode::kProtocol);
  }
  CHECK_HAS(testing::refusal([&] { history.restore(own, 3); }, ErrorCode::kProtocol),
            "2 coordinates");
  CHECK(history.save() == own);
}

}  // namespace
}  // namespace tune
