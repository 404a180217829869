// LoggerThreads: exporters that follow a running sweep, each in a thread of its own beside the
// driver's loop. They read the experiment's folder, so nothing waits for them and nothing of theirs
// fills memory; one that fails is a notice, and costs the sweep nothing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tune/export/exporter.h"

namespace tune {

class LoggerThreads {
 public:
  LoggerThreads() = default;
  ~LoggerThreads() { finish(std::chrono::milliseconds(0)); }
  LoggerThreads(const LoggerThreads&) = delete;

  struct Logger {
    std::string name;                                 // as the user gave it
    std::function<std::unique_ptr<Exporter>()> make;  // called by the thread
    std::string remedy;  // what writes the rest, for a person; empty: nothing does
  };
  void start(Logger logger);

  // For the user, since the last call.
  std::vector<std::string> take_notices();

  // The experiment's files are complete: lets the threads write what is left, at most so long (0:
  // they end where they are). One that is stuck then, in a disk or network that does not answer, is
  // left behind; it has nothing of this object.
  void finish(std::chrono::milliseconds limit);

 private:
  struct Shared;
  static void work(Shared& shared);

  std::vector<std::shared_ptr<Shared>> threads_;
  std::vector<std::string> notices_;  // of threads that are gone
};

}  // namespace tune
