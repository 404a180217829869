#include "core/platform/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/begun_program.h"
#include "core/platform/side_output.h"

extern char** environ;

namespace tune {

void FileDescriptor::reset(int descriptor) {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = descriptor;
}

// ---- Spawn --------------------------------------------------------------------------------------

namespace {

// Everything the child needs, made before the fork: after it only async-signal-safe calls are
// allowed.
struct Prepared {
  explicit Prepared(const SpawnOptions& options) : words(options.command), keep(options.keep) {
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    program = options.program.empty() ? argv[0] : options.program.c_str();
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      if (!options.environment.contains(std::string(text.substr(0, text.find('='))))) {
        variables.emplace_back(text);
      }
    }
    for (const auto& [name, value] : options.environment) variables.push_back(name + "=" + value);
    for (std::string& variable : variables) envp.push_back(variable.data());
    envp.push_back(nullptr);
    std::sort(keep.begin(), keep.end());
  }
  std::vector<std::string> words;
  std::vector<std::string> variables;
  const char* program;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::vector<int> keep;
};

void close_others(const std::vector<int>& keep, int report) {
  unsigned next = 3;
  std::size_t i = 0;
  while (true) {
    // The smallest descriptor to keep that is not below `next`.
    unsigned kept = ~0U;
    for (i = 0; i < keep.size(); ++i) {
      const auto candidate = static_cast<unsigned>(keep[i]);
      if (candidate >= next) kept = std::min(kept, candidate);
    }
    if (static_cast<unsigned>(report) >= next) kept = std::min(kept, static_cast<unsigned>(report));
    if (kept == ~0U) break;
    if (kept > next) close_range(next, kept - 1, 0);
    next = kept + 1;
  }
  close_range(next, ~0U, 0);
}

[[noreturn]] void run_child(const SpawnOptions& options, Prepared& prepared, int report,
                            pid_t parent) {
  if (options.death_signal != 0) {
    prctl(PR_SET_PDEATHSIG, options.death_signal);
    if (getppid() != parent) _exit(127);
  }
  if (options.new_session) setsid();
  for (int number = 1; number < NSIG; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    // A terminal's signal that came since the fork was not meant for a session of its own.
    if (options.new_session) signal(number, SIG_IGN);
    signal(number, SIG_DFL);
  }
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int number : options.blocked) sigaddset(&blocked, number);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  if (options.output >= 0) {
    dup2(options.output, STDOUT_FILENO);
    dup2(options.output, STDERR_FILENO);
  }
  if (options.errors >= 0) dup2(options.errors, STDERR_FILENO);
  close_others(prepared.keep, report);
  for (int descriptor : prepared.keep) fcntl(descriptor, F_SETFD, 0);
  execvpe(prepared.program, prepared.argv.data(), prepared.envp.data());
  const int cause = errno;
  [[maybe_unused]] const auto written = write(report, &cause, sizeof cause);
  _exit(127);
}

}  // namespace

BegunProgram begin_program(const SpawnOptions& options) {
  TUNE_CHECK(!options.command.empty());
  Prepared prepared(options);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("making a pipe: {}", std::strerror(errno)));
  }
  FileDescriptor read_end(ends[0]);
  const FileDescriptor write_end(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const pid_t parent = getpid();
  // This process's handlers must not run in the child, where they would answer for this process.
  sigset_t all, former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  const pid_t pid = fork();
  if (pid == 0) run_child(options, prepared, ends[1], parent);
  const int cause = errno;
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  if (pid > 0) return {pid, std::move(read_end)};
  throw Error(ErrorCode::kProcess,
              fmt::format("starting {}: fork: {}", options.command[0], std::strerror(cause)));
}

std::optional<int> why_not_executed(const FileDescriptor& report) {
  int cause = 0;
  ssize_t count = 0;
  do count = read(report.get(), &cause, sizeof cause);
  while (count < 0 && errno == EINTR);
  if (count < 0) return std::nullopt;
  return cause;
}

pid_t spawn(const SpawnOptions& options) {
  const BegunProgram begun = begin_program(options);
  std::optional<int> cause;
  while (!(cause = why_not_executed(begun.report))) {
    pollfd watched{begun.report.get(), POLLIN, 0};
    poll(&watched, 1, -1);
  }
  if (*cause == 0) return begun.pid;
  waitpid(begun.pid, nullptr, 0);
  throw ProgramError(ErrorCode::kProcess,
                     fmt::format("starting {}: {}", options.command[0], std::strerror(*cause)));
}

FileDescriptor process_descriptor(pid_t pid) {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return fmt::format("killed by signal {} ({})", number, signal_name(number));
  }
  return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// ---- This process -------------------------------------------------------------------------------

namespace {

template <class Visit>
void for_each_name(const char* directory, Visit visit) {
  DIR* open = opendir(directory);
  if (open == nullptr) return;
  while (const dirent* entry = readdir(open)) {
    if (entry->d_name[0] != '.') visit(entry->d_name);
  }
  closedir(open);
}

}  // namespace

void expect_descriptors(int wanted, const std::string& doing) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  int open = 0;
  for_each_name("/proc/self/fd", [&](const char*) { ++open; });
  const auto needed = static_cast<rlim_t>(open) + static_cast<rlim_t>(wanted);
  if (needed <= limit.rlim_cur) return;
  throw Error(
      ErrorCode::kProcess,
      fmt::format(
          "{} takes {} open files, the limit is {}: raise it (ulimit -n {}), or start fewer", doing,
          needed, limit.rlim_cur, needed));
}

void adopt_descendants() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

namespace {

// Reads the list of all processes: not every kernel lists the children of one.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for_each_name("/proc", [&](const char* name) {
    if (std::strspn(name, "0123456789") != std::strlen(name)) return;
    const std::string path = fmt::format("/proc/{}/stat", name);
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char text[512];  // "pid (name) state parent ...", the name of at most 64 bytes
    const ssize_t count = read(file.get(), text, sizeof text - 1);
    if (count <= 0) return;
    text[count] = 0;
    const char* after_name = std::strrchr(text, ')');
    char state = 0;
    int parent = 0;
    if (after_name == nullptr || std::sscanf(after_name + 1, " %c %d", &state, &parent) != 2)
      return;
    if (parent == getpid()) found.push_back(std::atoi(name));
  });
  return found;
}

}  // namespace

void end_descendants() {
  // Children of a killed child become children next, so each round sees one generation.
  while (true) {
    for (const pid_t child : children()) kill(child, SIGKILL);
    if (waitpid(-1, nullptr, 0) < 0 && errno != EINTR) return;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

int thread_count() {
  int count = 0;
  for_each_name("/proc/self/task", [&](const char*) { ++count; });
  return std::max(1, count);
}

bool cuda_is_initialised(const char* descriptors) {
  bool found = false;
  for_each_name(descriptors, [&](const char* name) {
    char target[64] = {};
    const std::string link = fmt::format("{}/{}", descriptors, name);
    if (readlink(link.c_str(), target, sizeof target - 1) <= 0) return;
    found = found || std::string_view(target).starts_with("/dev/nvidia");
  });
  return found;
}

std::string why_unfit_to_fork() {
  if (cuda_is_initialised()) return "CUDA is initialised";
  const int threads = thread_count();
  return threads > 1 ? fmt::format("it runs {} threads", threads) : std::string();
}

// ---- Signals ------------------------------------------------------------------------------------

namespace {

// The handler's data; set while it is not installed.
int signal_pipe = -1;  // where it writes
int signals_taken = 0;
int second_signal = 0;
bool has_last_resort = false;
timer_t last_resort_timer;
itimerspec last_resort_patience;
std::string_view last_resort_words;

void end_by_second_signal() {
  write_if_it_fits(STDERR_FILENO, last_resort_words);  // a stopped terminal must not keep it
  signal(second_signal, SIG_DFL);
  raise(second_signal);
}

void take_signal(int number, siginfo_t* info, void*) {
  const int saved = errno;
  if (info->si_code == SI_TIMER) {
    end_by_second_signal();
  } else {
    const auto byte = static_cast<unsigned char>(number);
    [[maybe_unused]] const auto written = write(signal_pipe, &byte, 1);
    const bool is_told = number != SIGUSR1;  // the kernel says that a caller is gone
    if (is_told && ++signals_taken == 2 && has_last_resort) {
      second_signal = number;
      timer_settime(last_resort_timer, 0, &last_resort_patience, nullptr);
    }
  }
  errno = saved;
}

}  // namespace

SignalWatch::SignalWatch(std::vector<int> signals, LastResort last_resort)
    : last_resort_(std::move(last_resort)) {
  TUNE_CHECK(signal_pipe == -1);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("making a pipe: {}", std::strerror(errno)));
  }
  read_.reset(ends[0]);
  write_.reset(ends[1]);
  signal_pipe = ends[1];
  signals_taken = 0;
  if (last_resort_.patience.count() > 0) prepare_last_resort(signals.front());
  for (int number : signals) {
    struct sigaction action {};
    struct sigaction former {};
    action.sa_sigaction = take_signal;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigaction(number, &action, &former);
    former_.emplace_back(number, former);
  }
}

// A timer that sends one of the watched signals, so that no further signal is taken from the
// program.
void SignalWatch::prepare_last_resort(int signal) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  if (timer_create(CLOCK_MONOTONIC, &event, &last_resort_timer) != 0) return;
  has_last_resort = true;
  last_resort_words = last_resort_.words;
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(last_resort_.patience);
  const std::chrono::nanoseconds rest = last_resort_.patience - whole;
  last_resort_patience.it_value = {whole.count(), rest.count()};
}

SignalWatch::~SignalWatch() {
  if (std::exchange(has_last_resort, false)) timer_delete(last_resort_timer);
  for (const auto& [number, former] : former_) sigaction(number, &former, nullptr);
  signal_pipe = -1;
}

std::vector<int> SignalWatch::take() {
  std::vector<int> taken;
  unsigned char bytes[64];
  while (true) {
    const ssize_t count = read(read_.get(), bytes, sizeof bytes);
    if (count <= 0) return taken;
    taken.insert(taken.end(), bytes, bytes + count);
  }
}

}  // namespace tune
