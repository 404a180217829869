// A worker that runs a program, and a scripted agent at the other end of its socket.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "trainables/command/command_worker.h"
#include "trainables/temporary_folder.h"
#include "trainables/worker_process.h"

namespace tune::testing {

// The settings of a program that is a shell's script.
inline CommandSettings shell(const std::string& script, const Value& report = "auto") {
  CommandSettings settings;
  settings.command.words = {"sh", "-c", script};
  read_report(report, settings.command);
  settings.name = "script";
  settings.grace_s = 20;
  return settings;
}

class CommandProcess : public WorkerProcess {
 public:
  CommandProcess(const CommandSettings& settings, const StartWorker& start)
      : WorkerProcess([&](int socket) { return run_command_worker(settings, socket); }) {
    send(start);
  }
  // The text of the results, up to the last word, which is kept.
  std::string results() {
    std::string text;
    while (auto event = next()) {
      if (const auto* report = std::get_if<Reported>(&*event)) {
        text += unpack(report->result).dump() + "\n";
      } else if (auto* warning = std::get_if<Warning>(&*event)) {
        warnings_ += warning->text + "\n";
      } else if (auto* ended = std::get_if<WorkerEnded>(&*event)) {
        ended_ = std::move(*ended);
        return text;
      }
    }
    throw std::runtime_error("the worker is gone");
  }
  // Its end, after all results.
  const WorkerEnded& ended() {
    while (!ended_) results();
    return *ended_;
  }
  const std::string& warnings() const { return warnings_; }

 private:
  std::optional<WorkerEnded> ended_;
  std::string warnings_;
};

// A step waits until the program has written a file: no clock is asserted.
inline void wait_for(const std::filesystem::path& file) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!std::filesystem::exists(file)) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("no " + file.string());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace tune::testing
