#include "tune/control/trial_book.h"

#include <doctest/doctest.h>

#include "tune/control/heard.h"

namespace tune {
namespace {

using testing::Heard;
using testing::result_of;
using Numbers = TrialBook::Numbers;

Packed no_config() {
  return pack(Config{});
}

CheckpointSaved saved_at(const Trial& trial, std::uint64_t iteration) {
  CheckpointSaved saved;
  saved.trial = trial.number;
  saved.iteration = iteration;
  return saved;
}

// One result and its checkpoint.
void do_step(TrialBook& book, Trial& trial, std::uint64_t iteration, double metric) {
  book.take_result(trial, result_of(trial, iteration, metric));
  book.take_checkpoint(trial, saved_at(trial, iteration));
}

std::vector<std::uint64_t> iterations(const Trial& trial) {
  std::vector<std::uint64_t> all;
  for (const CheckpointRecord& one : trial.checkpoints) all.push_back(one.iteration);
  return all;
}

TEST_CASE("a trial is in the set and the count of its status, through its whole life") {
  Heard heard;
  TrialBook book(heard.out, {"m", Mode::kMax, 0}, 1);
  Trial& trial = book.add(no_config(), {});
  book.add(no_config(), {});
  CHECK(book.waiting() == Numbers{{0}, {1}});
  book.begin_attempt(trial, {AgentNumber{3}, {}});
  CHECK(book.waiting() == Numbers{{1}});
  CHECK(book.running() == Numbers{{0}});
  CHECK(trial.attempt.value == 1);

  trial.verdict = StopKind::kPause;
  book.pause(trial);
  CHECK(book.paused() == Numbers{{0}});
  CHECK_FALSE(trial.verdict.has_value());  // it is carried out
  book.begin_attempt(trial, {AgentNumber{3}, {}});
  CHECK(book.paused().empty());
  book.pause(trial);  // by the user: not for the scheduler to resume
  CHECK(book.paused().empty());
  CHECK(book.counts() == TrialBook::Counts{1, 0, 1, 0, 0});
  book.set_status(trial, TrialStatus::kTerminated);
  CHECK(book.counts() == TrialBook::Counts{1, 0, 0, 1, 0});
  CHECK(heard.records == std::vector<std::string>{"added", "added", "changed", "changed", "changed",
                                                  "changed", "changed"});
}

TEST_CASE("only the attempt that runs now is the current one") {
  Heard heard;
  TrialBook book(heard.out, {}, 1);
  Trial& trial = book.add(no_config(), {});
  CHECK(book.current({3}, {0}, {0}) == nullptr);  // waits
  book.begin_attempt(trial, {AgentNumber{3}, {}});
  CHECK(book.current({3}, {0}, {1}) == &trial);
  CHECK(book.current({2}, {0}, {1}) == nullptr);
  CHECK(book.current({3}, {0}, {2}) == nullptr);
  CHECK(book.current({3}, {1}, {1}) == nullptr);  // there is none
  book.set_status(trial, TrialStatus::kPending);
  CHECK(book.current({3}, {0}, {1}) == nullptr);
}

TEST_CASE("the newest checkpoints and the best one stay, under both modes") {
  struct Case {
    Mode mode;
    std::size_t keep;
    std::vector<std::uint64_t> left;
  };
  // Metrics 0.5, 0.9, 0.1, 0.9, 0.3: best is 2 under max (the first of equals), 3 under min.
  const Case cases[] = {{Mode::kMax, 1, {2, 5}},    {Mode::kMin, 1, {3, 5}},
                        {Mode::kMax, 2, {2, 4, 5}}, {Mode::kMax, 0, {2, 5}},  // one is always kept
                        {Mode::kMin, 3, {3, 4, 5}}, {Mode::kMax, 9, {1, 2, 3, 4, 5}}};
  for (const Case& c : cases) {
    CAPTURE(c.keep);
    Heard heard;
    TrialBook book(heard.out, {"m", c.mode, 0}, c.keep);
    Trial& trial = book.add(no_config(), {});
    const double metrics[] = {0.5, 0.9, 0.1, 0.9, 0.3};
    for (std::uint64_t i = 1; i <= 5; ++i) do_step(book, trial, i, metrics[i - 1]);
    CHECK(iterations(trial) == c.left);
    // A checkpoint that is not recorded any more is removed, once.
    CHECK(heard.out.close().removals.size() == 5 - c.left.size());
  }
}

TEST_CASE("a checkpoint without a finite metric is never the best") {
  Heard heard;
  TrialBook book(heard.out, {"m", Mode::kMax, 0}, 1);
  Trial& trial = book.add(no_config(), {});
  do_step(book, trial, 1, 0.5);
  do_step(book, trial, 2, std::numeric_limits<double>::infinity());
  do_step(book, trial, 3, std::numeric_limits<double>::quiet_NaN());
  book.take_checkpoint(trial, saved_at(trial, 4));  // no result of that iteration
  CHECK(iterations(trial) == std::vector<std::uint64_t>{1, 4});
  CHECK_FALSE(trial.at_checkpoint.has_value());
}

TEST_CASE("going back to a checkpoint voids later results and brings its own back") {
  Heard heard;
  TrialBook book(heard.out, {"m", Mode::kMax, 0}, 1);
  Trial& trial = book.add(no_config(), {});
  book.take_result(trial, result_of(trial, 1, 0.1));
  CHECK(book.cut_to_checkpoint(trial) == 0);  // none: everything is void
  CHECK_FALSE(trial.last.has_value());
  CHECK_FALSE(trial.metric.has_value());

  book.take_result(trial, result_of(trial, 1, 0.1));
  do_step(book, trial, 2, 0.2);
  CHECK(is_saved_to_the_end(trial));
  CHECK(book.cut_to_checkpoint(trial) == 2);  // nothing to void
  book.take_result(trial, result_of(trial, 3, 0.3));
  CHECK_FALSE(is_saved_to_the_end(trial));
  CHECK(book.cut_to_checkpoint(trial) == 2);
  CHECK(trial.last->iteration == 2);
  CHECK(trial.metric == 0.2);
  CHECK(heard.records == std::vector<std::string>{"added", "cut to 0", "changed", "cut to 2"});
}

TEST_CASE("a trial keeps the newest metric while later results have none") {
  Heard heard;
  TrialBook book(heard.out, {"m", Mode::kMax, 0}, 2);
  Trial& trial = book.add(no_config(), {});
  book.take_result(trial, result_of(trial, 1, 0.1));
  Reported other = result_of(trial, 2, 0);
  other.result = pack(Value{{"loss", 0.7}});
  book.take_result(trial, other);
  CHECK(trial.metric == 0.1);
  CHECK(book.best() == trial.number);
}

TEST_CASE("the best trial has the best finite metric, the first of equals") {
  for (const Mode mode : {Mode::kMax, Mode::kMin}) {
    Heard heard;
    TrialBook book(heard.out, {"m", mode, 0}, 1);
    CHECK_FALSE(book.best().has_value());
    for (double metric : {std::numeric_limits<double>::quiet_NaN(), 0.5, 0.7, 0.7, 0.5}) {
      Trial& trial = book.add(no_config(), {});
      book.take_result(trial, result_of(trial, 1, metric));
    }
    CHECK(book.best()->value == (mode == Mode::kMax ? 2 : 1));
  }
}

namespace {

Reported several(const Trial& trial, std::uint64_t iteration, double acc, double ms) {
  Reported report = result_of(trial, iteration, 0);
  report.result = pack(Config{{"acc", acc}, {"ms", ms}});
  return report;
}

}  // namespace

TEST_CASE("with several objectives there is a front, and no best trial") {
  Heard heard;
  TrialBook book(heard.out, {"", Mode::kMax, 0, {{"acc"}, {"ms", Mode::kMin}}}, 1);
  const double values[][2] = {
      {0.5, 5}, {0.4, 6}, {0.9, 9}, {0.9, std::numeric_limits<double>::quiet_NaN()}};
  for (const auto& [acc, ms] : values) {
    Trial& trial = book.add(no_config(), {});
    book.take_result(trial, several(trial, 1, acc, ms));
  }
  CHECK(book.pareto() == std::vector<TrialNumber>{{0}, {2}});
  CHECK_FALSE(book.best().has_value());
}

TEST_CASE("what breaks a constraint is the best only where all do") {
  Heard heard;
  TrialBook book(heard.out, {"acc", Mode::kMax, 0, {}, {{.metric = "ms", .max = 10}}}, 1);
  const double values[][2] = {{0.9, 30}, {0.8, 20}, {0.5, 10}, {0.4, 5}};
  const std::uint32_t best[] = {0, 1, 2, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    Trial& trial = book.add(no_config(), {});
    book.take_result(trial, several(trial, 1, values[i][0], values[i][1]));
    CHECK(book.best()->value == best[i]);
  }
}

TEST_CASE("a checkpoint whose result breaks a constraint is not kept as the best") {
  Heard heard;
  TrialBook book(heard.out, {"acc", Mode::kMax, 0, {}, {{.metric = "ms", .max = 10}}}, 1);
  Trial& trial = book.add(no_config(), {});
  const double values[][2] = {{0.9, 30}, {0.8, 10}, {0.5, 10}};
  for (std::uint64_t i = 1; i <= 3; ++i) {
    book.take_result(trial, several(trial, i, values[i - 1][0], values[i - 1][1]));
    book.take_checkpoint(trial, saved_at(trial, i));
  }
  CHECK(iterations(trial) == std::vector<std::uint64_t>{2, 3});
}

TEST_CASE("what is kept of a trial that rests is bounded, and has what tables show of it") {
  for (const std::string end : {"completed", "failed", "paused", "held"}) {
    CAPTURE(end);
    const bool fails = end == "failed";
    Heard heard;
    TrialBook book(heard.out, {"deep/m", Mode::kMax, 0}, 1);
    Trial& trial = book.add(no_config(), {});
    book.begin_attempt(trial, {AgentNumber{0}, {}});
    Config large{{"text", std::string(50'000, 'x')}, {"short", "ab"}, {"loss", 0.25}};
    for (int i = 0; i < 1000; ++i) large.set("n" + std::to_string(i), i);
    large.set("deep/list", list({1, 2}));
    large.set("deep/m", 0.5);
    Reported report;
    report.iteration = 1;
    report.result = pack(large);
    book.take_result(trial, report);
    book.take_checkpoint(trial, saved_at(trial, 1));
    trial.reason = std::string(5'000, 'r');
    trial.failure =
        Failure{{1}, Outcome::kExit, 0, 3, std::string(5'000, 'c'), std::string(16'000, 's')};
    if (end == "paused") {
      book.pause(trial);
    } else if (end == "held") {
      book.hold(trial);
    } else {
      book.finish(trial, fails ? TrialStatus::kError : TrialStatus::kTerminated);
    }
    TrialBook::shorten_failure(trial);
    CHECK(trial.metric == 0.5);
    const ResultView last(*trial.last);
    CHECK(last.iteration() == 1);
    CHECK(last.number("deep/m") == 0.5);
    CHECK(last.number("loss") == 0.25);
    CHECK(last.number("n0") == 0);
    const Value kept = unpack(trial.last->result);
    CHECK(kept.find("text") == nullptr);
    CHECK(kept.find("deep/list") == nullptr);
    CHECK(kept.find("short")->string() == "ab");
    CHECK(trial.last->result.bytes.size() <= kMaxKeptBytes);
    // Where it may go on from its checkpoint, it then has the result of it.
    REQUIRE(trial.at_checkpoint.has_value() == (end != "completed"));
    if (trial.at_checkpoint) CHECK(trial.at_checkpoint->result == trial.last->result);
    trial.at_checkpoint.reset();
    CHECK(encoded(trial).size() - trial.last->result.bytes.size() < 1024);
  }
}

TEST_CASE("a short result is kept as it was reported, a damaged one not at all") {
  const Packed small = pack(Config{{"x", list({1, 2})}, {"text", std::string(4000, 'x')}});
  CHECK(kept_result(small, {"m"}) == small);
  CHECK(unpack(kept_result({std::string(5000, '\xc1')}, {"m"})).map().empty());
}

TEST_CASE("a saved book has the same trials, sets and counts") {
  Heard heard;
  TrialBook book(heard.out, {"m", Mode::kMax, 0}, 1);
  for (int i = 0; i < 4; ++i) book.add(no_config(), {});
  book.begin_attempt(book.at({1}), {AgentNumber{0}, {}});
  book.begin_attempt(book.at({2}), {AgentNumber{0}, {}});
  book.at({2}).verdict = StopKind::kPause;
  book.pause(book.at({2}));
  book.set_status(book.at({3}), TrialStatus::kTerminated);
  PackWriter out;
  book.save(out);
  TrialBook other(heard.out, {"m", Mode::kMax, 0}, 1);
  other.add(no_config(), {});  // is forgotten
  PackReader in(out.bytes());
  other.restore(in);
  CHECK(other.counts() == book.counts());
  CHECK(other.waiting() == Numbers{{0}});
  CHECK(other.running() == Numbers{{1}});
  CHECK(other.paused() == Numbers{{2}});
  PackWriter again;
  other.save(again);
  CHECK(again.bytes() == out.bytes());
}

// When it is copied, and when it stands on its node.
TEST_CASE("a checkpoint that is announced twice keeps the result that it was saved after") {
  Heard heard;
  TrialBook book(heard.out, {"m", Mode::kMax, 0}, 1);
  Trial& trial = book.add(no_config(), {});
  book.begin_attempt(trial, {AgentNumber{3}, {}});
  CheckpointSaved saved = saved_at(trial, 1);
  saved.attempt = trial.attempt;
  saved.storing = CheckpointSaved::Storing::kOnNode;
  book.take_result(trial, result_of(trial, 1, 5));
  book.expect_checkpoint(trial, saved);
  book.take_result(trial, result_of(trial, 2, 6));
  book.expect_checkpoint(trial, saved);
  saved.storing = CheckpointSaved::Storing::kStored;
  book.take_checkpoint(trial, saved);
  REQUIRE(trial.checkpoints.size() == 1);
  CHECK(trial.checkpoints[0].metric == 5.0);
}

TEST_CASE("a checkpoint that is stored late counts with the result that it was saved after") {
  Heard heard;
  TrialBook book(heard.out, {"m", Mode::kMax, 0}, 1);
  Trial& trial = book.add(no_config(), {});
  book.begin_attempt(trial, {AgentNumber{3}, {}});
  const auto say = [&](std::uint64_t iteration, CheckpointSaved::Storing storing) {
    CheckpointSaved saved = saved_at(trial, iteration);
    saved.attempt = trial.attempt;
    saved.storing = storing;
    if (storing == CheckpointSaved::Storing::kStored) return book.take_checkpoint(trial, saved);
    book.expect_checkpoint(trial, saved);
  };
  for (std::uint64_t iteration = 1; iteration <= 4; ++iteration) {
    book.take_result(trial, result_of(trial, iteration, 10.0 - static_cast<double>(iteration)));
    say(iteration, CheckpointSaved::Storing::kOnNode);
  }
  CHECK(trial.checkpoints.empty());  // nothing that another node could go on from
  CHECK(trial.expected.size() == 4);
  say(1, CheckpointSaved::Storing::kStored);
  say(2, CheckpointSaved::Storing::kGivenUp);
  say(3, CheckpointSaved::Storing::kStored);
  REQUIRE(iterations(trial) == std::vector<std::uint64_t>{1, 3});  // the best, the newest
  CHECK(trial.checkpoints[0].metric == 9.0);
  CHECK(trial.checkpoints[1].metric == 7.0);
  REQUIRE(trial.at_checkpoint.has_value());
  CHECK(trial.at_checkpoint->iteration == 3);
  CHECK(trial.expected.size() == 1);
  CHECK(book.cut_to_checkpoint(trial) == 3);  // 4 is on its node only
  CHECK(trial.last->iteration == 3);
}

}  // namespace
}  // namespace tune
