// A driver takes over while the one before it still appends.
#include "tune/drive/journaled_controller.h"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "fuzz/journal_experiment.h"
#include "memory_store.h"

namespace tune {
namespace {

using std::chrono::seconds;

class Notices : public Logger {
 public:
  void record(const Record& record, const Telling& telling) override {
    const auto* notice = std::get_if<DriverNotice>(&record);
    if (notice != nullptr) notices.push_back((telling.is_again ? "again: " : "") + notice->text);
  }
  void flush() override {}
  std::future<std::string> save() override { return ready(""); }
  void restore(std::string_view) override {}
  std::vector<std::string> notices;
};

// One driver of an experiment with four trials, of which two run at a time.
class OneDriver {
 public:
  explicit OneDriver(Store& store) : experiment(store, fuzz::journal_experiment(), &logger_) {
    experiment.replay();
  }
  Effects take_over(ExperimentTime now) {
    DriverStarted started;
    started.epoch = experiment.next_epoch();
    started.num_samples = 4;
    return experiment.take_over({now, {}, {started}});
  }
  void join(ExperimentTime now) {
    AgentHello hello;
    hello.cpu_units = 2 * kUnit;
    ZygoteReady ready;
    ready.trainables = {{"T", true, false}};
    experiment.commit({now, {}, {FromAgent{{}, hello}, FromAgent{{}, ready}}});
  }
  template <class T>
  void save(ExperimentTime now, T event) {
    event.trial = TrialNumber{0};
    event.attempt = AttemptNumber{1};
    event.iteration = 1;
    experiment.commit({now, {}, {FromAgent{{}, event}}});
  }
  const std::vector<std::string>& notices() const { return logger_.notices; }

 private:
  Notices logger_;

 public:
  JournaledController experiment;
};

TEST_CASE("a driver that takes over counts what the old one appended after the replay") {
  testing::MemoryStore store;
  OneDriver old(store);
  old.take_over({});
  OneDriver next(store);
  CHECK(next.experiment.controller().counts()[static_cast<std::size_t>(TrialStatus::kRunning)] ==
        0);
  old.join(seconds(1));  // launches trials 0 and 1
  Reported report;
  report.result = pack(Result{{"m", 0.5}});
  old.save(seconds(2), report);
  old.save(seconds(3), CheckpointSaved{});

  const Effects takeover = next.take_over({});
  CHECK(next.experiment.now() == seconds(3));
  using Lost = std::map<TrialNumber, AttemptNumber>;
  CHECK(takeover.unsettled == Lost{{{0}, {1}}, {{1}, {1}}});
  const Trial& trial = next.experiment.controller().trials().at(0);
  CHECK(trial.status == TrialStatus::kPending);
  CHECK(trial.attempt.value == 1);
  REQUIRE(trial.checkpoints.size() == 1);
  CHECK(trial.checkpoints[0].iteration == 1);

  JournaledController again(store, fuzz::journal_experiment(), nullptr);
  again.replay();
  CHECK(again.controller().save() == next.experiment.controller().save());
  CHECK(again.now() == next.experiment.now());
  CHECK_THROWS_AS(old.join(seconds(4)), SupersededError);
}

TEST_CASE("what a driver was to settle is settled again by the one that takes over") {
  testing::MemoryStore store;
  OneDriver old(store);
  old.take_over({});
  old.join(seconds(1));
  AttemptEnded ended;
  ended.outcome = Outcome::kStopped;
  ended.trial = TrialNumber{0};
  ended.attempt = AttemptNumber{1};
  Reported report;
  report.result = pack(Result{{"m", 0.5}});
  old.save(seconds(2), report);
  old.save(seconds(3), CheckpointSaved{});
  old.experiment.commit({seconds(4), {}, {FromAgent{{}, ended}}});
  OneDriver next(store);
  using Lost = std::map<TrialNumber, AttemptNumber>;
  const Lost lost{{{1}, {1}}, {{2}, {1}}};  // that ran
  CHECK(next.take_over(seconds(4)).unsettled == lost);
  // It may have ended before it was done, also with a trial that has come to its end meanwhile.
  next.join(seconds(5));
  ended.trial = TrialNumber{1};
  ended.attempt = AttemptNumber{2};
  next.experiment.commit({seconds(6), {}, {FromAgent{{}, ended}}});
  OneDriver third(store);
  const Lost all{{{1}, {2}}, {{2}, {2}}, {{3}, {1}}};
  CHECK(third.take_over(seconds(7)).unsettled == all);
  // A snapshot stands for turns whose files are in order, but for those of trials that go on: an
  // agent of a driver that stood still may have saved for them since.
  third.experiment.store(third.experiment.snapshot());
  OneDriver fourth(store);
  const Lost going_on{{{2}, {2}}, {{3}, {1}}};
  CHECK(fourth.take_over(seconds(8)).unsettled == going_on);
}

TEST_CASE("what a driver said is told again with the turn, and changes nothing else") {
  testing::MemoryStore store;
  OneDriver old(store);
  old.take_over({});
  old.join(seconds(1));
  const std::string before = old.experiment.controller().save();
  const Effects effects = old.experiment.commit(
      {.now = seconds(2), .wall = {}, .events = {}, .notices = {"it is hot", "it rains"}});
  CHECK(effects.commands.empty());
  CHECK(old.experiment.controller().save() == before);
  CHECK(old.notices() == std::vector<std::string>{"it is hot", "it rains"});
  OneDriver next(store);
  CHECK(next.notices() == std::vector<std::string>{"again: it is hot", "again: it rains"});
  CHECK(next.experiment.now() == seconds(2));
}

}  // namespace
}  // namespace tune
