// A whole experiment with its journal and its folder, without processes: the controller that drives
// sweeps, a store in memory, the loggers of a driver, and workers that are a function.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/platform/files.h"
#include "core/result_view.h"
#include "memory_store.h"
#include "trainables/temporary_folder.h"
#include "tune/control/experiment_setup.h"
#include "tune/drive/journaled_controller.h"
#include "tune/drive/proposal_work.h"
#include "tune/results/events_log.h"
#include "tune/results/file_logger.h"
#include "tune/results/last_results.h"
#include "tune/results/record_channel.h"

namespace tune {

inline ExperimentSpec played_spec(RunOptions options) {
  options.name = "played";
  if (options.objectives.empty()) {
    options.metric = "loss";
    options.mode = Mode::kMin;
  }
  options.seed = 7;
  options.stop = {{"training_iteration", 9}};
  std::vector<Complaint> complaints;
  ExperimentSpec spec = make_spec(options, "T", false, complaints);
  if (!complaints.empty()) throw Error(ErrorCode::kBadInput, complaint_lines("", complaints));
  spec.name = "played";
  return spec;
}

class PlayedExperiment {
 public:
  explicit PlayedExperiment(RunOptions options, std::uint32_t workers = 3)
      : spec_(played_spec(std::move(options))), workers_(workers) {
    std::filesystem::create_directories(directory());
    write_file_atomically(directory() / "experiment.json", to_json(to_value(spec_)));
    begin();
  }

  // One driver's turns, until the experiment is over or `most` turns were made.
  void play(int most = 100000) {
    for (int i = 0; i < most && !controller().is_over(); ++i) {
      if (told_.empty()) step();
      turn();
    }
    loggers_->work.finish();
  }
  // As after a kill: another driver takes over, and its workers begin anew.
  void restart() {
    running_.clear();
    told_.clear();
    begin();
  }
  void snapshot() { experiment_->store(experiment_->snapshot()); }

  const Controller& controller() const { return experiment_->controller(); }
  const ExperimentSpec& spec() const { return spec_; }
  std::filesystem::path directory() const { return folder_.path() / "played"; }
  testing::MemoryStore::Contents& journal() { return *contents_; }
  Store& store() { return store_; }
  std::string read(const char* file) const { return testing::read_text(directory() / file); }

 private:
  struct Worker {
    AttemptNumber attempt;
    Milestone until;
    double x = 0;
    std::uint64_t iteration = 0;
    bool waits = false;
  };

  // Those of one driver. A snapshot knows them by their order.
  struct Loggers {
    Loggers(const std::filesystem::path& directory, const ExperimentSpec& spec)
        : files(directory, spec, work), events(directory, spec, work) {
      channel.add_keeper(files);
      channel.add_keeper(last);
      channel.add_keeper(events);
    }
    SideWork work{1u << 20};
    FileLogger files;
    LastResults last;
    EventsLog events;
    RecordChannel channel;
  };

  void begin() {
    experiment_.reset();
    loggers_ = std::make_unique<Loggers>(directory(), spec_);
    experiment_.emplace(store_, controller_setup(spec_, directory()), &loggers_->channel);
    experiment_->replay();
    now_ = std::max(now_, experiment_->now());
    obey(experiment_->take_over(
        {now_, wall_, {driver_started(spec_, experiment_->next_epoch(), false)}}));
    AgentHello hello;
    hello.hostname = "node";
    hello.cpu_units = std::int64_t{workers_} * kUnit;
    ZygoteReady ready;
    ready.trainables = {{"T", true, false}};
    tell(hello);
    tell(ready);
  }

  template <class E>
  void tell(E event) {
    told_.push_back(FromAgent{{}, std::move(event)});
  }
  // Two events a turn, so that a turn is more than an event.
  void turn() {
    now_ += std::chrono::milliseconds(10);
    wall_ += std::chrono::milliseconds(10);
    Turn turn{now_, wall_, {}};
    while (!told_.empty() && turn.events.size() < 2) {
      turn.events.push_back(std::move(told_.front()));
      told_.pop_front();
    }
    obey(experiment_->commit(turn));
    loggers_->channel.flush();
    const auto open = controller().question();
    if (!open || open->number == asked_) return;
    asked_ = open->number;
    told_.push_back(answer_now(asked_, controller().searcher().question(open->count)));
  }
  void obey(const Effects& effects) {
    for (const auto& [agent, command] : effects.commands) {
      std::visit([this](const auto& what) { obey(what); }, command);
    }
  }
  template <class Other>
  void obey(const Other&) {}
  void obey(const Launch& launch) {
    const Config config(unpack(launch.config));
    running_[launch.trial] = {launch.attempt, launch.until, config.get<double>("x"),
                              launch.restore_iteration, false};
    tell(AttemptStarted{launch.trial, launch.attempt, 1});
  }
  void obey(const Continue& go_on) {
    if (go_on.save) save(go_on.trial, go_on.attempt);
    running_[go_on.trial].until = go_on.until;
    running_[go_on.trial].waits = false;
  }
  void obey(const StopAttempt& stop) {
    const bool pauses = stop.kind == StopKind::kPause;
    if (pauses) save(stop.trial, stop.attempt);
    end(stop.trial, pauses ? Outcome::kPaused : Outcome::kStopped);
  }
  void save(TrialNumber trial, AttemptNumber attempt) {
    CheckpointSaved saved;
    saved.trial = trial;
    saved.attempt = attempt;
    saved.iteration = running_[trial].iteration;
    tell(saved);
  }
  void end(TrialNumber trial, Outcome outcome) {
    AttemptEnded ended;
    ended.trial = trial;
    ended.attempt = running_[trial].attempt;
    ended.outcome = outcome;
    running_.erase(trial);
    tell(ended);
  }
  // One step of each worker.
  void step() {
    std::vector<TrialNumber> all;
    for (const auto& [trial, worker] : running_) {
      if (!worker.waits) all.push_back(trial);
    }
    for (const TrialNumber trial : all) step(trial, running_[trial]);
  }
  void step(TrialNumber trial, Worker& worker) {
    Reported report;
    report.trial = trial;
    report.attempt = worker.attempt;
    report.iteration = ++worker.iteration;
    report.iterations_since_restore = worker.iteration;
    report.result = pack(
        Result{{"loss", std::abs(worker.x - 0.3) + 1.0 / worker.iteration}, {"size", worker.x}});
    report.final = report.iteration >= 9;
    const auto reached = ResultView(report).number(worker.until.attribute);
    report.waiting = !report.final && reached && *reached >= worker.until.value;
    worker.waits = report.waiting;
    tell(report);
    if (report.final) end(trial, Outcome::kCompleted);
  }

  testing::TemporaryFolder folder_;
  ExperimentSpec spec_;
  std::uint32_t workers_;
  std::shared_ptr<testing::MemoryStore::Contents> contents_ =
      std::make_shared<testing::MemoryStore::Contents>();
  testing::MemoryStore store_{contents_};
  std::unique_ptr<Loggers> loggers_;
  std::optional<JournaledController> experiment_;
  ExperimentTime now_{};
  WallTime wall_ = std::chrono::seconds(1'700'000'000);
  std::deque<Event> told_;
  std::map<TrialNumber, Worker> running_;
  std::uint64_t asked_ = 0;
};

}  // namespace tune
