// A plugin of functions for groups whose ranks do not all do the same.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include "core/checkpoint_name.h"
#include "rank_variables.h"
#include "trainables/registry.h"

namespace {

using tune::Config;
using tune::Session;
namespace fs = std::filesystem;

std::string own_file(const Session& session) {
  return "rank-" + std::to_string(session.context().rank());
}

// The ranks do not wait for each other: another one may still be in its save.
void await_checkpoint(const tune::Context& context, int iteration) {
  const auto attempt = tune::AttemptNumber{static_cast<std::uint32_t>(context.attempt())};
  const fs::path folder = context.trial_directory() / tune::checkpoint_name(iteration, attempt);
  while (!fs::exists(folder)) ::usleep(1000);
}

// Counts. In step 3 of its first attempt, when step 2's checkpoint is whole, one rank ends before
// its time:
//
//   rank   which
//   how    return | exit | done (it says so with its result)
//   waits  false   the others wait for it, then, as in a collective that nobody ends
void deserter(const Config& config, Session& session) {
  const tune::Context& context = session.context();
  const bool is_deserter = context.rank() == config.get<int>("rank");
  const auto how = config.get<std::string>("how");
  int count = 0;
  if (const auto folder = session.checkpoint()) std::ifstream(*folder / own_file(session)) >> count;
  for (bool goes_on = true; goes_on;) {
    const bool is_time = ++count == 3 && context.attempt() == 1;
    if (is_time && is_deserter) await_checkpoint(context, 2);
    if (is_time && is_deserter && how == "return") return;
    if (is_time && is_deserter && how == "exit") std::exit(0);
    while (is_time && config.get_or("waits", false)) ::pause();
    const bool done = is_time && is_deserter && how == "done";
    goes_on = session.report({{"count", count}, {"done", done}}, [&](const fs::path& folder) {
      std::ofstream(folder / own_file(session)) << count;
    });
  }
}

// Reports more than a stopped driver may be sent: 300 results of 64 KiB.
void talker(const Config&, Session& session) {
  const std::string text(64 << 10, 't');
  std::ofstream steps(session.context().trial_directory() / own_file(session));
  for (int step = 1; step <= 300; ++step) {
    steps << step << std::endl;
    if (!session.report({{"count", step}, {"text", text}})) return;
  }
}

// Counts, in steps of `step_ms`. Each rank saves a file of its own, and needs those of all ranks to
// go on; with `differs` they write one of the same name as well. Rank `fails` ends in step 3.
void sharded(const Config& config, Session& session) {
  const tune::Context& context = session.context();
  int count = 0;
  if (const auto folder = session.checkpoint()) {
    for (int rank = 0; rank < context.world_size(); ++rank) {
      const fs::path shard = *folder / "shards" / ("rank-" + std::to_string(rank));
      if (!fs::exists(shard)) throw std::runtime_error(shard.string() + " is not there");
      std::ifstream(shard) >> count;
    }
  }
  std::printf("rank %d begins at %d\n", context.rank(), count);
  std::fflush(stdout);
  for (bool goes_on = true; goes_on;) {
    ::usleep(1000 * static_cast<unsigned>(config.get_or("step_ms", 1)));
    if (++count == 3 && context.rank() == config.get_or("fails", -1)) {
      std::fprintf(stderr, "rank %d has no data\n", context.rank());
      std::exit(3);
    }
    goes_on = session.report({{"count", count}}, [&](const fs::path& folder) {
      fs::create_directories(folder / "shards");
      std::ofstream(folder / "shards" / own_file(session)) << count;
      std::ofstream(folder / "same") << count;
      if (config.get_or("differs", false)) std::ofstream(folder / "model") << context.rank();
    });
  }
}

// Notes the GPUs it sees.
void viewer(const Config&, Session& session) {
  std::ofstream(session.context().trial_directory() / own_file(session))
      << std::getenv("CUDA_VISIBLE_DEVICES") << " of which " << std::getenv("TUNE_DEVICE_INDEX");
  session.report({{"count", 1}});
}

// In step 2 rank 1 works alone for 4 s (how: works), hangs there or is stopped; rank 2 waits for it
// in that step, as in a collective, and rank 0 when it has finished it.
void loner(const Config& config, Session& session) {
  const tune::Context& context = session.context();
  const auto how = config.get<std::string>("how");
  const fs::path sign = context.trial_directory() / "rank-1-is-done";
  for (int step = 1;; ++step) {
    if (step == 2 && context.rank() == 1) {
      context.alone([&] {
        if (how == "stops") std::raise(SIGSTOP);
        while (how == "hangs") ::pause();
        ::sleep(4);
      });
      std::ofstream(sign) << step;
    }
    while (step == 2 && context.rank() == 2 && !fs::exists(sign)) ::usleep(1000);
    if (!session.report({{"count", step}})) return;
  }
}

// Notes whether it finds the variables of every rank.
void reader(const Config&, Session& session) {
  const tune::Context& context = session.context();
  std::ofstream(context.trial_directory() / own_file(session))
      << tune::testing::rank_variables_seen(context.rank(), context.world_size());
  session.report({{"count", 1}});
}

}  // namespace

TUNE_FUNCTION(deserter)
TUNE_FUNCTION(talker)
TUNE_FUNCTION(reader)
TUNE_FUNCTION(loner)
TUNE_FUNCTION(viewer)
TUNE_FUNCTION(sharded)
