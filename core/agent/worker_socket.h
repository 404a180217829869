// The agent's end of a worker's socket pair. Never blocks.
#pragma once

#include <string>
#include <vector>

#include "core/frame.h"
#include "core/platform/process.h"
#include "core/worker_contract.h"

namespace tune {

class WorkerSocket {
 public:
  explicit WorkerSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.get(); }
  void send(const WorkerCommand& command);  // kept until flush where it does not fit now
  void flush();
  bool has_backlog() const { return sent_ < output_.size(); }

  enum class Read { kData, kNothing, kEnd };
  Read read();  // at most kReadBytes
  // The next whole event read so far. Throws Error (kProtocol).
  std::optional<WorkerEvent> next();

  static constexpr std::size_t kReadBytes = 64u << 10;

 private:
  FileDescriptor socket_;
  FrameBuffer input_;
  std::string output_;
  std::size_t sent_ = 0;
};

// A connected pair: the first does not block.
struct WorkerSocketPair {
  FileDescriptor agent;
  FileDescriptor worker;
};
WorkerSocketPair worker_socket_pair();  // Error (kProcess)

}  // namespace tune
