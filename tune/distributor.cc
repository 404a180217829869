#include "tune/distributor.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "core/current_exception.h"
#include "core/platform/forked_rank.h"
#include "core/platform/kept_process.h"
#include "core/platform/node.h"
#include "core/platform/process.h"
#include "core/platform/rank_group.h"
#include "core/platform/rank_place.h"
#include "core/wire.h"

namespace tune {

namespace {

constexpr int kMaxProcesses = 4096;
constexpr std::size_t kMaxPacketBytes = 64u << 10;
constexpr std::size_t kMaxPieceBytes = 32u << 10;  // of a value; larger ones travel in pieces
constexpr std::size_t kMaxMessageBytes = 16u << 10;
constexpr std::chrono::seconds kTimeOfTheCause{1};

// Messages of the ranks, and of the process that looks after them, to the caller; one packet each.
struct RankSaid {
  enum Kind : std::uint32_t { kValue, kThrew, kSubmitted, kGroupFailed, kNotStarted };
  std::uint32_t kind = kValue;
  std::int64_t rank = 0;
  std::string text;  // a piece of the packed value, a message, a name, how the rank ended
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.kind, s.rank, s.text);
  }
};

void say(int channel, const RankSaid& said) {
  const std::string bytes = encoded(said);
  ssize_t sent = 0;
  do sent = send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
}

std::optional<RankSaid> hear(int channel) {
  std::string bytes(kMaxPacketBytes, '\0');
  ssize_t count = 0;
  do count = recv(channel, bytes.data(), bytes.size(), 0);
  while (count < 0 && errno == EINTR);
  if (count <= 0) return std::nullopt;  // the other end is gone
  return decoded<RankSaid>({bytes.data(), static_cast<std::size_t>(count)});
}

// ---- In a rank ----------------------------------------------------------------------------------

struct RankStart {
  const std::function<Value(const RankContext&)>& function;
  const std::filesystem::path& folder;
  ForkedRanks ranks = {};
  int channel = -1;
};

void say_value(int channel, const Value& value) {
  const std::string bytes = pack(value).bytes;
  for (std::size_t at = 0; at < bytes.size(); at += kMaxPieceBytes) {
    say(channel, {RankSaid::kValue, 0, bytes.substr(at, kMaxPieceBytes)});
  }
}

int call_function(const RankStart& start, int rank) {
  const auto told = [&](const std::string& name) {
    say(start.channel, {RankSaid::kSubmitted, rank, name});
  };
  const RankContext context(rank, start.ranks.place.local_ranks, NamedResults(start.folder, told));
  try {
    const Value value = start.function(context);
    if (rank == 0) say_value(start.channel, value);
    return 0;
  } catch (...) {
    const std::string message = describe_current_exception();
    say(start.channel, {RankSaid::kThrew, rank, message.substr(0, kMaxMessageBytes)});
    // The rank that caused the group's failure is to end first.
    if (code_of_current_exception() == ErrorCode::kProcess) {
      std::this_thread::sleep_for(kTimeOfTheCause);
    }
    return 1;
  }
}

// ---- In the process that looks after them -------------------------------------------------------

int look_after_ranks(const RankStart& start, int alive) {
  RankGroupOptions options;
  options.ranks = start.ranks.place.local_ranks;
  options.alive = alive;
  options.start = [&](int rank, int output, int errors) {
    return fork_rank(start.ranks, rank, output, errors, [&] { return call_function(start, rank); });
  };
  RankGroupEnd end;
  try {
    end = run_rank_group(options);
  } catch (const std::exception& error) {
    say(start.channel, {RankSaid::kNotStarted, 0, error.what()});
    return 0;
  }
  if (end.failure) {
    say(start.channel,
        {RankSaid::kGroupFailed, end.failure->rank, describe_exit(end.failure->wait_status)});
  } else if (end.signal != 0) {
    say(start.channel, {RankSaid::kGroupFailed, 0, "ended by " + signal_name(end.signal)});
  } else if (end.output_error != 0) {
    say(start.channel, {RankSaid::kGroupFailed, 0,
                        fmt::format("ended, as what it prints could not be passed on: {}",
                                    std::strerror(end.output_error))});
  }
  return 0;
}

// ---- In the caller ------------------------------------------------------------------------------

int checked_processes(const Distributor& settings) {
  const auto refuse = [](const std::string& message) {
    return Error(ErrorCode::kBadInput, "tune::Distributor: " + message);
  };
  if (settings.num_processes < 1 || settings.num_processes > kMaxProcesses) {
    throw refuse(
        fmt::format("num_processes {}: expected 1 to {}", settings.num_processes, kMaxProcesses));
  }
  if (!settings.local_mode) {
    throw refuse("local_mode false: there are no other nodes to run on yet: set it to true");
  }
  if (!settings.use_gpu) return settings.num_processes;
  const int gpus = gpu_count();
  if (gpus == 0) {
    throw refuse(
        "use_gpu without GPUs (no NVIDIA driver, or CUDA_VISIBLE_DEVICES hides them all): set "
        "use_gpu to false to run on CPUs");
  }
  if (settings.num_processes > gpus) {
    fmt::print(stderr, "warning: num_processes {} but {} GPU{} here: {} rank{} started\n",
               settings.num_processes, gpus, gpus == 1 ? " is" : "s are", gpus,
               gpus == 1 ? " is" : "s are");
  }
  return std::min(settings.num_processes, gpus);
}

// Everything heard until all senders are gone.
struct Heard {
  std::string value;
  std::map<std::int64_t, std::string> threw;  // by rank
  std::optional<RankSaid> failed;

  void take(RankSaid said, const Distributor& settings) {
    switch (said.kind) {
      case RankSaid::kValue:
        value += said.text;
        return;
      case RankSaid::kThrew:
        threw[said.rank] = std::move(said.text);
        return;
      case RankSaid::kSubmitted:
        if (settings.on_result) settings.on_result(said.text, settings.folder / said.text);
        return;
      case RankSaid::kNotStarted:
        throw Error(ErrorCode::kProcess, "tune::Distributor: " + said.text);
      default:
        failed = std::move(said);
    }
  }
};

}  // namespace

Value Distributor::run_ranks(const std::function<Value(const RankContext&)>& function) const {
  check_fit_to_fork("tune::Distributor");
  int ends[2];
  RankStart start{.function = function, .folder = folder};
  start.ranks.place.local_ranks = checked_processes(*this);
  start.ranks.place.threads = std::max(
      1, static_cast<int>(discover_node({}).cpu_units / kUnit) / start.ranks.place.local_ranks);
  start.ranks.use_gpu = use_gpu;
  Listener listener = listen_at(start.ranks.place.master_address, 0);
  start.ranks.place.master_port = listener.port;
  start.ranks.rendezvous = listener.socket.get();
  FileDescriptor memory = memory_of_ranks();
  start.ranks.memory = memory.get();
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("making a socket: {}", std::strerror(errno)));
  }
  PrivateDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  start.channel = theirs.get();
  std::cout.flush();
  KeptProcess group([&](int alive) { return look_after_ranks(start, alive); });
  theirs.reset();
  listener.socket.reset();
  memory.reset();

  Heard heard;
  try {
    while (auto said = hear(ours.get())) heard.take(std::move(*said), *this);
  } catch (...) {
    ours.reset();  // so that nobody waits for this process to listen
    throw;
  }
  const int status = group.wait();
  if (status != 0) {
    throw Error(ErrorCode::kProcess,
                fmt::format("tune::Distributor: the process that looks after the ranks {}",
                            describe_exit(status)));
  }
  if (heard.failed) {
    const int rank = static_cast<int>(heard.failed->rank);
    const auto threw = heard.threw.find(rank);
    throw RankError(rank, threw != heard.threw.end()
                              ? fmt::format("rank {} threw: {}", rank, threw->second)
                              : fmt::format("rank {} {}", rank, heard.failed->text));
  }
  if (heard.value.empty()) throw RankError(0, "rank 0 ended before its function returned");
  return unpack({heard.value});
}

}  // namespace tune
