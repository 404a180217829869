// The operations of a rank in a group that speaks through shared memory, from their start to their
// end.
//
// Operations are advanced by the threads that wait for them. One whose end only a callback hears
// of, or nobody yet, is advanced where it starts for a moment, since the other ranks mostly come at
// the same time; after that by a thread of the conversation's. Leaving all to that thread from the
// beginning is simpler, and has to wake it for every operation.
//
// A wait looks for a moment, sleeps then, and is woken by the rank that it waits for. It wakes by
// itself now and then to see whether a rank has ended or the time is over.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainables/shared_memory/messages.h"
#include "trainables/shared_memory/motions.h"

namespace tune::shared_memory {

struct Operation;
using OperationPtr = std::shared_ptr<Operation>;

// The time that ranks wait for each other.
struct Patience {
  std::chrono::milliseconds timeout;  // of an operation; begins anew while a rank is alone
  std::chrono::milliseconds longest;  // even so
};

// Nothing while it goes on, or when it went well.
std::exception_ptr error_of(const OperationPtr& operation);

class Conversation {
 public:
  Conversation(std::unique_ptr<RankMemory> memory, const Patience& patience);
  // Waits for what is under way, and leaves the group. After a failure it only leaves.
  ~Conversation();
  Conversation(const Conversation&) = delete;

  enum class Pace {
    kWaitedFor,     // at once: it goes on in wait(), and in has_ended()
    kLooksFirst,    // for a moment where it starts, then by itself
    kInBackground,  // by itself
  };
  struct Start {
    std::function<void()> finish = {};      // when the motion has ended; no other operation goes on
    std::chrono::milliseconds longest{-1};  // below 0: that of the patience
    Pace pace = Pace::kLooksFirst;
  };
  using MakeCollective = std::function<std::unique_ptr<Motion>(RankMemory&, const Call&)>;
  using MakeMessage = std::function<std::unique_ptr<Motion>(Messages&)>;
  OperationPtr collective(CallKind kind, const MakeCollective& make, Start start);
  // Its time begins when it is waited for.
  OperationPtr message(const MakeMessage& make, Start start);

  // Throws what made it fail; Failure (kTimeout) after `limit`, if that is more than 0, which is no
  // failure of the operation's.
  void wait(const OperationPtr& operation, std::chrono::milliseconds limit);
  bool has_ended(const OperationPtr& operation);  // advances it
  // Calls it when the operation has ended, which may be at once; by any thread. The operation goes
  // on by itself from now on.
  void when_ended(const OperationPtr& operation, std::function<void()> callback);

  // Fails all operations, now and later; the other ranks hear that this one has left.
  void abort(const std::string& why);
  void set_longest(std::chrono::milliseconds longest);
  std::uint64_t calls() const { return calls_; }
  RankMemory& memory() { return *memory_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Ended = std::vector<OperationPtr>;

  void begin(const OperationPtr& operation, Pace pace);
  void leave_to_background(const OperationPtr& operation);
  void stop_waiting();
  void poll();
  void advance_all(Ended& ended);
  bool advance(Operation& operation);
  void fail(Operation& operation, const std::exception_ptr& error);
  void break_collectives(const std::exception_ptr& error, Ended& ended);
  void deliver(const Ended& ended);
  bool look_for_a_moment(const Operation& operation);
  void sleep(const Operation* operation, Clock::time_point since);
  void look_after();
  std::exception_ptr why_lost(Operation& operation, Clock::time_point now);
  std::string who_is_gone(const std::vector<int>& awaited, Clock::time_point now) const;
  void work_in_background();
  bool has_background_work() const;

  std::unique_ptr<RankMemory> memory_;
  Patience patience_;
  const std::chrono::microseconds spin_;
  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  Messages messages_;
  std::deque<OperationPtr> collectives_, transfers_;
  std::exception_ptr broken_;  // no collective any more
  std::atomic<std::uint64_t> calls_ = 0;
  Clock::time_point patient_since_{};
  Clock::time_point looked_after_{};
  std::vector<std::optional<Clock::time_point>> ended_since_;  // processes, by rank
  std::vector<bool> has_left_;                                 // by rank, at the last look

  std::atomic<int> waiting_ = 0;  // threads
  std::condition_variable background_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace tune::shared_memory
