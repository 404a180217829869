#include "core/platform/group_network.h"

#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <zmq.hpp>

#include <fmt/format.h>

#include "core/error.h"
#include "core/join_token.h"
#include "core/listen_address.h"
#include "core/platform/gate.h"
#include "core/platform/join_keys.h"
#include "core/platform/zmq_calls.h"
#include "core/wire.h"

namespace tune {
namespace {

constexpr int kMaxFramesOfLink = 1000;
constexpr int kLinkLingerMs = 1000;
constexpr int kLinkHandshakeMs = 10'000;

struct OneLink {
  OneLink(zmq::context_t& context, std::uint64_t number)
      : socket(context, zmq::socket_type::dealer), events(context, zmq::socket_type::pair) {
    socket.set(zmq::sockopt::linger, kLinkLingerMs);
    socket.set(zmq::sockopt::sndhwm, kMaxFramesOfLink);
    socket.set(zmq::sockopt::rcvhwm, kMaxFramesOfLink);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMaxFrameBytes));
    socket.set(zmq::sockopt::handshake_ivl, kLinkHandshakeMs);
    socket.set(zmq::sockopt::ipv6, true);
    events.set(zmq::sockopt::linger, 0);
    const std::string name = fmt::format("inproc://tune-group-link-{}", number);
    constexpr int kWatched = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    if (::zmq_socket_monitor(socket.handle(), name.c_str(), kWatched) != 0) {
      throw Error(ErrorCode::kProcess,
                  fmt::format("watching connections: {}", ::zmq_strerror(::zmq_errno())));
    }
    events.connect(name);
  }
  ~OneLink() { ::zmq_socket_monitor(socket.handle(), nullptr, 0); }

  // Of a connection that was there: a stranger's that ends before it shows a key is none.
  void look() {
    zmq::message_t event, address;
    while (receive_part(events, event)) {
      if (event.more()) receive_part(events, address);
      std::uint16_t kind = 0;
      if (event.size() >= sizeof kind) std::memcpy(&kind, event.data(), sizeof kind);
      if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) is_up = true;
      if (kind == ZMQ_EVENT_DISCONNECTED && is_up) is_broken = true;
    }
  }

  zmq::socket_t socket;
  zmq::socket_t events;
  bool is_up = false;
  bool is_broken = false;
  bool is_told = false;  // that it is broken
};

}  // namespace

struct GroupNetwork::Sockets {
  explicit Sockets(std::string secret_key)
      : secret(std::move(secret_key)), own(public_key_of(secret)) {}

  OneLink& add() {
    ++last;
    OneLink& link = links.try_emplace(last, context, last).first->second;
    link.socket.set(zmq::sockopt::curve_secretkey, zmq::buffer(secret));
    signal.watch(link.socket.get(zmq::sockopt::fd));
    signal.watch(link.events.get(zmq::sockopt::fd));
    return link;
  }

  void remove(LinkId id) {
    const auto found = links.find(id);
    if (found == links.end()) return;
    signal.ignore(found->second.socket.get(zmq::sockopt::fd));
    signal.ignore(found->second.events.get(zmq::sockopt::fd));
    links.erase(found);
  }

  std::string secret;
  std::string own;
  zmq::context_t context{1};
  std::optional<Gate> gate;  // of a node that listens; without it libzmq admits everybody
  InputSignal signal;
  std::map<LinkId, OneLink> links;
  LinkId last = 0;
};

GroupNetwork::GroupNetwork(const std::string& key) : sockets_(std::make_unique<Sockets>(key)) {}
GroupNetwork::~GroupNetwork() = default;

GroupNetwork::Listening GroupNetwork::listen(const std::string& address) {
  if (!sockets_->gate) sockets_->gate.emplace(sockets_->context, sockets_->own);
  OneLink& link = sockets_->add();
  const LinkId id = sockets_->last;
  try {
    link.socket.set(zmq::sockopt::curve_server, true);
    link.socket.set(zmq::sockopt::zap_domain, std::string_view(Gate::kDomain));
    link.socket.bind("tcp://" + with_port(address, 0));
  } catch (const zmq::error_t& error) {
    sockets_->remove(id);
    throw Error(
        ErrorCode::kProcess,
        fmt::format("listening at {} for the other nodes of a group: {}", address, error.what()));
  }
  const std::string bound = link.socket.get(zmq::sockopt::last_endpoint);
  return {id, with_port(address, std::stoi(bound.substr(bound.rfind(':') + 1)))};
}

GroupNetwork::LinkId GroupNetwork::connect(const std::string& address) {
  OneLink& link = sockets_->add();
  const LinkId id = sockets_->last;
  try {
    link.socket.set(zmq::sockopt::curve_publickey, zmq::buffer(sockets_->own));
    link.socket.set(zmq::sockopt::curve_serverkey, zmq::buffer(sockets_->own));
    link.socket.connect("tcp://" + address);
  } catch (const zmq::error_t& error) {
    sockets_->remove(id);
    throw Error(ErrorCode::kProcess,
                fmt::format("linking to the lead of a group at {}: {}", address, error.what()));
  }
  return id;
}

void GroupNetwork::close(LinkId link) {
  sockets_->remove(link);
}

bool GroupNetwork::send(LinkId link, std::string_view frame) {
  const auto found = sockets_->links.find(link);
  if (found == sockets_->links.end()) return false;
  const bool is_taken = send_part(found->second.socket, frame, zmq::send_flags::none);
  raise_if_readable(found->second.socket, sockets_->signal);
  return is_taken;
}

std::vector<GroupNetwork::Heard> GroupNetwork::receive() {
  sockets_->signal.clear();
  std::vector<Heard> all;
  for (auto& [id, link] : sockets_->links) {
    if (link.is_told) continue;
    Heard heard{id, {}, false};
    link.look();  // first: what was sent before a break is there when the break is known
    zmq::message_t part;
    while (receive_part(link.socket, part)) heard.frames.push_back(part.to_string());
    heard.is_broken = link.is_told = link.is_broken;
    if (!heard.frames.empty() || heard.is_broken) all.push_back(std::move(heard));
  }
  return all;
}

int GroupNetwork::descriptor() const {
  return sockets_->signal.descriptor();
}

}  // namespace tune
