#include "core/platform/bulk_socket.h"

#include <cerrno>
#include <optional>

#include <zmq.hpp>

#include <fmt/format.h>

#include "core/error.h"
#include "core/listen_address.h"
#include "core/platform/gate.h"
#include "core/wire.h"

namespace tune {
namespace {

constexpr int kMaxFramesOfPeer = 64;

template <class Call>
auto despite_signals(Call call) {
  while (true) {
    try {
      return call();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw;
    }
  }
}

void set_bulk_options(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, kMaxFramesOfPeer);
  socket.set(zmq::sockopt::rcvhwm, kMaxFramesOfPeer);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMaxFrameBytes));
  socket.set(zmq::sockopt::heartbeat_ivl, 5000);
  socket.set(zmq::sockopt::heartbeat_timeout, 15000);
  socket.set(zmq::sockopt::heartbeat_ttl, 15000);
  socket.set(zmq::sockopt::handshake_ivl, 10000);
  socket.set(zmq::sockopt::ipv6, true);
}

}  // namespace

struct BulkSocket::Socket {
  explicit Socket(zmq::socket_type type) : socket(context, type) { set_bulk_options(socket); }

  void connect(const JoinToken& token, const std::string& address) {
    const std::string own = public_key_of(token.join_key);
    socket.set(zmq::sockopt::curve_serverkey, zmq::buffer(token.driver_key));
    socket.set(zmq::sockopt::curve_secretkey, zmq::buffer(token.join_key));
    socket.set(zmq::sockopt::curve_publickey, zmq::buffer(own));
    const std::string endpoint = "tcp://" + address;
    try {
      if (!connected.empty()) socket.disconnect(connected);
      connected.clear();
      socket.connect(endpoint);
      connected = endpoint;
    } catch (const zmq::error_t& error) {
      throw Error(ErrorCode::kProcess, fmt::format("connecting to {}: {}", address, error.what()));
    }
  }

  zmq::context_t context{1};
  std::optional<Gate> gate;  // ends after the socket that it guards
  zmq::socket_t socket;
  std::string connected;
  int port = 0;
  bool listens = false;
};

BulkSocket::BulkSocket(const std::vector<std::string>& addresses, int port, const JoinKeys& keys)
    : socket_(std::make_unique<Socket>(zmq::socket_type::router)) {
  zmq::socket_t& router = socket_->socket;
  socket_->listens = true;
  socket_->gate.emplace(socket_->context, keys.join_public);
  for (const std::string& former : keys.former) socket_->gate->admit_also(former);
  router.set(zmq::sockopt::router_mandatory, 1);
  router.set(zmq::sockopt::router_handover, 1);
  router.set(zmq::sockopt::backlog, Gate::kBacklog);
  router.set(zmq::sockopt::curve_server, true);
  router.set(zmq::sockopt::curve_secretkey, zmq::buffer(keys.driver_secret));
  router.set(zmq::sockopt::zap_domain, std::string_view(Gate::kDomain));
  socket_->gate->watch(router);
  for (const std::string& address : addresses) {
    try {
      router.bind("tcp://" + with_port(address, port));
    } catch (const zmq::error_t& error) {
      throw Error(ErrorCode::kProcess, fmt::format("listening for checkpoints at {}: {}",
                                                   with_port(address, port), error.what()));
    }
    const std::string bound = router.get(zmq::sockopt::last_endpoint);
    port = std::stoi(bound.substr(bound.rfind(':') + 1));
  }
  socket_->port = port;
}

BulkSocket::BulkSocket(const JoinToken& token, const std::string& address,
                       const std::string& identity)
    : socket_(std::make_unique<Socket>(zmq::socket_type::dealer)) {
  socket_->socket.set(zmq::sockopt::routing_id, identity);
  socket_->connect(token, address);
}

BulkSocket::~BulkSocket() = default;

int BulkSocket::port() const {
  return socket_->port;
}

void BulkSocket::admit(const std::string& join_public_key) {
  socket_->gate->admit(join_public_key);
}

void BulkSocket::admit_also(const std::string& join_public_key) {
  socket_->gate->admit_also(join_public_key);
}

std::vector<std::string> BulkSocket::take_refused() {
  return socket_->gate->take_refused();
}

void BulkSocket::connect(const JoinToken& token, const std::string& address) {
  socket_->connect(token, address);
}

void BulkSocket::wait(int descriptor, std::chrono::milliseconds time) {
  zmq_pollitem_t watched[] = {{socket_->socket.handle(), 0, ZMQ_POLLIN, 0},
                              {nullptr, descriptor, ZMQ_POLLIN, 0}};
  ::zmq_poll(watched, 2, time.count());
}

bool BulkSocket::receive(std::string& peer, std::string& frame) {
  zmq::message_t part;
  const auto take = [&](std::string& text) {
    const auto got =
        despite_signals([&] { return socket_->socket.recv(part, zmq::recv_flags::dontwait); });
    if (got) text.assign(part.data<char>(), part.size());
    return got.has_value();
  };
  if (socket_->listens && !take(peer)) return false;
  if (!take(frame)) return false;
  std::string more;
  while (part.more() && take(more)) {  // ours have no more parts
  }
  return true;
}

bool BulkSocket::send(const std::string& peer, std::string_view frame) {
  try {
    const auto give = [&](std::string_view text, zmq::send_flags flags) {
      zmq::message_t part(text.data(), text.size());
      return despite_signals(
                 [&] { return socket_->socket.send(part, flags | zmq::send_flags::dontwait); })
          .has_value();
    };
    if (socket_->listens && !give(peer, zmq::send_flags::sndmore)) return false;
    return give(frame, zmq::send_flags::none);
  } catch (const zmq::error_t&) {
    return false;  // that peer is not connected now
  }
}

}  // namespace tune
