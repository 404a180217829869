// Runs seeds of the simulator; replays one of them step by step.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/random.h"
#include "simulator/simulated_pool.h"
#include "simulator/simulation.h"

namespace {

using namespace tune::simulator;

std::uint64_t running_seed = 0;

// A failed TUNE_CHECK ends the process: print at least the seed.
void tell_seed(int) {
  std::fprintf(stderr, "ended by a check in seed %llu\n",
               static_cast<unsigned long long>(running_seed));
}

void print(const char* what, std::uint64_t count) {
  std::printf("%12llu %s\n", static_cast<unsigned long long>(count), what);
}

void print(const Tally& tally) {
  for (const Tallied& one : kTallied) print(one.what, tally.*one.count);
}

int run_pools(std::uint64_t first, std::uint64_t seeds, bool traced) {
  for (std::uint64_t i = 0; i < seeds; ++i) {
    running_seed = first + i;
    const PoolVerdict verdict = simulate_pool(running_seed, traced);
    if (!verdict.violation) continue;
    std::fprintf(stderr, "seed %llu breaks a promise: %s\n  %s\n",
                 static_cast<unsigned long long>(running_seed),
                 verdict.violation->invariant.c_str(), verdict.violation->what.c_str());
    return 1;
  }
  std::printf("%llu pools kept every promise\n", static_cast<unsigned long long>(seeds));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  RunOptions options;
  std::uint64_t seeds = 1000;
  std::uint64_t first = 1;
  std::uint64_t only = 0;
  bool digests = false;
  bool pools = false;
  CLI::App app(
      "Simulates experiments drawn from seeds: the real controller, schedulers, journal, agents "
      "and\n"
      "links on virtual time, with failures of everything around them, and checks after every "
      "event\n"
      "that the promises hold. Ends at the first seed in which one is broken.");
  app.add_option("--seeds", seeds, "how many seeds to run");
  app.add_option("--first", first, "the first of them");
  auto* seed = app.add_option("--seed", only, "run this one only");
  app.add_flag("--trace", options.traced, "print every event, command and effect");
  app.add_option("--agents", options.limits.agents, "nodes at most");
  app.add_option("--trials", options.limits.trials, "trials at most");
  app.add_option("--iterations", options.limits.iterations, "iterations of a trial at most");
  app.add_flag("--digests", digests, "print a digest of each seed's journal");
  app.add_flag("--pool", pools, "simulate pools and their engines instead of experiments");
  CLI11_PARSE(app, argc, argv);
  if (seed->count() > 0) first = only, seeds = 1;
  std::signal(SIGABRT, tell_seed);
  if (pools) return run_pools(first, seeds, options.traced);

  Tally tally;
  std::uint64_t events = 0;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    options.seed = running_seed = first + i;
    if (options.traced) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(options.seed),
                  draw_scenario(options.seed, options.limits).describe().c_str());
    }
    const Verdict verdict = simulate(options);
    events += verdict.events;
    tally.add(verdict.tally);
    if (digests) {
      std::printf("%llu: %llu events, %zu bytes, %016llx\n",
                  static_cast<unsigned long long>(options.seed),
                  static_cast<unsigned long long>(verdict.events), verdict.journal.size(),
                  static_cast<unsigned long long>(tune::hash64(verdict.journal)));
    }
    if (!verdict.violation) continue;
    std::fprintf(stderr, "seed %llu breaks a promise after %llu events: %s\n  %s\n",
                 static_cast<unsigned long long>(options.seed),
                 static_cast<unsigned long long>(verdict.events),
                 verdict.violation->invariant.c_str(), verdict.violation->what.c_str());
    return 1;
  }
  std::printf("%llu seeds kept every promise\n", static_cast<unsigned long long>(seeds));
  print("events", events);
  print(tally);
  return 0;
}
