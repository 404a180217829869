// The cost of a trial whose program is /bin/true, beside a loop that only forks and executes it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"

namespace tune::bench {
namespace {

constexpr const char* kHelp =
    "Times tune run of 4,000 trials whose program is /bin/true, to its exit, as many at a time as\n"
    "there are cores. Bare limit: a loop that forks and executes /bin/true as often, with as many\n"
    "at a time. The difference is what tune adds.\n\n"
    "bench_command [--tiny] [--runs N]";

constexpr const char* kProgram = "/bin/true";

struct Load {
  std::uint32_t trials = 0;
  unsigned slots = 0;  // at a time
};

double run_sweep(const Workplace& work, const Load& load) {
  const std::string file = work.write(
      "sweep.yaml", fmt::format("command: [{}, \"${{x}}\"]\nreport: fd\nconfig: {{x: {{uniform: [0, "
                                "1]}}}}\nnum_samples: {}\nseed: 1\ncpus: {}\n",
                                kProgram, load.trials, load.slots));
  return time_program({tune_program(), "run", file, "--quiet", "--name", "s", "--storage",
                       work.fresh("results")});
}

double spawn_alone(const Load& load) {
  return time_call([&] {
    unsigned running = 0;
    const auto wait_for_one = [&running] {
      int status = 0;
      if (::wait(&status) < 0 || status != 0) throw Error(ErrorCode::kProcess, "/bin/true failed");
      --running;
    };
    for (std::uint32_t i = 0; i < load.trials; ++i) {
      if (running == load.slots) wait_for_one();
      const pid_t child = ::fork();
      if (child < 0) throw Error(ErrorCode::kProcess, "fork");
      if (child == 0) {
        ::execl(kProgram, kProgram, "0.5", nullptr);
        ::_exit(127);
      }
      ++running;
    }
    while (running > 0) wait_for_one();
  });
}

void run(const Setting& setting) {
  const Workplace work(setting);
  const Load load{setting.tiny ? 20u : 4'000u, std::max(1u, std::thread::hardware_concurrency())};
  const auto times = medians(setting.runs, {[&] { return run_sweep(work, load); },
                                            [&] { return spawn_alone(load); }});
  const double trials = load.trials;
  Table table("programs as trials");
  table.rate(fmt::format("{} trials of /bin/true, {} at a time", load.trials, load.slots), "/s",
             trials / times[0], "fork and exec", trials / times[1]);
  table.note(fmt::format("tune adds {:.2f} ms a trial on each of {} cores, {:.2f} ms to the sweep",
                         1e3 * load.slots * (times[0] - times[1]) / trials, load.slots,
                         1e3 * (times[0] - times[1]) / trials));
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 3);
  return guarded([&] { run(setting); });
}
