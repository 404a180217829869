#include "tune/view/server.h"

#include <sys/resource.h>

#include <algorithm>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/view/session.h"

namespace tune::view {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAfterRefusedAccept{100};
// All streams are told of news at most once in this time for each of them: a thousand viewers cost
// a sweep on this machine no more than a hundred.
constexpr std::chrono::milliseconds kPaceOfStream{1};
constexpr rlim_t kMostDescriptors = 8192;
constexpr rlim_t kOwnDescriptors =
    64;  // of all but connections: files that are read, the program's

asio::ip::address parsed(const std::string& address) {
  if (address == "localhost") return asio::ip::address_v4::loopback();
  error_code error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  if (error) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("--address {}: it is not an IP address", address));
  }
  return parsed;
}

// As many open files as the system lets this process have: a connection is one. Those that it does
// not are refused in words: else they would wait for an answer that never comes.
std::size_t connections_of(std::size_t wanted) {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::max(before, std::min(limit.rlim_max, kMostDescriptors));
  const rlim_t allowed = setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
  const rlim_t left = allowed > kOwnDescriptors ? allowed - kOwnDescriptors : 1;
  return std::min<std::size_t>(wanted, left);
}

}  // namespace

void check_reach(const ServerOptions& options) {
  if (options.tls.certificate.empty() != options.tls.key.empty()) {
    throw Error(ErrorCode::kBadInput, "--certificate and --key go together: each is a file in PEM");
  }
  if (parsed(options.address).is_loopback() || !options.tls.key.empty()) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("--address {}: other machines are served by TLS only: add --certificate "
                          "FILE and --key FILE, or leave it out and forward the port there by "
                          "`ssh -L`",
                          options.address));
}

class Server::Listener {
 public:
  Listener(const ServerOptions& options, Storage storage)
      : acceptor_(context_),
        signals_(context_),
        pause_(context_),
        pace_(context_),
        address_(parsed(options.address)),
        max_connections_(connections_of(options.max_connections)) {
    if (!options.tls.key.empty()) shared_.tls = &tls_.emplace(options.tls).context();
    listen(options.port);
    guard_ = std::make_unique<Guard>(
        drawn_secret(), drawn_secret(),
        GuardRules{port(), options.control, tls_.has_value(), names_of_page()});
    shared_.boot = drawn_secret().substr(0, 8);
    shared_.guard = guard_.get();
    shared_.patience = options.patience;
    // Told in the worker's thread.
    auto changed = [this](const std::vector<std::string>& keys, std::uint64_t change) {
      asio::post(context_, [this, keys, change] {
        shared_.note(keys, change);
        if (!is_pacing_) pass_on();
      });
    };
    worker_ = std::make_unique<Worker>(std::move(storage), shared_.boot, std::move(changed),
                                       options.control);
    shared_.worker = worker_.get();
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  bool is_on_loopback() const { return address_.is_loopback(); }
  std::string address() const {
    return fmt::format("{}://{}:{}/?token={}", tls_ ? "https" : "http", shown_host(), port(),
                       guard_->token());
  }

  void run() {
    worker_->start();
    accept();
    context_.run();
    worker_->stop();
    shared_.waiting.clear();  // whose answers will not come
  }
  void stop() { context_.stop(); }

  void stop_on_signals() {
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    signals_.async_wait([this](error_code error, int) {
      if (!error) stop();
    });
  }

 private:
  std::string own_host() const {
    return address_.is_v6() ? "[" + address_.to_string() + "]" : address_.to_string();
  }
  // Without TLS only loopback's names count.
  std::vector<std::string> names_of_page() const {
    if (!tls_) return {};
    std::vector<std::string> names = tls_->names();
    if (!address_.is_unspecified()) names.push_back(own_host());
    return names;
  }
  // A name that the browser finds in the certificate.
  std::string shown_host() const {
    if (address_.is_loopback()) return own_host();
    for (const std::string& name : names_of_page()) {
      if (!name.starts_with('*')) return name;
    }
    return asio::ip::host_name();
  }

  void listen(std::uint16_t port) {
    const tcp::endpoint endpoint(address_, port);
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return;
    const bool in_use = error == asio::error::address_in_use;
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("listening on {} port {}: {}{}", address_.to_string(), port, error.message(),
                    in_use ? ": is another `tune view` running? choose another with --port, "
                             "or a free one with --port 0"
                           : ""));
  }

  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return accept_later();  // no descriptors are left, say
      if (shared_.connections >= max_connections_) {
        turn_away(std::move(socket), shared_.connections);
      } else {
        error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        begin_session(std::move(socket), shared_);
      }
      accept();
    });
  }

  void pass_on() {
    is_pacing_ = shared_.pass_on();
    if (!is_pacing_) return;
    pace_.expires_after(kPaceOfStream * shared_.streams.size());
    pace_.async_wait([this](error_code error) {
      if (!error) pass_on();
    });
  }

  void accept_later() {
    pause_.expires_after(kAfterRefusedAccept);
    pause_.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  // Sessions, which the context holds at the end, refer to what is declared above it.
  std::optional<Tls> tls_;
  Shared shared_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<Worker> worker_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::signal_set signals_;
  asio::steady_timer pause_;  // after an accept that failed
  asio::steady_timer pace_;   // of news
  bool is_pacing_ = false;
  asio::ip::address address_;
  std::size_t max_connections_;
};

Server::Server(const ServerOptions& options, Storage storage) {
  check_reach(options);
  listener_ = std::make_unique<Listener>(options, std::move(storage));
}
Server::~Server() = default;
std::uint16_t Server::port() const {
  return listener_->port();
}
bool Server::is_on_loopback() const {
  return listener_->is_on_loopback();
}
std::string Server::address() const {
  return listener_->address();
}
void Server::run() {
  listener_->run();
}
void Server::stop() {
  listener_->stop();
}
void Server::stop_on_signals() {
  listener_->stop_on_signals();
}

}  // namespace tune::view
