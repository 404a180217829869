// EngineCalls: commands that a loop must not wait for. Each is a child process with a limit on its
// time and on what it may print; its end is asked for now and then. A few run at once, the others
// wait in the order they came.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "core/platform/child.h"
#include "core/platform/process.h"
#include "core/platform/system_clock.h"

namespace tune {

struct EngineCall {
  enum class Kind : std::uint8_t { kCheck, kPrepare, kStart, kList, kStop, kLog, kKeepLog };
  Kind kind = Kind::kCheck;
  std::vector<std::string> words;
  std::uint64_t number = 0;  // of the allocation, or the caller's own
  std::string host = {};     // it is asked about; for the caller
  std::chrono::nanoseconds asked_at{};
  std::string text = {};  // the caller's own
  // The file that the command reads at its word kInputFile: in memory, and no one else's.
  std::string input = {};
};

struct EngineAnswer {
  EngineCall call;
  std::string output;   // stdout
  std::string why_not;  // how it failed, with the last of its stderr; empty: it did not
};

class EngineCalls {
 public:
  static constexpr std::size_t kAtOnce = 8;
  static constexpr std::chrono::seconds kLimit{60};      // on each, where none is given
  static constexpr std::size_t kMostOutput = 16u << 20;  // more is a failure
  // For all that were killed and are not gone when this ends. One that even SIGKILL does not end,
  // in a call to a file system that stalls, is left behind.
  static constexpr std::chrono::seconds kKillWait{1};

  // The clock outlives it.
  explicit EngineCalls(const Clock& clock = system_clock(), std::chrono::seconds limit = kLimit)
      : clock_(clock), limit_(limit) {}
  ~EngineCalls();

  static const Clock& system_clock();
  void add(EngineCall call);
  bool is_idle() const { return waiting_.empty() && running_.empty() && ended_.empty(); }
  // Those that have ended since; begins others. Never blocks.
  std::vector<EngineAnswer> take();
  // Waits for all, at most so long, and gives up the rest.
  std::vector<EngineAnswer> finish(std::chrono::nanoseconds patience);
  // Those that it gave up since.
  std::vector<EngineCall> take_given_up() { return std::exchange(given_up_, {}); }

 private:
  struct Running {
    EngineCall call;
    Child child;
    FileDescriptor output;
    FileDescriptor errors;
    std::chrono::nanoseconds end{};
  };
  void begin(EngineCall call);
  bool look_at(Running& one);
  void kill(Child child);
  void give_up_all();
  void end(const Running& one, std::string why_not);

  const Clock& clock_;
  std::chrono::seconds limit_;
  std::deque<EngineCall> waiting_;
  std::list<Running> running_;
  std::list<Child> killed_;  // and not gone yet
  std::vector<EngineAnswer> ended_;
  std::vector<EngineCall> given_up_;
};

// The command's output. Throws Error (kBadInput) with what it said when it fails.
std::string output_of(const std::vector<std::string>& words, std::chrono::seconds limit,
                      const std::string& input = {});

}  // namespace tune
