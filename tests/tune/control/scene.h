// One node and a controller, and the controller's answers; speaks as the node's agent would.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "schedulers/scheduler_spec.h"
#include "tune/control/controller.h"
#include "tune/search/searcher.h"

namespace tune::testing {

// Everything in a record, in words.
inline std::string in_words(const Record& record) {
  std::string words = std::to_string(record.index());
  std::visit(
      [&words](const auto& one) {
        if constexpr (requires { one.trial; }) words += encoded(one.trial);
        if constexpr (requires { one.report; }) words += encoded(one.report);
        if constexpr (requires { one.done; }) words += one.done ? "done" : "";
        if constexpr (requires { one.iteration; }) words += std::to_string(one.iteration);
        if constexpr (requires { one.retried; }) words += one.retried ? "retried" : "";
        if constexpr (requires { one.text; }) words += one.text;
        if constexpr (requires { one.hello; }) words += encoded(one.hello);
        if constexpr (requires { one.ended; }) words += encoded(one.ended);
        if constexpr (requires { one.cause; }) words += one.cause;
      },
      record);
  return words;
}

class Scene {
 public:
  struct Options {
    std::int64_t num_samples = 4;
    double cpus = 2;
    SchedulerSpec scheduler = fifo();
    std::uint32_t max_failures = 0;
    CheckpointPolicy checkpoint = {};
    bool can_save = true;
    bool fail_fast = false;
    Duration save_grace = std::chrono::seconds(30);
    Duration budget{};
    std::string metric = "m";
    ResourceRequest request = to_request({});
    SearcherSpec searcher = basic_variant();
    bool asks_late = true;
    bool nodes_may_join = false;
    std::vector<Goal> goals = {};  // in place of the metric
    bool has_pool = false;
  };

  explicit Scene(Options options) : options_(std::move(options)), controller_(setup()) { start(); }

  ControllerSetup setup() {
    ControllerSetup setup;
    setup.experiment.trainable = "T";
    setup.experiment.checkpoint = options_.checkpoint;
    setup.allocation_prefix = "tune-x-";
    setup.plugin = "/p.so";
    setup.request = options_.request;
    setup.seed = 7;
    setup.fail_fast = options_.fail_fast;
    setup.experiment.save_grace = options_.save_grace;
    setup.scheduler = options_.scheduler.make();
    setup.objective = {options_.goals.empty() ? options_.metric : "", Mode::kMax, 7,
                       options_.goals};
    setup.scheduler->configure(setup.objective);
    setup.searcher = options_.searcher.make();
    setup.space = {{{"x", uniform(0, 1)}}, options_.num_samples, {}, setup.objective};
    setup.searcher->configure(setup.space);
    return setup;
  }

  void start(bool retry_errored = false) {
    DriverStarted event;
    event.epoch = ++epoch_;
    event.num_samples = options_.num_samples;
    event.max_failures = options_.max_failures;
    event.time_budget = options_.budget;
    event.retry_errored = retry_errored;
    event.asks_late = options_.asks_late;
    event.nodes_may_join = options_.nodes_may_join || options_.has_pool;
    event.has_pool = options_.has_pool;
    give(event);
  }

  void join(AgentNumber agent = {}) {
    AgentHello hello;
    hello.hostname = "node";
    hello.ip = "10.0.0.1";
    hello.cpu_units = to_units(options_.cpus);
    give(FromAgent{agent, hello});
    ZygoteReady ready;
    ready.trainables = {{"T", options_.can_save, false}};
    give(FromAgent{agent, ready});
  }

  void give(const Event& event) {
    events_.push_back(event);
    now_ += std::chrono::milliseconds(1);
    Effects effects = controller_.handle(now_, event, [this](const Record& record) {
      records_.push_back(in_words(record));
      if (const auto* cut = std::get_if<ResultsCut>(&record)) cuts_.push_back(cut->iteration);
      if (const auto* result = std::get_if<ResultRecorded>(&record)) {
        results_.emplace_back(result->report.trial.value, result->report.iteration, result->done);
      }
      if (const auto* notice = std::get_if<Notice>(&record)) notices_.push_back(notice->text);
      std::visit([this](const auto& what) { write_down(what); }, record);
    });
    restore_from_state();
    for (auto& [agent, command] : effects.commands) commands_.push_back(std::move(command));
    unsettled_ = effects.unsettled;
    answers_ = std::move(effects.answers);
    for (const RemoveCheckpoint& removal : effects.removals) {
      removed_.push_back(removal.checkpoint.iteration);
    }
  }
  void wait(Duration time) { now_ += time; }

  // The account of the experiment, line by line.
  template <class Other>
  void write_down(const Other&) {}
  void write_down(const DriverBegan& driver) {
    story_.push_back(fmt::format("driver {}", driver.epoch));
  }
  void write_down(const NodeJoined& node) { story_.push_back(node.hello.hostname + " joined"); }
  void write_down(const NodeLeft& node) {
    story_.push_back(fmt::format("{} left: {}", node.hello.hostname, node.cause));
  }
  void write_down(const AttemptBegan& began) {
    story_.push_back(fmt::format("{}.{} on {} at {} from {}", began.trial.number.value,
                                 began.trial.attempt.value, began.node, began.trial.location,
                                 began.restored));
  }
  void write_down(const AttemptOver& over) {
    CHECK(over.trial.placement.has_value());
    story_.push_back(fmt::format("{}.{} {}: {}", over.trial.number.value, over.trial.attempt.value,
                                 outcome_name(over.ended.outcome), over.ended.cause));
  }
  void write_down(const VerdictGiven& verdict) {
    story_.push_back(fmt::format("{} {} at {}: {}", verdict.trial.number.value,
                                 verdict.kind == StopKind::kStop ? "stop" : "pause",
                                 verdict.iteration, verdict.trial.reason));
  }
  void write_down(const UserActed& acted) {
    constexpr const char* kNames[] = {"stop", "pause", "unpause", "retry",
                                      "add",  "note",  "samples"};
    story_.push_back(fmt::format("{}: {} {} {}", acted.order.user,
                                 kNames[static_cast<int>(acted.order.kind)],
                                 acted.order.trial.value, acted.order.text));
  }
  void write_down(const ExperimentOver& over) {
    story_.push_back(over.how + (over.why.empty() ? "" : ": " + over.why));
  }

  // A controller restored from the state goes on as the saved one: every scenario shows that.
  void restore_from_state() {
    Controller restored(setup());
    restored.restore(controller_.save());
    CHECK(restored.save() == controller_.save());
    CHECK(restored.counts() == controller_.counts());
    controller_ = std::move(restored);
  }

  Reported report(std::uint32_t trial, std::uint64_t iteration, double metric, bool waiting = false,
                  bool final = false) {
    Reported report;
    report.trial = TrialNumber{trial};
    report.attempt = controller_.trials()[trial].attempt;
    report.iteration = iteration;
    report.waiting = waiting;
    report.final = final;
    report.result = pack(Result{{"m", metric}});
    return report;
  }
  void give_report(std::uint32_t trial, std::uint64_t iteration, double metric,
                   bool waiting = false, bool final = false) {
    give(FromAgent{{}, report(trial, iteration, metric, waiting, final)});
  }
  void saved(std::uint32_t trial, std::uint64_t iteration) {
    CheckpointSaved saved;
    saved.trial = TrialNumber{trial};
    saved.attempt = controller_.trials()[trial].attempt;
    saved.iteration = iteration;
    give(FromAgent{{}, saved});
  }
  void end(std::uint32_t trial, Outcome outcome, std::string cause = {}) {
    AttemptEnded ended;
    ended.trial = TrialNumber{trial};
    ended.attempt = controller_.trials()[trial].attempt;
    ended.outcome = outcome;
    ended.cause = std::move(cause);
    give(FromAgent{{}, ended});
  }

  // The commands since the last call, of one kind.
  template <class T>
  std::vector<T> take() {
    std::vector<T> found;
    for (const Command& command : commands_) {
      if (const T* wanted = std::get_if<T>(&command)) found.push_back(*wanted);
    }
    std::erase_if(commands_, [](const Command& c) { return std::holds_alternative<T>(c); });
    return found;
  }
  TrialStatus status(std::uint32_t trial) const { return controller_.trials()[trial].status; }

  Options options_;
  Controller controller_;
  std::vector<Event> events_;
  std::vector<Command> commands_;
  std::vector<std::uint64_t> cuts_;
  std::vector<std::uint64_t> removed_;
  std::map<TrialNumber, AttemptNumber> unsettled_;  // of the newest event
  std::vector<std::tuple<std::uint32_t, std::uint64_t, bool>> results_;
  std::vector<std::string> notices_;
  std::vector<OrderAnswer> answers_;  // of the newest event
  std::vector<std::string> story_;
  std::vector<std::string> records_;
  ExperimentTime now_{};
  std::uint64_t epoch_ = 0;
};

}  // namespace tune::testing
