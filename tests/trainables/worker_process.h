// A worker in a process of its own, and a scripted agent at the other end of its socket.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/frame.h"
#include "core/worker_contract.h"
#include "trainables/worker.h"

namespace tune::testing {

inline StartWorker start_in(const std::filesystem::path& directory) {
  StartWorker start;
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
  explicit WorkerProcess(const TrainableEntry& entry)
      : WorkerProcess([&](int socket) { return run_worker(entry, socket); }) {}
  // `run` is the worker's whole life.
  explicit WorkerProcess(const std::function<int(int socket)>& run) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::runtime_error("socketpair");
    }
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
      ::_exit(run(ends[1]));
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
  // Whether it waits, having read everything that it was sent, and has sent nothing. A step that
  // sleeps does not wait. Throws when it does not come to rest.
  bool says_nothing() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is_at_rest()) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("it never waits");
      std::this_thread::yield();
    }
    char byte;
    return ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
  }

  pid_t pid() const { return pid_; }
  // Waits for its end; a wait status.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  void hang_up() { ::close(std::exchange(socket_, -1)); }

 private:
  bool is_at_rest() const {
    int unread = 0;
    ::ioctl(socket_, SIOCOUTQ, &unread);
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const std::size_t name_end = stat.rfind(')');
    return unread == 0 && name_end != std::string::npos && stat.compare(name_end, 4, ") S ") == 0 &&
           !is_in_sleep();
  }
  // In a call that time alone ends. A system may keep the calls of a process to itself.
  bool is_in_sleep() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/syscall");
    std::string call;
    if (!(file >> call)) return false;
    if (call == "running") return true;  // since its state was read
    return call == std::to_string(SYS_clock_nanosleep) || call == std::to_string(SYS_nanosleep);
  }

  pid_t pid_ = 0;
  int socket_ = -1;
  FrameBuffer input_;
};

}  // namespace tune::testing
