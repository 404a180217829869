// A driver with many machines: how fast they join, what they may report, and how fast trials of one
// step pass through them.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <variant>

#include <fmt/format.h>

#include "bench/harness.h"
#include "bench/stand_ins.h"

namespace tune::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr const char* kHelp =
    "Runs tune run --listen on this host with 1,000 stand-in agents, each with its own encrypted\n"
    "connection over loopback. Timed: from the first connection until the last agent has heard of\n"
    "the experiment; 125 reports of each agent's trial, 25 a second, until the last one is\n"
    "acknowledged (the driver has it in its journal); and, with 100 agents that run one trial at "
    "a\n"
    "time, 1,000 trials of one step from the first launch until the last end is acknowledged. It\n"
    "fails when a result is missing or a trial is started again. Bare limit: the same against a\n"
    "socket that answers and keeps nothing, in a thread of this program.\n\n"
    "bench_cluster [--tiny] [--runs N] [--keep]";

struct Sizes {
  int agents = 1000;
  std::uint64_t reports = 125;  // of each
  int runners = 100;
  int trials = 1000;
};
constexpr nanoseconds kReportEvery = milliseconds(40);

// Answers as a driver does that decides nothing and writes nothing.
class BareDriver {
 public:
  explicit BareDriver(int trials) : left_(trials) {
    port_ = endpoint_.listen({"127.0.0.1"}, 0, keys_);
    keys_.addresses = {fmt::format("127.0.0.1:{}", port_)};
    thread_ = std::thread([this] { work(); });
  }
  ~BareDriver() {
    ends_ = true;
    thread_.join();
  }
  BareDriver(const BareDriver&) = delete;

  JoinToken token() const { return token_of(keys_, "ab12c"); }

 private:
  void work() {
    while (!ends_) {
      pollfd watched{endpoint_.descriptor(), POLLIN, 0};
      ::poll(&watched, 1, 1);
      for (const Peers::Told& told : endpoint_.receive(now())) {
        endpoint_.acknowledge(told.agent, told.position);
        const bool greets = std::holds_alternative<Apart<AgentHello>>(told.event);
        if (greets) endpoint_.send(told.agent, setup());
        const bool has_room = std::holds_alternative<ZygoteReady>(told.event) ||
                              std::holds_alternative<AttemptEnded>(told.event);
        if (has_room && left_ > 0) launch(told.agent);
      }
      endpoint_.flush(now());
    }
  }
  static SetupExperiment setup() {
    SetupExperiment setup;
    setup.trainable = "empty_steps";
    return setup;
  }
  void launch(AgentNumber agent) {
    Launch launch;
    launch.trial = {static_cast<std::uint32_t>(--left_)};
    launch.attempt = {1};
    endpoint_.send(agent, launch);
  }

  Workplace room_{Setting{}};  // for the socket of a driver's own agent, which is not there
  DriverEndpoint endpoint_{"ipc://" + (room_.path() / "socket").string(), 1};
  JoinKeys keys_ = make_keys();
  int port_ = 0;
  int left_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

struct Times {
  double join = 0;
  double reports = 0;  // a second
  double trials = 0;
};

double since(nanoseconds began) {
  return std::chrono::duration<double>(now() - began).count();
}

void begin_trials(StandIns& machines) {
  for (const auto& one : machines.all()) one->be_ready();
}

// The first two figures.
void join_and_report(StandIns& machines, const Sizes& sizes, nanoseconds began, Times& times) {
  machines.run_until("joining", [](const StandIn& one) { return one.is_set_up(); });
  times.join = since(began);
  for (const auto& one : machines.all()) one->stop_reporting();
  begin_trials(machines);
  machines.run_until("every trial's start", [](const StandIn& one) { return one.runs(); });
  machines.run_until("quiet", [](const StandIn& one) { return one.has_told_all(); });
  const nanoseconds reports_begin = now();
  for (const auto& one : machines.all()) one->report(sizes.reports);
  machines.run_until("reporting", [](const StandIn& one) { return one.has_reported_all(); });
  const auto count = static_cast<double>(machines.all().size() * sizes.reports);
  times.reports = count / since(reports_begin);
}

// Returns the seconds from the first launch to the last end.
double run_trials(StandIns& machines, const Sizes& sizes) {
  machines.run_until("joining", [](const StandIn& one) { return one.is_set_up(); });
  begin_trials(machines);
  machines.run_until("the first launch", [&] {
    return std::ranges::any_of(machines.all(), [](const auto& one) { return one->launches() > 0; });
  });
  const nanoseconds began = now();
  machines.run_until("the last end", [&] {
    int ended = 0;
    for (const auto& one : machines.all()) ended += one->has_told_all() ? one->ended() : 0;
    return ended >= sizes.trials;
  });
  return since(began);
}

void check(StandIns& machines, std::uint64_t results, std::uint64_t launches) {
  std::uint64_t reported = 0, launched = 0;
  for (const auto& one : machines.all()) {
    reported += one->reported();
    launched += static_cast<std::uint64_t>(one->launches());
    if (one->given_up() != 0) fail("an attempt was not to be kept");
  }
  if (launched != launches) fail(fmt::format("{} launches for {} trials", launched, launches));
  if (results != reported)
    fail(fmt::format("{} results were told, {} are there", reported, results));
}

Times measure(const Workplace& work, const Sizes& sizes) {
  Times times;
  {
    ListeningSweep sweep(work.fresh("reports"), {.trials = sizes.agents});
    const nanoseconds began = now();
    StandIns machines(sweep.token(), sizes.agents, {.report_every = kReportEvery});
    join_and_report(machines, sizes, began, times);
    sweep.end(machines);
    check(machines, sweep.results(), static_cast<std::uint64_t>(sizes.agents));
  }
  ListeningSweep sweep(work.fresh("trials"), {.trials = sizes.trials, .iterations = 1});
  StandIns machines(sweep.token(), sizes.runners, {});
  times.trials = run_trials(machines, sizes);
  sweep.run_out(machines);
  check(machines, sweep.results(), static_cast<std::uint64_t>(sizes.trials));
  return times;
}

Times measure_bare(const Sizes& sizes) {
  Times times;
  {
    BareDriver driver(sizes.agents);
    const nanoseconds began = now();
    StandIns machines(driver.token(), sizes.agents, {.report_every = kReportEvery});
    join_and_report(machines, sizes, began, times);
  }
  BareDriver driver(sizes.trials);
  StandIns machines(driver.token(), sizes.runners, {});
  times.trials = run_trials(machines, sizes);
  return times;
}

void run(const Setting& setting) {
  allow_many_files();
  Sizes sizes;
  if (setting.tiny) sizes = {.agents = 20, .reports = 5, .runners = 5, .trials = 20};
  const Workplace work(setting);
  Times with, bare;
  const auto measured =
      medians(setting.runs,
              {[&] { return (with = measure(work, sizes)).join; }, [&] { return with.reports; },
               [&] { return with.trials; }, [&] { return (bare = measure_bare(sizes)).join; },
               [&] { return bare.reports; }, [&] { return bare.trials; }});
  Table table("One driver and many machines");
  table.seconds(fmt::format("{} agents join", sizes.agents), measured[0], "a bare socket",
                measured[3]);
  table.rate(fmt::format("reports of {} agents", sizes.agents), "/s", measured[1], "a bare socket",
             measured[4]);
  table.seconds(fmt::format("{} trials of one step on {} agents", sizes.trials, sizes.runners),
                measured[2], "a bare socket", measured[5]);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 3);
  return guarded([&] { run(setting); });
}
