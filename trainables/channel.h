// The worker's end of its socket to the agent: frames of core/worker_contract.h. The main thread's,
// but for send. When the agent is gone the process ends at once: nothing can be reported any more.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "core/frame.h"
#include "core/worker_contract.h"

namespace tune {

inline constexpr int kAgentGoneExitCode = 1;  // of a worker and a zygote

class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}  // not owned

  void send(const WorkerEvent& event);  // of any thread; waits while the agent does not read
  WorkerCommand wait();                 // the next command
  std::optional<WorkerCommand> poll();  // the same if one is there already

  // Whether another rank of the group is alone, as the agent said last. Asks it, and does not wait:
  // true until it has answered for the first time, and as long as it does not answer, for then
  // nobody knows.
  bool is_another_alone();

 private:
  bool receive(bool wait);
  std::optional<WorkerCommand> buffered();
  std::optional<WorkerCommand> next_command();

  int socket_;
  FrameBuffer input_;
  std::deque<WorkerCommand> early_;  // that came while an answer was looked for
  bool asks_ = false;
  std::optional<bool> answer_;  // to what it asked last
  std::mutex sending_;
  PackWriter output_;
};

}  // namespace tune
