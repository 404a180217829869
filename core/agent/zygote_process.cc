#include "core/agent/zygote_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "core/agent_contract.h"
#include "core/error.h"
#include "core/platform/begun_program.h"
#include "core/platform/files.h"
#include "core/spawn.h"

namespace tune {
namespace {

struct Ends {
  FileDescriptor agent;
  FileDescriptor zygote;
};

Ends control_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("starting the process that loads the trainables: "
                                                 "socketpair: {}",
                                                 std::strerror(errno)));
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

void ZygoteProcess::fork(const std::function<void(int)>& main,
                         const std::vector<int>& close_in_child) {
  Ends ends = control_pair();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw Error(ErrorCode::kProcess, fmt::format("starting the process that forks the trials: {}",
                                                 std::strerror(errno)));
  }
  if (pid == 0) {
    ends.agent.reset();
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int descriptor : close_in_child) ::close(descriptor);
    main(ends.zygote.release());
    ::_exit(0);
  }
  control_ = std::move(ends.agent);
  pid_ = pid;
}

void ZygoteProcess::adopt(pid_t pid, FileDescriptor control) {
  ::fcntl(control.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(control.get(), F_SETFD, FD_CLOEXEC);
  control_ = std::move(control);
  pid_ = pid;
}

namespace {

// The text with "{control}" replaced by the number.
std::string with_control(std::string text, const std::string& number) {
  constexpr std::string_view kMark = "{control}";
  if (const auto at = text.find(kMark); at != std::string::npos) {
    text.replace(at, kMark.size(), number);
  }
  return text;
}

}  // namespace

ZygoteProcess::Log ZygoteProcess::Log::open(const std::string& path) {
  Log log{path,
          FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644))};
  if (!log.file.is_open()) throw file_error("opening", path, errno);
  struct stat status {};
  if (::fstat(log.file.get(), &status) == 0) log.start = static_cast<std::size_t>(status.st_size);
  return log;
}

void ZygoteProcess::execute(const Program& program, Log log) {
  Ends ends = control_pair();
  SpawnOptions options;
  options.command = program.command;
  const std::string control = std::to_string(ends.zygote.get());
  for (std::string& word : options.command) word = with_control(word, control);
  for (const auto& [name, value] : program.environment) {
    options.environment[name] = with_control(value, control);
  }
  options.environment[kBindNowVariable] = "1";
  options.keep = {ends.zygote.get()};
  if (program.lock_fd >= 0) options.keep.push_back(program.lock_fd);
  options.death_signal = SIGKILL;

  if (log.file.is_open()) options.output = log.file.get();
  BegunProgram begun = begin_program(options);
  pid_ = begun.pid;
  report_ = std::move(begun.report);
  program_ = options.command.front();
  log.file.reset();
  log_ = std::move(log);
  status_.reset();
  requests_.clear();  // to one that died: what is still wanted of them is asked for again
  ended_ = false;
  control_ = std::move(ends.agent);
}

std::optional<std::string> ZygoteProcess::take_refusal() {
  if (!report_.is_open()) return std::nullopt;
  const std::optional<int> cause = why_not_executed(report_);
  if (cause) report_.reset();
  if (!cause || *cause == 0) return std::nullopt;
  if (!status_) ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  status_.reset();
  control_.reset();
  requests_.clear();
  return fmt::format("starting {}: {}", program_, std::strerror(*cause));
}

void ZygoteProcess::request(const SpawnRequest& request, Given given) {
  requests_.push_back({encoded(request), std::move(given)});
  flush();  // it forks while the next request is made
}

void ZygoteProcess::flush() {
  while (control_.is_open() && !requests_.empty() && send(requests_.front())) requests_.pop_front();
}

// Returns false when the socket takes no more now.
bool ZygoteProcess::send(const Request& request) {
  iovec part{const_cast<char*>(request.packet.data()), request.packet.size()};
  std::array<int, 3> descriptors{request.given.socket.get()};
  std::size_t count = 1;
  const FileDescriptor& memory = request.given.memory;
  if (request.given.rendezvous.is_open()) descriptors[count++] = request.given.rendezvous.get();
  if (takes_memory_ && memory.is_open()) descriptors[count++] = memory.get();
  const std::size_t bytes = sizeof(int) * count;
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof descriptors)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(control_.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  // Any other error means that the zygote is dead: its end will be noticed and the worker asked for
  // again.
  return sent >= 0 ||
         (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS && errno != ETOOMANYREFS);
}

std::vector<ZygoteMessage> ZygoteProcess::receive() {
  std::vector<ZygoteMessage> messages;
  std::array<char, kMaxSpawnPacketBytes> bytes;
  while (control_.is_open()) {
    const ssize_t count = ::recv(control_.get(), bytes.data(), bytes.size(), 0);
    if (count > 0) {
      auto message = decoded<ZygoteMessage>({bytes.data(), static_cast<std::size_t>(count)});
      if (auto* ready = std::get_if<ZygoteReady>(&message)) {
        takes_memory_ = ready->takes_memory;
        *ready = understood(std::move(*ready));
      }
      messages.push_back(std::move(message));
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else {
      control_.reset();
      requests_.clear();
    }
  }
  return messages;
}

void ZygoteProcess::end() {
  control_.reset();
  requests_.clear();
  ended_ = true;
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

void ZygoteProcess::reaped(int wait_status) {
  status_ = wait_status;
  pid_ = -1;
}

std::optional<ZygoteProcess::End> ZygoteProcess::take_end() {
  if (!status_ || control_.is_open() || report_.is_open()) return std::nullopt;
  End end{describe_exit(*status_)};
  status_.reset();
  if (!ended_) {
    end.log = log_.path;
    end.log_start = log_.start;
  }
  return end;
}

std::string ZygoteProcess::End::with_log() const {
  if (log.empty()) return how;
  std::error_code unreadable;
  const std::size_t size = std::filesystem::file_size(log, unreadable);
  if (unreadable || size <= log_start) return how;
  const std::size_t bytes = std::min(kStderrTailBytes, size - log_start);
  return how + "; it printed:\n" + tail_lines(log, kStderrTailLines, bytes);
}

}  // namespace tune
