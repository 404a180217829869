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

  // A zygote that is a child of this process already.
  void adopt(pid_t pid, FileDescriptor control);

  // The output of an executed zygote goes to a file, which the caller opens and reads where a file
  // system that stalls does not hold up the loop.
  struct Log {
    std::string path;
    FileDescriptor file;
    std::size_t start = 0;  // what was in it before

    static Log open(const std::string& path);  // Error (kIo)
  };
  struct Program {
    std::vector<std::string> command;  // "{control}" becomes the descriptor's number
    std::map<std::string, std::string> environment;
    int lock_fd = -1;
  };
  // Its file may be on a file system that stalls: take_refusal() tells whether it is executed.
  void execute(const Program& program, Log log);  // Error (kProcess)
  // Why the program could not be executed, once: then there is no zygote.
  std::optional<std::string> take_refusal();
  int report() const { return report_.get(); }  // readable when that is known; -1: it is

  // A worker gets these, each only if it is open.
  struct Given {
    FileDescriptor socket = {};      // the worker's end of its socket pair
    FileDescriptor rendezvous = {};  // listens
    FileDescriptor memory = {};      // dropped unless the zygote asked for it
  };
  void request(const SpawnRequest& request, Given given);  // queued until flush
  void flush();                          // never blocks
  std::vector<ZygoteMessage> receive();  // what is there; notices the end of the socket
  void end();                            // at once

  int control() const { return control_.get(); }  // -1 when closed
  bool has_backlog() const { return !requests_.empty(); }
  pid_t pid() const { return pid_; }
  void reaped(int wait_status);
  struct End {
    std::string how;
    std::string log = {};  // empty: nobody asks for its output
    std::size_t log_start = 0;

    std::string with_log() const;  // with the end of the output; reads the file
  };
  // Once it is reaped and all its messages are read.
  std::optional<End> take_end();

 private:
  struct Request {
    std::string packet;
    Given given;
  };
  bool send(const Request& request);

  FileDescriptor control_;
  FileDescriptor report_;
  std::string program_;  // that is being executed
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::deque<Request> requests_;
  Log log_;             // its file is closed
  bool ended_ = false;  // by end(), for what is known
  bool takes_memory_ = false;
};

}  // namespace tune
