#include "tune/cli/status.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/node.h"
#include "core/platform/system_clock.h"
#include "tune/control/experiment_setup.h"
#include "tune/drive/door.h"
#include "tune/drive/journal_reader.h"
#include "tune/drive/journaled_controller.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/experiment_status.h"
#include "tune/results/own_agent.h"
#include "tune/show/console_reporter.h"
#include "tune/spec/when.h"

namespace tune {

namespace {

constexpr std::chrono::milliseconds kLookEvery{500};
constexpr std::chrono::seconds kDriverEnd{30};  // of a driver that is ending

// A reader's own fold of the journal.
class StatusFollower {
 public:
  StatusFollower(const std::filesystem::path& directory, Store& store)
      : directory_(directory),
        spec_(read_spec(directory)),
        experiment_(store, controller_setup(spec_, std::filesystem::absolute(directory)), nullptr),
        reporter_(spec_.options.reporter) {}

  void catch_up() { experiment_.replay(); }
  bool is_over() const { return experiment_.controller().is_over(); }

  void notice(const std::string& text) { reporter_.notice(text); }
  const ExperimentSpec& spec() const { return spec_; }
  const Controller& controller() const { return experiment_.controller(); }

  void show(bool live, bool final) {
    ExperimentStatus status = experiment_status(spec_, experiment_.controller(), experiment_.now());
    status.wall = SystemClock().wall();
    const MemoryUse memory = memory_use();
    status.memory_used_bytes = memory.used_bytes;
    status.memory_total_bytes = memory.total_bytes;
    status.directory = directory_;
    status.live = live;
    reporter_.status(status, final);
  }

 private:
  std::filesystem::path directory_;
  ExperimentSpec spec_;
  JournaledController experiment_;
  ConsoleReporter reporter_;
};

// Follows the experiment until it is over or its driver is gone. A private store goes with its
// driver.
void follow(const std::filesystem::path& directory) try {
  JournalReader journal(directory);
  StatusFollower follower(directory, journal.store());
  while (is_live(directory)) {
    follower.catch_up();
    if (follower.is_over()) return;
    follower.show(true, false);
    std::this_thread::sleep_for(kLookEvery);
  }
} catch (const Error& error) {
  if (error.code() == ErrorCode::kBadInput) throw;
  const auto end = std::chrono::steady_clock::now() + kDriverEnd;
  while (is_live(directory)) {
    if (std::chrono::steady_clock::now() > end) throw;  // it lives, but its store cannot be read
    std::this_thread::sleep_for(kLookEvery);
  }
}

std::string state_of(const Nodes& nodes, AgentNumber agent) {
  if (nodes.is_away(agent)) return "away";
  if (nodes.is_out(agent)) return "leaving";
  if (!nodes.is_ready(agent)) return "loading";
  return nodes.holder_of_its_gpus(agent).empty() ? "ready" : "waiting";
}

std::string row_of(const Controller& controller, AgentNumber agent) {
  const Nodes& nodes = controller.nodes();
  const AgentHello& hello = nodes.hello(agent);
  std::size_t running = 0;
  for (const Trial& trial : controller.trials()) {
    if (trial.placement) running += std::ranges::count(agents_of(*trial.placement), agent);
  }
  std::string until = "-";
  if (hello.lasts > Duration{}) {
    const Duration left = nodes.joined_at(agent) + hello.lasts - controller.now();
    until = "in " + in_words(std::max(left, Duration{}));
  }
  return fmt::format("{:<24} {:<8} {:>6} {:>5} {:>5} {:>14}  {}", node_name(nodes, agent),
                     state_of(nodes, agent), running, hello.cpu_units / kUnit, hello.gpus.size(),
                     until,
                     !hello.allocation.empty()    ? hello.allocation
                     : hello.joined && !hello.own ? "joined"
                                                  : "the driver's own");
}

// The allocations of a pool without an agent yet, and why trials wait.
void print_pool(const ExperimentSpec& spec, const Controller& controller) {
  const PoolBook& pool = controller.pool();
  for (const auto& [number, one] : pool.open()) {
    if (one.has_joined) continue;
    const char* state = one.state == AllocationState::kRunning     ? "running"
                        : one.state == AllocationState::kRequested ? "asked for"
                                                                   : "queued";
    fmt::print("{:<24} {:<8} {:>6} {:>5} {:>5} {:>14}  {} for {}\n",
               fmt::format("allocation {}", number), state, "-", "-", "-", "-",
               one.reason.empty() ? one.id : one.reason,
               in_words(std::max(controller.now() - one.requested_at, Duration{})));
  }
  if (pool.max()) fmt::print("at most {} agents, as a user has ordered\n", *pool.max());
  const std::string waits = why_trials_wait(spec, controller, controller.now());
  if (!waits.empty()) fmt::print("{}\n", waits);
}

// Without a driver.
std::string who_goes_on(const std::filesystem::path& directory) {
  const auto agent = OwnAgent::of(directory);
  if (!agent || agent->is_gone()) return {};
  return fmt::format("; its trials here go on under process {}", agent->pid());
}

}  // namespace

int show_nodes(const std::filesystem::path& directory) {
  read_spec(directory);  // or it is not an experiment's folder
  if (!read_record(directory) || !is_live(directory)) {
    throw Error(ErrorCode::kBadInput, fmt::format("{}: no driver runs it, so it has no nodes{}",
                                                  directory.string(), who_goes_on(directory)));
  }
  JournalReader journal(directory);
  StatusFollower follower(directory, journal.store());
  follower.catch_up();
  fmt::print("{:<24} {:<8} {:>6} {:>5} {:>5} {:>14}  {}\n", "node", "state", "trials", "CPUs",
             "GPUs", "leaves", "allocation");
  for (const AgentNumber agent : follower.controller().nodes().all()) {
    fmt::print("{}\n", row_of(follower.controller(), agent));
  }
  print_pool(follower.spec(), follower.controller());
  return 0;
}

int show_status(const std::filesystem::path& directory) {
  read_spec(directory);  // or it is not an experiment's folder
  const std::optional<RunRecord> record = read_record(directory);
  if (!record) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: the experiment has not begun yet", directory.string()));
  }
  if (is_live(directory)) follow(directory);
  JournalReader journal(directory, JournalReader::From::kCopy);
  StatusFollower follower(directory, journal.store());
  follower.catch_up();
  follower.show(false, true);
  if (!follower.is_over() && !is_live(directory)) {
    follower.notice(fmt::format(
        "no driver holds it (the last was process {} on {}){}; resume it with: {}",
        record->driver_pid, record->hostname, who_goes_on(directory), how_to_resume(directory)));
  }
  return 0;
}

}  // namespace tune
