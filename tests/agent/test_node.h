// An agent in a process of its own and the driver's end of its socket in the test.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/agent/agent.h"
#include "core/platform/transport.h"
#include "trainables/registry.h"
#include "trainables/temporary_folder.h"
#include "trainables/zygote.h"

namespace tune::testing {

// The plugin with the synthetic trainables, or another one.
inline std::vector<std::string> plugin_zygote(std::string plugin = TUNE_BINARY_DIR
                                              "/lib/libtune_synthetic.so") {
  return {TUNE_BINARY_DIR "/bin/tune-worker", "--plugin", std::move(plugin), "--control-fd",
          "{control}"};
}

class TestNode {
 public:
  // With entries the zygote is forked in process, else the command is executed.
  explicit TestNode(std::vector<TrainableEntry> entries, std::vector<std::string> command = {},
                    int lock_fd = -1, std::int64_t trial_memory_bytes = 0,
                    std::string zygote_log = {}) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what the agent leaves behind would come to the test
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    AgentOptions options;
    options.driver_address = "ipc://" + (folder_.path() / "driver").string();
    options.driver_alive_fd = ends[0];
    options.runtime_directory = folder_.path() / "runtime";
    options.resources.cpu_units = 4 * kUnit;
    options.hostname = "node";
    options.ip = "127.0.0.1";
    options.zygote_command = std::move(command);
    options.zygote_log =
        zygote_log.empty() ? (folder_.path() / "zygote.log").string() : std::move(zygote_log);
    options.lock_fd = lock_fd;
    options.trial_memory_bytes = trial_memory_bytes;
    if (!entries.empty()) {
      options.zygote = [&](int control) { run_zygote(control, trainables_of(entries)); };
    }
    std::fflush(nullptr);
    agent_ = ::fork();
    if (agent_ == 0) {
      ::close(ends[1]);
      for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
      int code = 99;
      try {
        code = run_agent(options);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "agent: %s\n", error.what());
      }
      ::_exit(code);
    }
    ::close(ends[0]);
    alive_ = ends[1];
    driver_.emplace(options.driver_address, 1);
    expect<Apart<AgentHello>>();
  }
  TestNode(const TestNode&) = delete;
  TestNode& operator=(const TestNode&) = delete;
  ~TestNode() {
    drop_driver();
    if (agent_ > 0) {
      ::kill(agent_, SIGKILL);
      ::waitpid(agent_, nullptr, 0);
    }
  }

  const std::filesystem::path& path() const { return folder_.path(); }
  pid_t agent() const { return agent_; }
  std::filesystem::path trial(std::uint32_t number) const {
    return folder_.path() / "experiment" / trial_id("0a1b2", {number});
  }

  void set_up(const std::string& trainable, SetupExperiment setup = {}) {
    setup.experiment_id = "0a1b2";
    setup.experiment_directory = folder_.path() / "experiment";
    setup.trainable = trainable;
    send(setup);
  }
  void launch(std::uint32_t trial, const Config& config, Launch launch = {}) {
    launch.trial = {trial};
    if (launch.attempt.value == 0) launch.attempt = {1};
    launch.config = pack(config);
    send(launch);
  }
  void send(const Command& command) {
    driver_->send({0}, command);
    driver_->flush(now());
  }

  // The next event of this kind; earlier ones are dropped. Throws after a minute.
  template <class Event>
  Event expect() {
    return expect<Event>([](const Event&) { return true; });
  }
  template <class Event, class Wanted>
  Event expect(Wanted wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < end) {
      while (!events_.empty()) {
        const AgentEvent event = std::move(events_.front());
        events_.pop_front();
        if (const auto* one = std::get_if<Event>(&event); one && wanted(*one)) return *one;
      }
      pollfd readable{driver_->descriptor(), POLLIN, 0};
      ::poll(&readable, 1, 100);
      for (Peers::Told& told : driver_->receive(now())) {
        driver_->acknowledge(told.agent, told.position);
        events_.push_back(std::move(told.event));
      }
      driver_->flush(now());
    }
    throw std::runtime_error("the event did not come");
  }
  AttemptEnded expect_end(std::uint32_t trial) {
    return expect<AttemptEnded>([&](const AttemptEnded& end) { return end.trial.value == trial; });
  }

  std::vector<pid_t> children_of_agent() const {
    const std::string pid = std::to_string(agent_);
    std::ifstream list("/proc/" + pid + "/task/" + pid + "/children");
    std::vector<pid_t> children;
    for (pid_t child = 0; list >> child;) children.push_back(child);
    return children;
  }
  void drop_driver() {
    if (alive_ >= 0) ::close(std::exchange(alive_, -1));
  }
  int wait_for_agent() {
    int status = 0;
    ::waitpid(std::exchange(agent_, 0), &status, 0);
    return status;
  }
  // Keeps the driver's end going until the agent has ended.
  int shut_down() {
    send(Shutdown{});
    return wait_acknowledging();
  }
  int wait_acknowledging() {
    int status = 0;
    while (::waitpid(agent_, &status, WNOHANG) == 0) {
      pollfd readable{driver_->descriptor(), POLLIN, 0};
      ::poll(&readable, 1, 10);
      for (const Peers::Told& told : driver_->receive(now())) {
        driver_->acknowledge(told.agent, told.position);
      }
      driver_->flush(now());
    }
    agent_ = 0;
    return status;
  }

 private:
  static std::chrono::nanoseconds now() {
    return std::chrono::steady_clock::now().time_since_epoch();
  }

  TemporaryFolder folder_;
  pid_t agent_ = 0;
  int alive_ = -1;
  std::optional<DriverEndpoint> driver_;
  std::deque<AgentEvent> events_;
};

// A process that is gone, or will be within a minute; reaps it when it has come to the test.
inline bool is_gone(pid_t pid) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    ::waitpid(pid, nullptr, WNOHANG);
    if (::kill(pid, 0) != 0) return true;
    ::poll(nullptr, 0, 5);
  }
  return false;
}

}  // namespace tune::testing
