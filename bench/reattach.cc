// A driver that is killed under many machines with running trials: how soon the next one has all of
// them back, and whether anything was lost, told twice or started again.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/platform/child.h"
#include "core/platform/files.h"
#include "core/platform/join_keys.h"
#include "core/platform/process.h"
#include "core/platform/transport.h"
#include "core/strings.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr const char* kHelp =
    "Runs tune run --listen on this host with 1,000 stand-in agents, each with its own encrypted\n"
    "connection and a trial that reports twice a second; kills the driver, and resumes. Timed: from\n"
    "the start of tune resume until the last agent is told which attempts to keep. Bare limit: the\n"
    "same until the first one is. It fails when a trial is started again or a result is missing.\n\n"
    "bench_reattach [--tiny] [--runs N] [--keep]";

nanoseconds now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

[[noreturn]] void fail(const std::string& why) {
  throw Error(ErrorCode::kTrialFailed, why);
}

// An agent of one trial without processes, on the real transport.
class StandIn {
 public:
  StandIn(const JoinToken& token, int number)
      : endpoint_(token, fmt::format("stand-in-{}", number)), name_(fmt::format("node-{}", number)) {
    greet(0);
  }

  int descriptor() const { return endpoint_.descriptor(); }
  void turn() {
    for (Command& command : endpoint_.receive()) {
      std::visit([this](const auto& one) { on(one); }, command);
    }
    const std::uint64_t epoch = endpoint_.driver_epoch();
    if (epoch != std::exchange(epoch_, epoch)) greet(epoch);
    if (reports_ && !live_.empty() && now() >= report_at_) report();
    endpoint_.flush(now());
  }
  void stop_reporting() { reports_ = false; }

  bool runs() const { return !live_.empty(); }
  std::uint64_t kept_by() const { return kept_by_; }  // the epoch of the driver that knows it
  std::uint64_t reported() const { return reported_; }
  int launches() const { return launches_; }
  int given_up() const { return given_up_; }  // attempts that were not to be kept
  bool has_told_all() const { return endpoint_.unacknowledged_bytes() == 0; }

 private:
  void greet(std::uint64_t epoch) {
    AgentHello hello;
    hello.hostname = name_;
    hello.ip = "127.0.0.1";
    hello.cpu_units = 2 * kUnit;
    hello.joined = true;
    hello.live = live_;
    hello.epoch = epoch;
    endpoint_.send(hello);
  }
  void on(const SetupExperiment& setup) {
    kept_by_ = endpoint_.driver_epoch();
    given_up_ += static_cast<int>(std::erase_if(live_, [&](const LiveAttempt& live) {
      return std::ranges::find(setup.keep, attempt_key(live.trial, live.attempt)) ==
             setup.keep.end();
    }));
    if (std::exchange(is_set_up_, true)) return;
    ZygoteReady ready;
    ready.trainables = {{setup.trainable, true, false}};
    endpoint_.send(ready);
  }
  void on(const Launch& launch) {
    ++launches_;
    live_.push_back({launch.trial, launch.attempt});
    endpoint_.send(AttemptStarted{launch.trial, launch.attempt, 1});
    report_at_ = now();
  }
  void on(const StopAttempt& stop) {
    AttemptEnded ended;
    ended.trial = stop.trial;
    ended.attempt = stop.attempt;
    ended.outcome = Outcome::kPaused;
    endpoint_.send(ended);
    live_.clear();
  }
  void on(const Shutdown&) { endpoint_.send(NodeOut{"", true}); }
  template <class Other>
  void on(const Other&) {}

  void report() {
    report_at_ += milliseconds(500);
    LiveAttempt& live = live_.front();
    Reported report;
    report.trial = live.trial;
    report.attempt = live.attempt;
    report.iteration = report.iterations_since_restore = ++live.iteration;
    report.time_this_iter = milliseconds(500);
    report.result = pack(Result{{"x", 0.5}});
    endpoint_.send(report);
    ++reported_;
  }

  AgentEndpoint endpoint_;
  std::string name_;
  std::vector<LiveAttempt> live_;  // one at most
  std::uint64_t epoch_ = 0;
  std::uint64_t kept_by_ = 0;
  std::uint64_t reported_ = 0;
  nanoseconds report_at_{};
  int launches_ = 0;
  int given_up_ = 0;
  bool is_set_up_ = false;
  bool reports_ = true;
};

class Cluster {
 public:
  Cluster(const JoinToken& token, int count) {
    for (int i = 0; i < count; ++i) agents_.push_back(std::make_unique<StandIn>(token, i));
  }

  // Runs all of them until `holds` of each one.
  void run_until(const std::string& what, const std::function<bool(const StandIn&)>& holds) {
    run_until(what, [&] {
      return std::ranges::all_of(agents_, [&](const auto& agent) { return holds(*agent); });
    });
  }
  void run_until(const std::string& what, const std::function<bool()>& holds) {
    const auto end = now() + seconds(120);
    while (!holds()) {
      turn();
      if (now() > end) fail(what + " took longer than two minutes");
    }
  }
  void run_for(nanoseconds time) {
    for (const auto end = now() + time; now() < end;) turn();
  }
  const std::vector<std::unique_ptr<StandIn>>& agents() const { return agents_; }

 private:
  // Those with input at once, all of them now and then.
  void turn() {
    std::vector<pollfd> watched;
    for (const auto& agent : agents_) watched.push_back({agent->descriptor(), POLLIN, 0});
    ::poll(watched.data(), watched.size(), 10);
    const bool all = now() - looked_ > milliseconds(100);
    if (all) looked_ = now();
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      if (all || watched[i].revents != 0) agents_[i]->turn();
    }
  }
  std::vector<std::unique_ptr<StandIn>> agents_;
  nanoseconds looked_{};
};

Child start(const std::vector<std::string>& command, const fs::path& output) {
  const FileDescriptor out(
      ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  return Child(spawn({.command = command, .output = out.get()}));
}

void await_file(const fs::path& file, const Child& driver) {
  for (int i = 0; !fs::exists(file); ++i) {
    if (i > 2000 || !driver.is_running()) fail("the driver does not listen");
    std::this_thread::sleep_for(milliseconds(10));
  }
}

std::uint64_t lines_below(const fs::path& experiment) {
  std::uint64_t lines = 0;
  for (const auto& entry : fs::directory_iterator(experiment)) {
    const fs::path file = entry.path() / "result.json";
    if (!fs::exists(file)) continue;
    const std::string text = read_file(file);
    lines += static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
  }
  return lines;
}

struct Times {
  double first = 0;
  double last = 0;
};

Times kill_and_resume(Cluster& cluster, Child& driver, const fs::path& storage) {
  driver.signal(SIGKILL);
  driver.wait();
  const auto began = now();
  driver = start({tune_program(), "resume", storage / "s", "--quiet"}, storage / "resumed");
  const auto since = [&] { return std::chrono::duration<double>(now() - began).count(); };
  const auto is_back = [](const StandIn& agent) { return agent.kept_by() == 2; };
  Times times;
  cluster.run_until("the first machine's return", [&] {
    return std::ranges::any_of(cluster.agents(), [&](const auto& one) { return is_back(*one); });
  });
  times.first = since();
  cluster.run_until("every machine's return", is_back);
  times.last = since();
  return times;
}

void check_nothing_was_lost(Cluster& cluster, Child& driver, const fs::path& storage) {
  cluster.run_for(seconds(1));  // of the new driver
  std::uint64_t reported = 0;
  for (const auto& agent : cluster.agents()) {
    agent->stop_reporting();
    reported += agent->reported();
    if (agent->launches() != 1 || agent->given_up() != 0) fail("a trial was started again");
  }
  cluster.run_until("the last acknowledgement", [](const StandIn& one) { return one.has_told_all(); });
  driver.signal(SIGTERM);
  cluster.run_until("the driver's end", [&] { return driver.has_ended(); });
  const std::uint64_t found = lines_below(storage / "s");
  if (found != reported) fail(fmt::format("{} results were told, {} are there", reported, found));
}

// The driver's own machine is too small for a trial.
Times measure(const Workplace& work, int count) {
  const fs::path storage = work.fresh("results");
  fs::create_directories(storage);
  const std::string file = work.write(
      "sweep.yaml", fmt::format("plugin: {}\ntrainable: empty_steps\nconfig: {{steps: 1}}\n"
                                "num_samples: {}\nmetric: x\nmode: max\nseed: 1\n"
                                "stop: {{training_iteration: 1000000}}\nlisten: lo\n"
                                "cpus: 1\nresources_per_trial: {{cpu: 2}}\n",
                                TUNE_SYNTHETIC_PLUGIN, count));
  Child driver = start({tune_program(), "run", file, "--quiet", "--name", "s", "--storage", storage},
                       storage / "output");
  await_file(storage / "s" / "nodes" / "join", driver);
  Cluster cluster(read_token(storage / "s" / "nodes" / "join"), count);
  cluster.run_until("every trial's start", [](const StandIn& one) { return one.runs(); });
  cluster.run_for(seconds(2));
  const Times times = kill_and_resume(cluster, driver, storage);
  check_nothing_was_lost(cluster, driver, storage);
  return times;
}

void run(const Setting& setting) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const int count = setting.tiny ? 20 : 1000;
  const Workplace work(setting);
  std::vector<double> first, last;
  for (int i = 0; i < setting.runs; ++i) {
    const Times times = measure(work, count);
    first.push_back(times.first);
    last.push_back(times.last);
  }
  std::ranges::sort(first);
  std::ranges::sort(last);
  Table table("A driver killed under machines with running trials");
  table.seconds(fmt::format("resume until {} machines are back", count), last[last.size() / 2],
                "until the first one is", first[first.size() / 2]);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 3);
  return guarded([&] { run(setting); });
}
