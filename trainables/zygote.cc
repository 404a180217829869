#include "trainables/zygote.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/freed_memory.h"
#include "core/rank_start.h"
#include "core/spawn.h"
#include "trainables/channel.h"
#include "trainables/worker.h"
#include "trainables/worker_signals.h"

namespace tune {
namespace {

constexpr int kIgnored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};  // by the zygote
constexpr std::size_t kMaxErrorBytes = kMaxSpawnPacketBytes / 2;

struct Spawn {
  SpawnRequest request;
  int socket = -1;
  int rendezvous = -1;  // -1: none
  int memory = -1;      // -1: none

  void close() const {
    for (const int one : {socket, rendezvous, memory}) {
      if (one >= 0) ::close(one);
    }
  }
};

void say(int control, const ZygoteMessage& message) {
  const std::string packet = encoded(message);
  while (::send(control, packet.data(), packet.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

bool is_socket(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

void take_descriptors(msghdr& message, Spawn& spawn) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    std::array<int, 3> received{-1, -1, -1};
    const std::size_t bytes = std::min(part->cmsg_len - CMSG_LEN(0), sizeof received);
    std::memcpy(received.data(), CMSG_DATA(part), bytes);
    spawn.socket = received[0];
    for (const int one : {received[1], received[2]}) {
      if (one >= 0) (is_socket(one) ? spawn.rendezvous : spawn.memory) = one;
    }
  }
}

// The next request; nothing when the agent has closed the socket.
std::optional<Spawn> receive(int control) {
  static std::array<char, kMaxSpawnPacketBytes> bytes;
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(3 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  ssize_t count = 0;
  do {
    count = ::recvmsg(control, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return std::nullopt;
  Spawn spawn;
  take_descriptors(message, spawn);
  spawn.request = decoded<SpawnRequest>({bytes.data(), static_cast<std::size_t>(count)});
  return spawn;
}

bool is_ignored(int signal) {
  return std::ranges::find(kIgnored, signal) != std::end(kIgnored);
}

// The program's own handlers count no more, here and in the workers. The zygote does it once for
// all workers: in each it would be sixty calls before the fork.
void forget_signals_of_program() {
  for (int signal = 1; signal < NSIG; ++signal) {
    std::signal(signal, is_ignored(signal) ? SIG_IGN : SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In a worker to be.
void take_signals(pid_t agent) {
  obey_only(agent);
  for (const int signal : kIgnored) {
    if (!is_of_agent(signal)) std::signal(signal, SIG_DFL);
  }
}

// The parent that forked this worker ends at once; then the agent becomes the parent.
void wait_for_agent(pid_t intermediate, pid_t agent) {
  while (::getppid() == intermediate) {
    const timespec pause{0, 20'000};
    ::nanosleep(&pause, nullptr);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != agent) ::_exit(kAgentGoneExitCode);
}

// True: its trials use GPUs. The workers, which may run sweeps, do not inherit the word.
bool serves_gpu_trials() {
  const bool serves = std::getenv(kGpuTrialsVariable) != nullptr;
  ::unsetenv(kGpuTrialsVariable);
  return serves;
}

void give(const char* variable, int descriptor) {
  if (descriptor >= 0) ::setenv(variable, std::to_string(descriptor).c_str(), 1);
}

class Zygote {
 public:
  Zygote(int control, ZygoteTrainables trainables)
      : control_(control), trainables_(std::move(trainables)), agent_(::getppid()) {}

  [[noreturn]] void run() {
    ZygoteReady ready;
    ready.error = trainables_.error.substr(0, kMaxErrorBytes);
    ready.trainables = trainables_.infos;
    ready.note = trainables_.note;
    ready.contract = kWorkerContract;
    ready.takes_memory = true;
    say(control_, ready);
    while (const auto spawn = receive(control_)) {
      handle(*spawn);
      spawn->close();
    }
    ::_exit(0);
  }

 private:
  void handle(const Spawn& spawn) {
    const auto index = find(spawn.request.trainable);
    if (!index)
      return refuse(spawn, fmt::format("there is no trainable \"{}\"", spawn.request.trainable));
    // The process in between only forks and ends. It borrows this one's memory: copying the page
    // tables twice would double what a worker costs.
    const pid_t intermediate = ::vfork();
    if (intermediate < 0) return refuse(spawn, fmt::format("vfork: {}", std::strerror(errno)));
    if (intermediate == 0) fork_worker(*index, spawn);
    int status = 0;
    while (::waitpid(intermediate, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) {
      refuse(spawn, fmt::format("the process that starts it ended with status {}", status));
    }
  }

  [[noreturn]] void fork_worker(std::uint32_t index, const Spawn& spawn) {
    // Done here, so that a signal of the agent to the worker is never ignored, and a signal of
    // others never acts.
    take_signals(agent_);
    const pid_t self = ::getpid();
    const pid_t worker = ::fork();
    if (worker == 0) be_worker(index, spawn, self);
    if (worker < 0) {
      refuse(spawn, fmt::format("fork: {}", std::strerror(errno)));
    } else {
      say(control_, Spawned{spawn.request.request, static_cast<std::uint32_t>(worker), {}});
    }
    ::_exit(0);
  }

  [[noreturn]] void be_worker(std::uint32_t index, const Spawn& spawn, pid_t intermediate) {
    is_worker_now();
    ::close(control_);
    ::setsid();
    wait_for_agent(intermediate, agent_);
    give(kRendezvousVariable, spawn.rendezvous);
    give(kSharedMemoryVariable, spawn.memory);
    ::_exit(trainables_.run_worker(index, spawn.socket));
  }

  void refuse(const Spawn& spawn, const std::string& why) {
    say(control_, Spawned{spawn.request.request, 0, why.substr(0, kMaxErrorBytes)});
  }

  std::optional<std::uint32_t> find(const std::string& name) const {
    for (std::uint32_t i = 0; i < trainables_.infos.size(); ++i) {
      if (trainables_.infos[i].name == name) return i;
    }
    return std::nullopt;
  }

  int control_;
  ZygoteTrainables trainables_;
  pid_t agent_;
};

}  // namespace

ZygoteTrainables trainables_of(std::vector<TrainableEntry> entries) {
  ZygoteTrainables trainables;
  for (const TrainableEntry& entry : entries) {
    trainables.infos.push_back({entry.name, entry.can_save, entry.is_function});
  }
  trainables.prepare_for_gpus = prepare_gpu_zygote;
  trainables.run_worker = [entries = std::move(entries)](std::uint32_t index, int socket) {
    return tune::run_worker(entries.at(index), socket);
  };
  return trainables;
}

void run_zygote(int control_socket, ZygoteTrainables trainables) {
  for (const char* variable : {kBindNowVariable, kRendezvousVariable, kSharedMemoryVariable}) {
    ::unsetenv(variable);  // of a sweep within a trial, but the first
  }
  // The experiment's lock, above all, must not live on in programs that a worker starts.
  ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  if (const int null = ::open("/dev/null", O_RDONLY); null >= 0) {
    ::dup2(null, STDIN_FILENO);
    if (null > STDERR_FILENO) ::close(null);
  }
  forget_signals_of_program();
  keep_freed_memory();  // the workers inherit it
  if (serves_gpu_trials() && trainables.error.empty() && trainables.prepare_for_gpus) {
    trainables.note = trainables.prepare_for_gpus();
    forget_signals_of_program();
  }
  Zygote(control_socket, std::move(trainables)).run();
}

}  // namespace tune
