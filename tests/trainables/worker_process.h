// A worker in a process of its own, and a scripted agent at the other end of its socket.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/frame.h"
#include "core/messages.h"
#include "trainables/worker.h"

namespace tune::testing {

inline StartWorker start_in(const std::filesystem::path& directory) {
  StartWorker start;
  start.experiment.experiment_id = "0a1b2";
  start.experiment.experiment_directory = directory;
  start.experiment.checkpoint = {.frequency = 0, .at_end = false, .keep = 1};
  start.launch.trial = {7};
  start.launch.attempt = {1};
  start.launch.config = pack(Config());
  start.launch.seed = 11;
  start.trial_id = trial_id("0a1b2", {7});
  start.trial_directory = directory / start.trial_id;
  start.once_directory = directory / "once";
  return start;
}

class WorkerProcess {
 public:
  explicit WorkerProcess(const TrainableEntry& entry) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::runtime_error("socketpair");
    }
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
      ::_exit(run_worker(entry, ends[1]));
    }
    ::close(ends[1]);
    socket_ = ends[0];
    const timeval limit{30, 0};  // a lost worker fails the test instead of stopping it
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  WorkerProcess(const TrainableEntry& entry, const StartWorker& start) : WorkerProcess(entry) {
    send(start);
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess() {
    if (socket_ >= 0) ::close(socket_);
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  void send(const WorkerCommand& command) {
    std::string bytes;
    append_frame(bytes, encoded(command));
    if (::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("the worker does not read");
    }
  }

  // The next event; nothing when the worker has closed its end.
  std::optional<WorkerEvent> next() {
    for (;;) {
      if (const auto frame = input_.next()) return decoded<WorkerEvent>(*frame);
      char bytes[4096];
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count == 0) return std::nullopt;
      if (count < 0) throw std::runtime_error("the worker says nothing");
      input_.append({bytes, static_cast<std::size_t>(count)});
    }
  }
  template <class Event>
  Event expect() {
    const auto event = next();
    if (!event) throw std::runtime_error("the worker is gone");
    if (!std::holds_alternative<Event>(*event)) {
      throw std::runtime_error("another event came: number " + std::to_string(event->index()));
    }
    return std::get<Event>(*event);
  }
  // Whether something is to be read within the time.
  bool says_nothing() {
    char byte;
    return ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
  }

  // Waits for its end; a wait status.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  void hang_up() { ::close(std::exchange(socket_, -1)); }

 private:
  pid_t pid_ = 0;
  int socket_ = -1;
  FrameBuffer input_;
};

}  // namespace tune::testing
