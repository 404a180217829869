// The page's server in a thread, and a client that speaks to it as browsers, scripts and attackers
// do.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "core/platform/process.h"
#include "tune/view/server.h"
#include "view/folder.h"

namespace tune::view {

inline constexpr int kPatienceMs = 20'000;

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  // False: the server has closed the connection.
  bool send(const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t count =
          ::send(socket_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }
  // The answer up to the mark, or to the end.
  std::string read_until(const std::string& mark) {
    const auto end = Clock::now() + std::chrono::milliseconds(kPatienceMs);  // a stream never rests
    while ((mark.empty() || got_.find(mark) == std::string::npos) && Clock::now() < end) {
      pollfd waits{socket_.get(), POLLIN, 0};
      if (poll(&waits, 1, kPatienceMs) <= 0) break;
      char buffer[65536];
      const ssize_t count = read(socket_.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      got_.append(buffer, static_cast<std::size_t>(count));
    }
    return got_;
  }
  // Waits until the server has given the connection up; nothing is read.
  bool is_dropped() {
    pollfd waits{socket_.get(), 0, 0};
    return poll(&waits, 1, kPatienceMs) > 0;
  }
  std::string read_all() { return read_until(""); }

 private:
  using Clock = std::chrono::steady_clock;

  FileDescriptor socket_;
  std::string got_;
};

class Served {
 public:
  explicit Served(const ServerOptions& options = {}) {
    testing::begin_experiment(folder_.path() / "s");
    testing::add_trial(folder_.path() / "s", 0, "{\"lr\":1}", "{\"loss\":3}\n");
    server_ = std::make_unique<Server>(options, Storage(folder_.path()));
    thread_ = std::thread([this] { server_->run(); });
    const std::string address = server_->address();
    token_ = address.substr(address.find('=') + 1);
    const std::string welcome = get("/?token=" + token_, "");
    const std::size_t at = welcome.find("Set-Cookie: ") + 12;
    cookie_ = welcome.substr(at, welcome.find(';', at) - at);
  }
  ~Served() {
    server_->stop();
    thread_.join();
  }
  std::uint16_t port() const { return server_->port(); }
  std::string host() const { return "127.0.0.1:" + std::to_string(port()); }
  std::string words(const std::string& method, const std::string& target,
                    const std::string& more) const {
    return method + " " + target + " HTTP/1.1\r\nHost: " + host() + "\r\n" + more + "\r\n";
  }
  std::string with_cookie() const { return "Cookie: " + cookie_ + "\r\n"; }
  // One request on a connection of its own.
  std::string ask(const std::string& text) const {
    Client client(port());
    client.send(text);
    return client.read_all();
  }
  // An order as the page gives it.
  std::string order(const std::string& body, const std::string& more = {}) const {
    return ask(words("POST", "/api/order",
                     with_cookie() + "Origin: http://" + host() +
                         "\r\nContent-Type: application/json\r\nConnection: close\r\n" + more +
                         "Content-Length: " + std::to_string(body.size()) + "\r\n") +
               body);
  }
  std::string get(const std::string& target, const std::string& more) const {
    return ask(words("GET", target, "Connection: close\r\n" + more));
  }

  // Of the experiment.
  std::string key() const {
    const std::string list = get("/api/experiments", with_cookie());
    return list.substr(list.find("\"key\":\"") + 7, 16);
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::string token_, cookie_;
};

inline bool is_status(const std::string& answer, int status) {
  return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}

}  // namespace tune::view
