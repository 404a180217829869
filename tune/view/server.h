// Server: HTTP on loopback. One thread speaks to browsers and never waits for a disk; another one
// (Worker) reads the experiments. Everything that a client can make it hold has a limit below.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tune/view/patience.h"
#include "tune/view/storage.h"

namespace tune::view {

inline constexpr std::size_t kMaxConnections = 2000;
struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: a free one
  Patience patience = {};
  bool control = false;  // the page may give orders to drivers
};

class Server {
 public:
  // Listens when it returns. Throws Error (kBadInput) for an address that is not loopback, or a
  // port that is in use.
  Server(const ServerOptions& options, Storage storage);
  ~Server();

  std::uint16_t port() const;
  std::string address() const;  // "http://127.0.0.1:8311/?token=..."
  void run();                   // until stop()
  void stop();                  // from any thread, or a signal's handler of asio
  // Calls stop() on SIGINT and SIGTERM.
  void stop_on_signals();

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

// Throws Error (kBadInput) unless the address is loopback's.
void expect_loopback(const std::string& address);

}  // namespace tune::view
