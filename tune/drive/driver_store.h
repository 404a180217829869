// The store of a driver: the connection to it and, when it is private, its server.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/platform/redis_server.h"
#include "core/platform/redis_store.h"

namespace tune {

class DriverStore {
 public:
  struct Options {
    std::string address;  // empty: a private server
    std::string prefix;
    bool unsafe = false;
    bool is_new = true;  // there must be no journal yet
    RedisServerOptions server = {};
    std::function<void(const std::string& text)> notice = {};
  };

  // Starts the server, when it is private, and connects. Throws as RedisServer and RedisStore, and
  // Error (kBadInput) when a new experiment finds a journal; for one that goes on a store that is
  // not there is Error (kStore).
  explicit DriverStore(Options options);

  Store& store() { return *store_; }
  std::string address() const;
  bool is_private() const { return server_ != nullptr; }
  // From here on a call waits for a moment only, as the machine that is told has patience.
  void end_start();

  // Readable when the private server has ended, or when an answer may be there.
  int exit_descriptor() const { return server_ ? server_->exit_descriptor() : -1; }
  int answer_descriptor() const { return store_->descriptor(); }
  // The private server's end in words; empty: it has not. Said once. Never blocks, nor does
  // start_again().
  std::string take_end() { return server_ ? server_->take_end() : std::string(); }
  void start_again() { server_->start_again(); }
  // The last entry is written: a private server ends meanwhile.
  void begin_end() {
    if (server_) server_->begin_end();
  }
  // Removes what the experiment wrote to a store that is not private; of that the file goes.
  void withdraw();

 private:
  std::unique_ptr<RedisStore> connected() const;

  Options options_;
  std::unique_ptr<RedisServer> server_;
  std::unique_ptr<RedisStore> store_;
};

}  // namespace tune
