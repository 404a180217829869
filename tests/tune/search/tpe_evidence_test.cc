// The trials that tpe takes for good, beside Optuna's (by tests/data/search/make_traces.py).
#include "tune/search/tpe/evidence.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tune/search/recorded.h"

namespace tune::search::tpe {
namespace {

const std::string kSplits = TUNE_SOURCE_DIR "/tests/data/search/optuna_splits.txt";

std::vector<std::size_t> numbers_of(const Line& line) {
  std::vector<std::size_t> found;
  for (const double number : line.numbers()) found.push_back(static_cast<std::size_t>(number));
  return found;
}

void add(History& history, std::uint32_t trial, std::uint64_t iteration, double value) {
  history.add({trial}, {0.001 * trial});
  if (iteration > 0) history.result({trial}, iteration, value);
}

TEST_CASE("the good trials are Optuna's") {
  History history(Mode::kMin);
  std::uint32_t next = 0;
  int splits = 0;
  for (const Line& line : recorded_lines(kSplits)) {
    if (line.kind() == "split") {
      history = History(Mode::kMin);
      next = 0;
      ++splits;
    } else if (line.kind() == "trial") {
      const std::vector<double> numbers = line.numbers(2);
      add(history, next, static_cast<std::uint64_t>(numbers[0]), numbers[1]);
      // A trial that Optuna prunes would be kept back by a scheduler here, and compared within a
      // rung; one that failed is compared as it compares pruned ones.
      if (line.words[1] == "completed") history.end({next}, TrialEnd::kCompleted);
      if (line.words[1] == "pruned") history.end({next}, TrialEnd::kError);
      ++next;
    } else {
      CAPTURE(splits);
      CHECK(evidence(history, 1, 1).good == numbers_of(line));
    }
  }
  CHECK(splits == 5);
}

TEST_CASE("a tenth of the results is good, rounded up, and 25 at most") {
  CHECK(good_of(0) == 0);
  CHECK(good_of(1) == 1);
  CHECK(good_of(10) == 1);
  CHECK(good_of(11) == 2);
  CHECK(good_of(250) == 25);
  CHECK(good_of(5000) == 25);
}

TEST_CASE("trials that run are among the others, also those that have no number yet") {
  History history;
  for (std::uint32_t i = 0; i < 12; ++i) {
    add(history, i, 1, i);
    if (i < 10) history.end({i}, TrialEnd::kCompleted);
  }
  const Evidence found = evidence(history, 1, 1);
  CHECK(found.good == std::vector<std::size_t>{9});
  CHECK(found.other_points.size() == 11);
  CHECK(found.results_known == 10);
  CHECK(found.pending_known == 2);
  CHECK(found.stopped_early == false);
}

TEST_CASE("under a scheduler that stops, values at the highest full rung count") {
  // 20 trials reach one step, 12 of them three, 4 nine: three steps are the highest rung with 10.
  History history;
  for (std::uint32_t i = 0; i < 20; ++i) {
    add(history, i, 1, 100.0 + i);
    if (i >= 8) history.result({i}, 3, 50.0 - i);
    if (i >= 16) history.result({i}, 9, 1000.0);
    if (i < 19) history.end({i}, TrialEnd::kStopped);
  }
  const Evidence found = evidence(history, 1, 1);
  CHECK(found.stopped_early);
  CHECK(found.results_known == 12);
  // Of 12 two are good: trials 8 and 9, worth 42 and 41 after three steps.
  CHECK(found.good == std::vector<std::size_t>{8, 9});
  CHECK(found.other_points.size() == 10);
  CHECK(found.pending_known == 0);  // trial 19 runs, and has a value there
}

TEST_CASE("a trial that passed a rung between two reports counts with the first one after it") {
  History history;
  for (std::uint32_t i = 0; i < 10; ++i) {
    add(history, i, i == 4 ? 5 : 3, i == 4 ? 100 : i);
    history.pause({i});
  }
  CHECK(evidence(history, 1, 1).good == std::vector<std::size_t>{4});
}

TEST_CASE("without a full rung the furthest are the best") {
  History history;
  for (std::uint32_t i = 0; i < 9; ++i) {
    add(history, i, i == 5 ? 9 : 1, i == 5 ? -100 : i);
    history.end({i}, TrialEnd::kStopped);
  }
  CHECK(evidence(history, 1, 1).good == std::vector<std::size_t>{5});
}

TEST_CASE("failed trials and values that are not numbers are the worst") {
  History history;
  const double nan = std::nan("");
  for (std::uint32_t i = 0; i < 10; ++i) add(history, i, i == 3 ? 0 : 1, i == 7 ? -5 : nan);
  for (std::uint32_t i = 0; i < 10; ++i) {
    history.end({i}, i == 3 ? TrialEnd::kError : TrialEnd::kCompleted);
  }
  const Evidence found = evidence(history, 1, 1);
  CHECK(found.good == std::vector<std::size_t>{7});
  CHECK(found.other_points.size() == 9);
  CHECK(found.trouble == "");
}

TEST_CASE("results that are all alike teach nothing") {
  History all_failed;
  History constant;
  for (std::uint32_t i = 0; i < 10; ++i) {
    add(all_failed, i, 0, 0);
    all_failed.end({i}, TrialEnd::kError);
    add(constant, i, 1, 0.5);
    constant.end({i}, TrialEnd::kCompleted);
  }
  CHECK(evidence(all_failed, 1, 1).trouble == "all results are alike");
  CHECK(evidence(constant, 1, 1).trouble == "all results are alike");
  CHECK(evidence(History(), 1, 1).results_known == 0);
}

}  // namespace
}  // namespace tune::search::tpe
