// The agent's view of its zygote: starts it, asks it for workers, takes its messages and its end.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/platform/process.h"
#include "core/worker_contract.h"

namespace tune {

class ZygoteProcess {
 public:
  // Runs `main` in a child of this process; it gets the control socket and never returns. Only in a
  // process without threads.
  void fork(const std::function<void(int)>& main, const std::vector<int>& close_in_child);

  struct Program {
    std::vector<std::string> command;  // "{control}" becomes the descriptor's number
    std::map<std::string, std::string> environment;
    std::string log;
    int lock_fd = -1;
  };
  void execute(const Program& program);  // Error (kProcess, kIo)

  // Takes the worker's end of its socket pair and perhaps a listening socket. Queued until flush.
  void request(const SpawnRequest& request, FileDescriptor socket, FileDescriptor rendezvous);
  void flush();                          // never blocks
  std::vector<ZygoteMessage> receive();  // what is there; notices the end of the socket
  void end();                            // at once

  int control() const { return control_.get(); }  // -1 when closed
  bool has_backlog() const { return !requests_.empty(); }
  pid_t pid() const { return pid_; }
  void reaped(int wait_status);
  // How the zygote ended, with the end of its output, once it is reaped and all its messages are
  // read.
  std::optional<std::string> take_end();

 private:
  struct Request {
    std::string packet;
    FileDescriptor socket;
    FileDescriptor rendezvous;
  };
  bool send(const Request& request);
  std::string printed() const;

  FileDescriptor control_;
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::deque<Request> requests_;
  std::string log_;
  std::size_t log_start_ = 0;  // what was in the log before
};

}  // namespace tune
