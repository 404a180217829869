#include "core/platform/kept_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

// Never destroyed: trainers may live as long as the program.
struct Privates {
  std::mutex mutex;
  std::set<FileDescriptor*> all;
};
Privates& privates() {
  static auto& instance = *new Privates;
  return instance;
}

[[noreturn]] void child_main(const std::function<int(int)>& body, int alive) {
  for (FileDescriptor* each : privates().all) each->reset();
  setsid();  // the terminal's signals are the parent's business
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  adopt_descendants();
  int code = 3;
  try {
    code = body(alive);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    code = exit_code(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
  }
  end_descendants();
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

PrivateDescriptor::PrivateDescriptor(int descriptor) : FileDescriptor(descriptor) {
  const std::lock_guard lock(privates().mutex);
  privates().all.insert(this);
}

PrivateDescriptor::PrivateDescriptor(PrivateDescriptor&& other) noexcept
    : PrivateDescriptor(other.release()) {}

PrivateDescriptor::~PrivateDescriptor() {
  const std::lock_guard lock(privates().mutex);
  privates().all.erase(this);
}

KeptProcess::KeptProcess(const std::function<int(int alive)>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("making a pipe: {}", std::strerror(errno)));
  }
  const FileDescriptor read_end(ends[0]);
  alive_.reset(ends[1]);
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    throw Error(ErrorCode::kProcess,
                fmt::format("starting a process: fork: {}", std::strerror(errno)));
  }
  if (pid == 0) child_main(body, read_end.get());
  child_ = Child(pid);
}

KeptProcess::~KeptProcess() {
  alive_.reset();
  wait();
}

}  // namespace tune
