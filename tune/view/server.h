// Server: HTTP on loopback, or HTTPS on any address. One thread speaks to browsers and never waits
// for a disk; another one (Worker) reads the experiments. Everything that a client can make it hold
// has a limit below.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tune/view/patience.h"
#include "tune/view/storage.h"
#include "tune/view/tls.h"

namespace tune::view {

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: a free one
  Patience patience = {};
  bool control = false;  // the page may give orders to drivers
  std::size_t max_connections = 2000;
  TlsFiles tls = {};  // both or none; needed on addresses but loopback's
};

class Server {
 public:
  // Listens when it returns. Throws Error (kBadInput) for what check_reach and Tls refuse, or a
  // port that is in use.
  Server(const ServerOptions& options, Storage storage);
  ~Server();

  std::uint16_t port() const;
  bool is_on_loopback() const;
  // "http://127.0.0.1:8311/?token=...", or with https and a name of the certificate.
  std::string address() const;
  void run();                   // until stop()
  void stop();                  // from any thread, or a signal's handler of asio
  // Calls stop() on SIGINT and SIGTERM.
  void stop_on_signals();

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

// Throws Error (kBadInput) unless the address is loopback's or there are a certificate and a key,
// which go together; looks into no file.
void check_reach(const ServerOptions& options);

}  // namespace tune::view
