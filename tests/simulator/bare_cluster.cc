#include "simulator/bare_cluster.h"

#include <ctime>
#include <utility>

#include "schedulers/scheduler_spec.h"

namespace tune::simulator {

using std::chrono::milliseconds;

namespace {

constexpr const char* kBareTrainable = "train_fashion_mnist";
constexpr Duration kStep = milliseconds(997);

Duration cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}

ControllerSetup bare_setup(const BareOptions& options) {
  ControllerSetup setup;
  setup.experiment.experiment_id = "0a1b2";
  setup.experiment.experiment_directory = "/results/simulated";
  setup.experiment.trainable = kBareTrainable;
  const auto last = static_cast<double>(options.begin + options.iterations);
  setup.experiment.stop = {{"training_iteration", last}};
  setup.request.cpu_units = kUnit;
  setup.objective = {"mean_accuracy", Mode::kMax, 1};
  setup.scheduler = fifo().make();
  setup.scheduler->configure(setup.objective);
  setup.searcher = options.searcher.make();
  setup.searcher->configure(
      {{{"lr", loguniform(1e-4, 1e-1)}, {"momentum", uniform(0.1, 0.9)}, {"batch_size", 64}},
       static_cast<std::int64_t>(options.trials),
       {},
       setup.objective});
  return setup;
}

}  // namespace

// ---- A node -------------------------------------------------------------------------------------

std::string BareNode::hello() {
  AgentHello hello;
  hello.hostname = "node";
  hello.ip = "10.0.0.1";
  hello.cpu_units = options_.slots_per_node * kUnit;
  ZygoteReady ready;
  ready.trainables = {{kBareTrainable, true, false}};
  link_.send(encoded(AgentEvent(hello)));
  link_.send(encoded(AgentEvent(ready)));
  return link_.frames().front();
}

std::vector<std::string> BareNode::tell() {
  std::erase_if(slots_, [this](Slot& slot) { return !tell_next(slot); });
  return link_.frames();
}

// False when that was the attempt's last word.
bool BareNode::tell_next(Slot& slot) {
  const Launch& launch = slot.launch;
  if (!std::exchange(slot.has_started, true)) {
    slot.iteration = options_.begin;
    link_.send(encoded(AgentEvent(AttemptStarted{launch.trial, launch.attempt, 31'415})));
    return true;
  }
  const bool is_done = slot.iteration == options_.begin + options_.iterations;
  if (is_done && !std::exchange(slot.has_saved, true)) {
    link_.send(encoded(AgentEvent(CheckpointSaved{
        launch.trial, launch.attempt, slot.iteration, kStep * slot.iteration, {}})));
    return true;
  }
  if (is_done) {
    AttemptEnded ended;
    ended.trial = launch.trial;
    ended.attempt = launch.attempt;
    link_.send(encoded(AgentEvent(std::move(ended))));
    return false;
  }
  Reported report;
  report.trial = launch.trial;
  report.attempt = launch.attempt;
  report.iteration = report.iterations_since_restore = ++slot.iteration;
  report.time_this_iter = kStep;
  report.time_total = report.time_since_restore = kStep * slot.iteration;
  report.final = slot.iteration == options_.begin + options_.iterations;
  const double done = 1.0 / static_cast<double>(slot.iteration + launch.trial.value % 97);
  report.result = pack(Result{{"loss", 2.3 * done}, {"mean_accuracy", 0.9 - done}});
  link_.send(encoded(AgentEvent(std::move(report))));
  return true;
}

void BareNode::hear(std::string_view frame) {
  for (const std::string_view message : link_.receive(frame)) {
    Command command = decoded<Command>(message);
    if (auto* launch = std::get_if<Launch>(&command)) slots_.push_back({std::move(*launch)});
  }
  link_.acknowledge();
}

// ---- The driver ---------------------------------------------------------------------------------

void BareLogger::record(const Record& record, const Telling&) {
  if (std::holds_alternative<TrialAdded>(record)) lengths_.emplace_back();
  if (const auto* recorded = std::get_if<ResultRecorded>(&record)) {
    ++results_;
    Lengths& lengths = lengths_[recorded->trial.number.value];
    lengths.json += 400;
    lengths.csv += 150;
    lengths.columns = 15;
  }
}

BareDriver::BareDriver(const BareOptions& options, CountingStore& store)
    : options_(options), experiment_(store, bare_setup(options), &logger_) {
  for (std::uint32_t node = 0; node < options.nodes; ++node) {
    identities_.push_back(std::to_string(node));
  }
  experiment_.replay();
  DriverStarted started;
  started.epoch = experiment_.next_epoch();
  started.num_samples = static_cast<std::int64_t>(options.trials);
  turns_.take_over(started);
  turns_.run();
  events_ = 0;
}

// Nodes are first heard in order, so that their numbers are those of their agents.
void BareDriver::turn(Duration now, AgentNumber node, const std::vector<std::string>& frames) {
  now_ = now;
  told_.clear();
  for (const std::string& frame : frames) {
    peers_.receive(identities_[node.value], frame, now, told_);
  }
  for (Peers::Told& told : told_) machine_.on_told(std::move(told));
  machine_.on_time(now, peers_);
  outgoing_.clear();
  while (run_turn() && machine_.has_more(peers_)) continue;
}

// The clock is a call of the kernel, which costs as much as an event.
bool BareDriver::run_turn() {
  if (!options_.times_turns) return turns_.run();
  const Duration began = cpu_time();
  const Duration proposed = proposing_;
  const bool has_run = turns_.run();
  if (has_run) turn_times_.push_back(cpu_time() - began - (proposing_ - proposed));
  return has_run;
}

void BareDriver::flush_commands() {
  peers_.flush(now_, [this](const std::string& identity, std::string frame) {
    outgoing_.push_back({&identity, std::move(frame)});
    return true;
  });
}

// A thread's work, and no cost of the driver's own.
void BareDriver::ask(const Asking::Question& question, Searcher::Question make) {
  const Duration began = cpu_time();
  Proposed proposed{question.number, {}, {make()}, {}};
  proposing_ += cpu_time() - began;
  machine_.on_proposed(std::move(proposed));
}

std::size_t BareDriver::snapshot_bytes() {
  const Snapshot now = experiment_.snapshot();
  return now.controller.size() + now.logger.size();
}

// ---- The sweep ----------------------------------------------------------------------------------

BareSweep::BareSweep(const BareOptions& options)
    : options_(options), nodes_(options.nodes, BareNode(options_)), driver_(options_, store_) {
  now_ = std::chrono::seconds(options.begin);
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    turn(AgentNumber{node}, {nodes_[node].hello()});
  }
}

void BareSweep::run_round() {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    now_ += Duration(std::chrono::seconds(1)) / options_.nodes;
    turn(AgentNumber{node}, nodes_[node].tell());
  }
}

void BareSweep::turn(AgentNumber node, const std::vector<std::string>& frames) {
  if (frames.empty()) return;
  const Duration start = cpu_time();
  const Duration proposed = driver_.proposing();
  driver_.turn(now_, node, frames);
  spent_ += cpu_time() - start - (driver_.proposing() - proposed);
  for (const BareDriver::Outgoing& answer : driver_.outgoing()) {
    nodes_[std::stoul(*answer.identity)].hear(answer.frame);
  }
}

}  // namespace tune::simulator
