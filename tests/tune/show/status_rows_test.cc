// Which trials the table shows, and in which order.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string>

#include "tune/show/status_block.h"

namespace tune {
namespace {

// Trials of one status after another, with the last values of their metric.
struct Rows {
  RunOptions options;
  std::string trainable = "T";
  std::deque<Trial> trials;

  explicit Rows(Mode mode) { options.mode = mode; }
  void add(TrialStatus status, std::optional<double> metric = {}) {
    Trial& trial = trials.emplace_back();
    trial.number.value = static_cast<std::uint32_t>(trials.size() - 1);
    trial.status = status;
    trial.metric = metric;
  }
  // "3 1 0"
  std::string shown(std::size_t max_rows) const {
    ExperimentStatus status{.options = options, .trainable = trainable, .trials = trials};
    for (const Trial& trial : trials) ++status.counts[static_cast<std::size_t>(trial.status)];
    BlockMemory memory;
    std::string numbers;
    for (const Trial* trial : choose_rows(status, max_rows, memory)) {
      numbers += (numbers.empty() ? "" : " ") + std::to_string(trial->number.value);
    }
    return numbers;
  }
};

TEST_CASE("running trials are shown best first, those without a value behind them") {
  Rows rows(Mode::kMax);
  rows.add(TrialStatus::kTerminated, 0.9);
  rows.add(TrialStatus::kRunning, 0.5);
  rows.add(TrialStatus::kRunning);
  rows.add(TrialStatus::kRunning, 0.7);
  rows.add(TrialStatus::kRunning, std::nan(""));
  rows.add(TrialStatus::kRunning, 0.5);
  CHECK(rows.shown(20) == "3 1 5 2 4 0");
  rows.options.mode = Mode::kMin;
  CHECK(rows.shown(20) == "1 5 3 2 4 0");
}

TEST_CASE("where not all running trials have room, the best ones are shown") {
  Rows rows(Mode::kMin);
  for (int i = 0; i < 50; ++i) rows.add(TrialStatus::kRunning, 50 - i);
  for (int i = 0; i < 50; ++i) rows.add(TrialStatus::kPending);
  CHECK(rows.shown(6) == "49 48 47 50 51 52");  // three rows of each, by turns
}

TEST_CASE("values that are infinite have their place, and none harms the order") {
  Rows rows(Mode::kMin);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {infinity, 1.0, -infinity, 2.0}) rows.add(TrialStatus::kRunning, value);
  CHECK(rows.shown(20) == "2 1 3 0");
}

TEST_CASE("trials that users have paused are named, and that the sweep waits for them") {
  Rows rows(Mode::kMax);
  for (int i = 0; i < 7; ++i) rows.add(TrialStatus::kPaused);
  ExperimentStatus status{.options = rows.options,
                          .trainable = rows.trainable,
                          .experiment_id = "2f1e0",
                          .trials = rows.trials};
  const auto line = [&] {
    BlockMemory memory;
    for (const std::string& one : render_status(status, {}, memory, {})) {
      if (one.starts_with("Paused by users")) return one;
    }
    return std::string();
  };
  CHECK(line().empty());
  status.held = {TrialNumber{3}};
  CHECK(line() == "Paused by users: 2f1e0_00003");
  status.waits_for_user = true;
  CHECK(line() == "Paused by users: 2f1e0_00003: the sweep waits for tune unpause");
  status.held.clear();
  for (std::uint32_t i = 0; i < 7; ++i) status.held.push_back(TrialNumber{i});
  CHECK(line() ==
        "Paused by users: 2f1e0_00000, 2f1e0_00001, 2f1e0_00002, 2f1e0_00003, 2f1e0_00004 and 2 "
        "more: the sweep waits for tune unpause");
}

TEST_CASE("machines that have joined, and why trials wait, are told of while the sweep runs") {
  Rows rows(Mode::kMax);
  rows.add(TrialStatus::kRunning);
  ExperimentStatus status{
      .options = rows.options, .trainable = rows.trainable, .trials = rows.trials};
  const auto is_told = [&](const std::string& line) {
    BlockMemory memory;
    const auto lines = render_status(status, {}, memory, {});
    return std::ranges::find(lines, line) != lines.end();
  };
  status.joined = "Machines that have joined: 2 (n1 leaves first, in 3 h 10 min)";
  status.waits = "12 trials wait: 2 jobs PENDING (Priority) for 41 min";
  CHECK(is_told(status.joined));
  CHECK(is_told(status.waits));
  status.live = false;
  CHECK_FALSE(is_told(status.joined));
  CHECK_FALSE(is_told(status.waits));
}

TEST_CASE("a sweep without a metric shows running trials by number") {
  Rows rows(Mode::kMax);
  for (int i = 0; i < 4; ++i) rows.add(TrialStatus::kRunning);
  CHECK(rows.shown(3) == "0 1 2");
}

}  // namespace
}  // namespace tune
