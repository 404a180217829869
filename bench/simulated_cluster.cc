// The driver's own work with 1,000 slots: its time per event and its memory per finished trial,
// with simulated nodes and a store that forgets. Other programs measure the rest.
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/harness.h"
#include "core/error.h"
#include "core/wire.h"
#include "simulator/bare_cluster.h"
#include "tune/search/searcher.h"

namespace tune::bench {
namespace {

using simulator::BareOptions;
using simulator::BareSweep;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kHelp =
    "Runs sweeps of 10 results a trial on 125 simulated nodes of 8 slots and on 1,000 of one.\n"
    "Counted is what a driver does itself: reading messages, journal entries with snapshots,\n"
    "the controller, answers; not the nodes, files, store and network. Bare limits: reading one\n"
    "result's message and packing its journal entry, no more; the bytes of a trial's packed\n"
    "configuration and last result. Then what it costs that 10,000 nodes join. Then single turns with 64 slots whose trials have one step,\n"
    "under a searcher that learns and under random search, which is the bare limit.";

constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;

std::size_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double microseconds_an_event(BareSweep& sweep) {
  return std::chrono::duration<double, std::micro>(sweep.spent()).count() /
         static_cast<double>(sweep.driver().events());
}

[[noreturn]] void fail(const std::string& why) {
  throw Error(ErrorCode::kBadInput, why);
}

// Of a result's message: taken apart, and put into a journal entry of its own.
double microseconds_a_message() {
  constexpr int kMessages = 200'000;
  Reported report;
  report.result = pack(Result{{"loss", 2.3}, {"mean_accuracy", 0.9}});
  const std::string message = encoded(AgentEvent(report));
  std::size_t bytes = 0;
  const double start = cpu_time();
  for (int i = 0; i < kMessages; ++i) {
    Turn turn;
    turn.events.emplace_back(FromAgent{AgentNumber{0}, decoded<AgentEvent>(message)});
    bytes += encoded(turn).size();
  }
  const double spent = cpu_time() - start;
  if (bytes < kMessages * message.size()) fail("the messages got lost: nothing was measured");
  return 1e6 * spent / kMessages;
}

double packed_bytes(const Controller& controller) {
  std::size_t bytes = 0;
  for (const Trial& trial : controller.trials()) {
    bytes += trial.config.bytes.size();
    if (trial.last) bytes += trial.last->result.bytes.size();
  }
  return static_cast<double>(bytes);
}

void measure(const BareOptions& options) {
  malloc_trim(0);
  const std::size_t before = allocated_bytes();
  BareSweep sweep(options);
  while (!sweep.driver().controller().is_over()) sweep.run_round();
  sweep.forget_nodes();
  const std::size_t bytes = allocated_bytes() - before;
  const auto& counts = sweep.driver().controller().counts();
  if (counts[static_cast<std::size_t>(TrialStatus::kTerminated)] != options.trials ||
      sweep.driver().logger().results() != options.trials * options.iterations) {
    fail("not every trial ended with all of its results: nothing was measured");
  }
  fmt::print("{:>12} {:>8} {:>10} {:>12.2f} {:>8.2f} {:>12.1f} {:>14.1f} {:>12.2f} {:>10.2f}\n",
             fmt::format("{} x {}", options.nodes, options.slots_per_node), options.trials,
             sweep.driver().events(), microseconds_an_event(sweep), microseconds_a_message(),
             static_cast<double>(sweep.store().take_peak()) / kMiB,
             static_cast<double>(sweep.store().snapshot_bytes()) / kMiB,
             static_cast<double>(bytes) / kKiB / options.trials,
             packed_bytes(sweep.driver().controller()) / kKiB / options.trials);
}

// The longest turns of a sweep of trials of one step, 64 of which end at the same time, or each in
// a turn of its own.
void measure_turns(const SearcherSpec& searcher, std::uint32_t nodes, std::uint32_t trials) {
  BareOptions options;
  options.nodes = nodes;
  options.slots_per_node = 64 / nodes;
  options.trials = trials;
  options.iterations = 1;
  options.searcher = searcher;
  options.times_turns = true;
  BareSweep sweep(options);
  while (!sweep.driver().controller().is_over()) sweep.run_round();
  std::vector<Duration> times = sweep.driver().turn_times();
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    const auto place = static_cast<std::size_t>(share * static_cast<double>(times.size() - 1));
    return std::chrono::duration<double, std::milli>(times[place]).count();
  };
  fmt::print(
      "{:>12} {:>14} {:>8} {:>8} {:>12.3f} {:>12.3f} {:>12.3f} {:>18.2f}\n",
      fmt::format("{} x {}", nodes, options.slots_per_node), searcher.name(), trials, times.size(),
      at(0.5), at(0.99), at(1),
      std::chrono::duration<double, std::milli>(sweep.driver().proposing()).count() / trials);
}

void measure_turns(std::uint32_t trials) {
  fmt::print("\n{:>12} {:>14} {:>8} {:>8} {:>12} {:>12} {:>12} {:>18}\n", "nodes x slots",
             "searcher", "trials", "turns", "median, ms", "99 %, ms", "longest, ms",
             "ms a suggestion");
  for (const std::uint32_t nodes : {64u, 1u}) {
    for (const SearcherSpec& searcher : {gp(), tpe(), random_search()}) {
      measure_turns(searcher, nodes, trials);
    }
  }
}

// Until each node has joined and has its first trial.
void measure_joins(std::uint32_t nodes) {
  BareOptions options;
  options.nodes = options.trials = nodes;
  options.slots_per_node = 1;
  BareSweep sweep(options);
  const auto running = static_cast<std::size_t>(TrialStatus::kRunning);
  if (sweep.driver().controller().counts()[running] != nodes) {
    fail("not every node got a trial: nothing was measured");
  }
  const double seconds = std::chrono::duration<double>(sweep.spent()).count();
  fmt::print("{:>12} {:>14.3f} {:>12.1f}\n", nodes, seconds, 1e6 * seconds / nodes);
}

// This many seconds of a day with 1,000 trials that report once a second, from its first second or
// to its last.
void measure_day(std::uint64_t begin, std::uint64_t length) {
  BareOptions options;
  options.nodes = 1000;  // an entry for each report
  options.slots_per_node = 1;
  options.begin = begin;
  options.iterations = length + 1;
  options.snapshot_takes = seconds(30);
  BareSweep sweep(options);
  for (std::uint64_t round = 0; round < length; ++round) sweep.run_round();
  fmt::print("{:>12} {:>10} {:>12.2f} {:>12} {:>16.1f} {:>16.2f}\n", begin, length,
             microseconds_an_event(sweep), sweep.store().snapshots(),
             static_cast<double>(sweep.store().take_peak()) / kMiB,
             static_cast<double>(sweep.store().snapshot_bytes()) / kMiB);
}

int run(int argc, char** argv) {
  bool tiny = false;
  std::uint64_t day = 0;
  std::vector<std::uint32_t> trials = {1000, 10'000, 100'000};
  CLI::App app(kHelp);
  app.add_flag("--tiny", tiny, "in a moment, as a test");
  app.add_option("--trials", trials, "sizes of the sweeps");
  app.add_option("--day", day,
                 "instead: so many seconds from the beginning and to the end of a day of 1,000\n"
                 "trials that report once a second; 86400 for all of it");
  CLI11_PARSE(app, argc, argv);
  if (tiny) trials = {200};
  if (day == 0) {
    fmt::print("{:>12} {:>8} {:>10} {:>12} {:>8} {:>12} {:>14} {:>12} {:>10}\n", "nodes x slots",
               "trials", "events", "us an event", "bare", "stream, MiB", "snapshot, MiB",
               "KiB a trial", "bare");
    for (const auto& [nodes, slots] : {std::pair(125, 8), std::pair(1000, 1)}) {
      for (const std::uint32_t count : trials) {
        BareOptions options;
        options.nodes = static_cast<std::uint32_t>(nodes);
        options.slots_per_node = static_cast<std::uint32_t>(slots);
        options.trials = count;
        measure(options);
      }
    }
    fmt::print("\n{:>12} {:>14} {:>12}\n", "nodes", "they join, s", "us a node");
    for (const std::uint32_t nodes : {1000u, 10'000u}) measure_joins(tiny ? nodes / 100 : nodes);
    measure_turns(tiny ? 100 : 2000);
    return 0;
  }
  constexpr std::uint64_t kDay = 86'400;
  day = std::min(day, kDay);
  fmt::print("{:>12} {:>10} {:>12} {:>12} {:>16} {:>16}\n", "from second", "seconds", "us an event",
             "snapshots", "stream peak, MiB", "snapshot, MiB");
  measure_day(0, day);
  if (day < kDay) measure_day(kDay - day, day);
  return 0;
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  int code = 0;
  const int failed = tune::bench::guarded([&] { code = tune::bench::run(argc, argv); });
  return failed != 0 ? failed : code;
}
