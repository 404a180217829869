// A private redis-server: on a unix socket, append-only file in the experiment's folder, every
// append flushed. It ends with the thread that started it. The folder has a lock of its own, also
// against other hosts: two servers on one append-only file would destroy it.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "core/platform/lock.h"
#include "core/platform/process.h"

namespace tune {

struct RedisServerOptions {
  std::filesystem::path runtime_directory;                           // for the socket
  std::filesystem::path data_directory;                              // made when it is not there
  int lock_descriptor = -1;                                          // inherited by the server
  std::chrono::milliseconds start_limit = std::chrono::seconds(30);  // reading a long journal
};

class RedisServer {
 public:
  // Returns when it answers. Throws Error (kBadInput) when there is no redis-server program (in
  // PATH or $TUNE_REDIS_SERVER) or another server has the folder, which is named then, Error
  // (kStore) with its last log lines when it does not start. When another host takes the folder
  // meanwhile, the server is killed.
  explicit RedisServer(const RedisServerOptions& options);
  ~RedisServer();  // asks it to end, waits, kills it when it takes too long
  RedisServer(const RedisServer&) = delete;

  std::string address() const;  // unix:///run/user/0/tune-1-abc/redis
  pid_t pid() const { return pid_; }
  int exit_descriptor() const { return exit_.get(); }  // readable when it has ended

 private:
  void wait_until_ready(const RedisServerOptions& options, const std::string& program);

  std::filesystem::path socket_;
  pid_t pid_ = -1;
  FileDescriptor exit_;
  std::optional<ExperimentLock> lock_;  // on the data; its thread uses what is above
};

}  // namespace tune
