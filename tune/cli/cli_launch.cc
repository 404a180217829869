#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/deaf_thread.h"
#include "core/platform/kept_process.h"
#include "core/platform/node.h"
#include "core/platform/process.h"
#include "core/platform/rank_group.h"
#include "core/platform/rank_place.h"
#include "tune/cli/cli_commands.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

constexpr int kMaxRanks = 4096;  // on a node; each takes three descriptors and a process
constexpr int kMaxNodes = 100'000;

Error refusal(const std::string& message) {
  return Error(ErrorCode::kBadInput, fmt::format("tune launch: {}", message));
}

int ranks_of_node(const std::string& text) {
  if (text == "gpu") {
    const int gpus = gpu_count();
    if (gpus > 0) return gpus;
    throw refusal(
        "--nproc-per-node gpu: there is no GPU here (no NVIDIA driver, or CUDA_VISIBLE_DEVICES "
        "hides "
        "them all): give a number of ranks instead");
  }
  int ranks = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (problem != std::errc() || end != text.data() + text.size() || ranks < 1 ||
      ranks > kMaxRanks) {
    throw refusal(fmt::format("--nproc-per-node '{}': expected 1 to {}, or gpu", text, kMaxRanks));
  }
  return ranks;
}

void check_program(const std::vector<std::string>& program) {
  if (program.empty()) throw refusal("which program? see tune launch --help");
  if (!program[0].starts_with('-')) return;
  const std::string option = program[0].substr(0, program[0].find('='));
  throw refusal(
      fmt::format("unknown option {}{}; see tune launch --help", program[0],
                  did_you_mean(option, {"--nproc-per-node", "--nnodes", "--node-rank",
                                        "--master-addr", "--master-port", "--local-rank-arg"})));
}

RankPlace make_place(const LaunchArguments& arguments) {
  RankPlace place;
  place.local_ranks = ranks_of_node(arguments.ranks);
  place.nodes = arguments.nodes;
  place.node = arguments.node;
  if (!arguments.master_address.empty()) place.master_address = arguments.master_address;
  place.master_port = arguments.master_port;
  if (place.nodes < 1 || place.nodes > kMaxNodes) {
    throw refusal(fmt::format("--nnodes {}: expected 1 to {}", place.nodes, kMaxNodes));
  }
  if (place.node < 0 || place.node >= place.nodes) {
    throw refusal(fmt::format("--node-rank {}: expected 0 to {} of --nnodes {}", place.node,
                              place.nodes - 1, place.nodes));
  }
  if (place.master_port < 0 || place.master_port > 65535) {
    throw refusal(fmt::format("--master-port {}: expected 0 to 65535", place.master_port));
  }
  if (place.nodes > 1 && place.master_port == 0) {
    throw refusal("--master-port 0 takes a free port, of which other nodes know nothing: give one");
  }
  if (place.nodes > 1 && arguments.master_address.empty()) {
    throw refusal(
        fmt::format("--nnodes {} without --master-addr: ranks of other nodes do not find rank 0 at "
                    "{}: give the "
                    "address of node 0, or {} when all run on this machine",
                    place.nodes, place.master_address, place.master_address));
  }
  const int cpus = static_cast<int>(discover_node({}).cpu_units / kUnit);
  place.threads = std::max(1, cpus / place.local_ranks);
  if (place.node == 0) {
    place.master_port = listen_at(place.master_address, place.master_port).port;  // the rank's then
  }
  return place;
}

pid_t start_rank(const LaunchArguments& arguments, const RankPlace& place, int rank, int output,
                 int errors) {
  SpawnOptions options;
  options.command = arguments.program;
  if (arguments.local_rank_argument) {
    options.command.push_back(fmt::format("--local-rank={}", rank));
  }
  options.environment = started_rank_environment(place, rank);
  options.output = output;
  options.errors = errors;
  options.new_session = true;
  options.death_signal = SIGKILL;
  try {
    return spawn(options);
  } catch (const ProgramError& error) {
    throw refusal(error.what());
  }
}

// Returns the exit code, after a message about the reason when it is not 0.
int conclude(const RankGroupEnd& end) {
  if (end.signal != 0) {
    fmt::print(stderr, "tune launch: ended by {}\n", signal_name(end.signal));
    return 128 + end.signal;
  }
  if (end.failure) {
    const RankGroupEnd::Failure& failure = *end.failure;
    fmt::print(stderr, "error: rank {} (pid {}) {}: all ranks were ended\n", failure.rank,
               failure.pid, describe_exit(failure.wait_status));
    return exit_code_of(failure.wait_status);
  }
  if (end.output_error == 0) return 0;
  fmt::print(stderr, "error: passing on what the ranks print: {}: all ranks were ended\n",
             std::strerror(end.output_error));
  return end.output_error == EPIPE ? 128 + SIGPIPE : 3;
}

}  // namespace

int launch_command(const LaunchArguments& arguments) {
  check_program(arguments.program);
  const RankPlace place = make_place(arguments);
  adopt_descendants();  // of the group, should the process that looks after it be killed
  // A signal that comes before this process watches for them waits: it would end with ranks that run.
  std::optional<Deafness> deafness(std::in_place);
  KeptProcess group([&](int alive) {
    name_visible_gpus();
    RankGroupOptions options;
    options.ranks = place.local_ranks;
    options.first_rank = place.first_rank();
    options.alive = alive;
    options.start = [&](int rank, int output, int errors) {
      return start_rank(arguments, place, rank, output, errors);
    };
    return conclude(run_rank_group(options));
  });
  SignalWatch signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT});
  deafness.reset();
  while (true) {
    pollfd watched[] = {{group.descriptor(), POLLIN, 0}, {signals.descriptor(), POLLIN, 0}};
    poll(watched, 2, -1);
    for (const int number : signals.take()) kill(group.pid(), number);
    if (watched[0].revents != 0) break;
  }
  const int status = group.wait();
  if (WIFSIGNALED(status)) {
    fmt::print(stderr, "error: the process that looks after the ranks was {}: all were ended\n",
               describe_exit(status));
    end_descendants();
  }
  return exit_code_of(status);
}

}  // namespace tune
