// For tests with real processes: a temporary folder, programs run in it, and the processes and
// files that they leave behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tune {

struct Finished {
  int code = -1;  // exit code, or 128 + signal
  std::string out;
  std::string err;
};

// A program that runs in the background; killed with its process group when it goes out of scope.
class Running {
 public:
  Running(std::vector<std::string> command, const std::filesystem::path& directory,
          const std::map<std::string, std::string>& environment);
  ~Running();
  Running(const Running&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  std::string said() const;                                 // on stderr until now
  bool ends_within(std::chrono::microseconds limit) const;  // wait() is still to be called
  // Waits for its end; after the limit it is killed and the code is -1.
  Finished wait(std::chrono::seconds limit = std::chrono::seconds(60));

 private:
  pid_t pid_ = -1;
  std::filesystem::path out_;
  std::filesystem::path err_;
};

class Sandbox {
 public:
  Sandbox();
  ~Sandbox();

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& file, const std::string& text) const;
  std::string read(const std::string& file) const;  // empty when it is not there
  // The entries of this name in the folders of an experiment's trials, relative to path(). The
  // sweep may run: folders that come and go do not matter.
  std::vector<std::filesystem::path> of_trials(const std::filesystem::path& experiment,
                                               const std::string& name) const;
  void set(const std::string& name, const std::string& value) { environment_[name] = value; }

  Finished tune(std::vector<std::string> arguments) const;
  Running start_tune(std::vector<std::string> arguments) const;
  Finished run(std::vector<std::string> command) const;
  Running start(std::vector<std::string> command) const;
  // In a process that was forked for it: becomes the program; its output goes to files.
  [[noreturn]] void become_tune(std::vector<std::string> arguments) const;

  // Processes with the sandbox's mark in their environment, the oldest first: tests check that
  // there are none. Their numbers are not an order: the kernel begins anew after the largest.
  std::vector<pid_t> processes(const std::string& name_contains = {}) const;
  // Waits until `holds` returns true; false when it never does.
  static bool eventually(const auto& holds, std::chrono::seconds limit = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      nap();
    }
    return true;
  }
  bool is_quiet() const {  // nothing is left behind
    return eventually([this] { return processes().empty(); });
  }

 private:
  static void nap();
  std::filesystem::path path_;
  std::map<std::string, std::string> environment_;
};

// Lines of a text; rows of a CSV without quoted line breaks.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace tune
