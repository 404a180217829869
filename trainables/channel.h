// The worker's end of its socket to the agent: frames of core/worker_contract.h. One thread. When
// the agent is gone the process ends at once: nothing can be reported any more.
#pragma once

#include <optional>
#include <string>

#include "core/frame.h"
#include "core/worker_contract.h"

namespace tune {

class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}  // not owned

  void send(const WorkerEvent& event);  // waits while the agent does not read
  WorkerCommand wait();                 // the next command
  std::optional<WorkerCommand> poll();  // the same if one is there already

 private:
  bool receive(bool wait);
  std::optional<WorkerCommand> buffered();

  int socket_;
  FrameBuffer input_;
  PackWriter output_;
};

}  // namespace tune
