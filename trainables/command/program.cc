#include "trainables/command/program.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace tune {
namespace {

constexpr const char* kDescriptorVariable = "TUNE_FD";

struct Pipe {
  FileDescriptor ours;
  FileDescriptor theirs;
};

[[noreturn]] void throw_errno(const char* doing) {
  throw Error(ErrorCode::kProcess, fmt::format("{}: {}", doing, std::strerror(errno)));
}

Pipe output_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("making a pipe for the program's output");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Pipe descriptor_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_errno("making a socket pair for TUNE_FD");
  }
  // Some shells redirect to descriptors of one digit only.
  const int low = ::fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (low >= 0) ::close(std::exchange(ends[1], low));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

void Program::start(const ProgramStart& start) {
  SpawnOptions options;
  options.command = start.words;
  options.environment = start.environment;
  options.death_signal = SIGKILL;
  Pipe output;
  Pipe descriptor;
  FileDescriptor errors;
  if (start.has_descriptor) {
    descriptor = descriptor_pair();
    options.keep = {descriptor.theirs.get()};
    options.environment[kDescriptorVariable] = std::to_string(descriptor.theirs.get());
  } else {
    ::unsetenv(kDescriptorVariable);  // of a sweep within a trial
  }
  if (start.reads_output) {
    output = output_pipe();
    options.output = output.theirs.get();
    errors.reset(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));  // spawn() puts the pipe there first
    options.errors = errors.get();
  }
  child_ = Child(spawn(options));
  is_started_ = true;
  output_ = std::move(output.ours);
  descriptor_ = std::move(descriptor.ours);
}

// ---- Words --------------------------------------------------------------------------------------

Program::Read Program::read(FileDescriptor& from, std::string& bytes) {
  bytes.clear();
  if (!from.is_open()) return Read::kClosed;
  std::array<char, 64u << 10> buffer;
  for (;;) {
    const ssize_t count =
        &from == &descriptor_
            ? ::recv(from.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)
            : ::read(from.get(), buffer.data(), buffer.size());
    if (count > 0) {
      bytes.assign(buffer.data(), static_cast<std::size_t>(count));
      return Read::kBytes;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Read::kNothing;
    from.reset();
    return Read::kClosed;
  }
}

bool Program::say(std::string_view line) {
  while (descriptor_.is_open() && !line.empty()) {
    const ssize_t sent =
        ::send(descriptor_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno != EAGAIN && errno != EWOULDBLOCK;  // else its end is closed
    line.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// ---- The end ------------------------------------------------------------------------------------

void Program::terminate() {
  ::kill(0, SIGTERM);
  ::kill(0, SIGCONT);
}

bool Program::is_group_left() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  if (!has_children()) return false;
  siginfo_t info{};
  return ::waitid(P_PGID, static_cast<id_t>(::getpgrp()), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void Program::kill_rest() {
  if (has_children()) end_descendants();
}

}  // namespace tune
