// A private redis-server: on a unix socket, append-only file in the experiment's folder, every
// append flushed. It ends with the thread that started it, and not by a signal that is sent to all
// processes of an experiment: the events of their end are still to be written. The folder has a
// lock of its own, also against other hosts: two servers on one append-only file would destroy it.
// Once it has started a poll loop may use it: a disk that stalls holds nothing up.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>

#include "core/platform/child.h"
#include "core/platform/file_worker.h"
#include "core/platform/lock.h"

namespace tune {

struct RedisServerOptions {
  std::filesystem::path runtime_directory;                           // for the socket
  std::filesystem::path data_directory;                              // made when it is not there
  int lock_descriptor = -1;                                          // inherited by the server
  std::chrono::milliseconds start_limit = std::chrono::seconds(30);  // reading a long journal
};

class RedisServer {
 public:
  // Returns when the server answers. Throws Error (kBadInput) when there is no redis-server program
  // (in PATH or $TUNE_REDIS_SERVER), or when another server, which is named, has the folder; Error
  // (kStore) with the last log lines when the server does not start. When another host takes the
  // folder later, the server is killed.
  explicit RedisServer(RedisServerOptions options);
  ~RedisServer();  // asks it to end, waits, kills it when it takes too long
  RedisServer(const RedisServer&) = delete;

  // Asks it to end and does not wait: that the destructor does. Nothing is stored from here on.
  void begin_end();

  std::string address() const;  // unix:///run/user/0/tune-1-abc/redis
  pid_t pid() const { return process_.pid(); }
  // Readable when take_end() has something to do; -1 once the server's end was told.
  int exit_descriptor() const;

  // The server's end in words, or why it did not start again; empty: it runs, or the disk still
  // looks for the reason. Told once. Throws SupersededError when another host has taken the folder.
  std::string take_end();
  // The same, waiting for the disk.
  std::string await_end();
  // After the server's end: begins to start another one on the same data and address.
  void start_again();

 private:
  void start();
  void do_beside(std::function<std::string()> work);
  void refuse_taken() const;
  void kill_for_another();
  void wait_until_ready();
  bool has_ended(std::chrono::milliseconds patience = {});
  int kill_and_reap();
  std::string last_words() const;

  RedisServerOptions options_;
  std::string program_;
  std::filesystem::path socket_;
  bool was_asked_ = false;  // to end
  std::mutex mutex_;  // of what the lock's thread touches; that changes nothing of the process:
  Child process_;     // the worker's while there is an end_
  std::optional<ExperimentLock> lock_;  // on the data; its thread uses what is above
  std::future<std::string> end_;        // in words, from the worker
  FileWorker worker_;  // uses what is above; servers that it has started end with its thread
};

}  // namespace tune
