// A driver that is killed under many machines with running trials: how soon the next one has all of
// them back, and whether anything was lost, told twice or started again.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "bench/stand_ins.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kHelp =
    "Runs tune run --listen on this host with 1,000 stand-in agents, each with its own encrypted\n"
    "connection and a trial that reports twice a second; kills the driver, and resumes. Timed:\n"
    "from the start of tune resume until the last agent is told which attempts to keep. Bare\n"
    "limit: the same until the first one is. It fails when a trial is started again or a result\n"
    "is missing.\n\n"
    "bench_reattach [--tiny] [--runs N] [--keep]";

struct Times {
  double first = 0;
  double last = 0;
};

Times kill_and_resume(StandIns& machines, ListeningSweep& sweep) {
  sweep.driver().signal(SIGKILL);
  sweep.driver().wait();
  const auto began = now();
  sweep.resume();
  const auto since = [&] { return std::chrono::duration<double>(now() - began).count(); };
  const auto is_back = [](const StandIn& one) { return one.kept_by() == 2; };
  Times times;
  machines.run_until("the first machine's return", [&] {
    return std::ranges::any_of(machines.all(), [&](const auto& one) { return is_back(*one); });
  });
  times.first = since();
  machines.run_until("every machine's return", is_back);
  times.last = since();
  return times;
}

void check_nothing_was_lost(StandIns& machines, ListeningSweep& sweep) {
  machines.run_for(seconds(1));  // of the new driver
  std::uint64_t reported = 0;
  for (const auto& one : machines.all()) {
    one->stop_reporting();
    reported += one->reported();
    if (one->launches() != 1 || one->given_up() != 0) fail("a trial was started again");
  }
  machines.run_until("the last acknowledgement",
                     [](const StandIn& one) { return one.has_told_all(); });
  sweep.end(machines);
  const std::uint64_t found = sweep.results();
  if (found != reported) fail(fmt::format("{} results were told, {} are there", reported, found));
}

Times measure(const Workplace& work, int count) {
  ListeningSweep sweep(work.fresh("results"), {.trials = count});
  StandIns machines(sweep.token(), count, {.report_every = milliseconds(500)});
  machines.run_until("joining", [](const StandIn& one) { return one.is_set_up(); });
  for (const auto& one : machines.all()) one->be_ready();
  machines.run_until("every trial's start", [](const StandIn& one) { return one.runs(); });
  machines.run_for(seconds(2));
  const Times times = kill_and_resume(machines, sweep);
  check_nothing_was_lost(machines, sweep);
  return times;
}

void run(const Setting& setting) {
  allow_many_files();
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
