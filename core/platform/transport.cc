#include "core/platform/transport.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <zmq.hpp>

#include <fmt/format.h>

#include "core/error.h"
#include "core/link.h"
#include "core/platform/process.h"
#include "core/platform/system_clock.h"

namespace tune {

namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kHeartbeatEvery = std::chrono::seconds(1);

// ZMQ_FD signals edges only, and sending consumes them. This descriptor is readable as long as the
// socket may have input.
class InputSignal {
 public:
  explicit InputSignal(int socket_descriptor)
      : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), poll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (int descriptor : {socket_descriptor, event_.get()}) {
      epoll_event watched{};
      watched.events = EPOLLIN;
      epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &watched);
    }
  }
  int descriptor() const { return poll_.get(); }
  void raise() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(event_.get(), &one, sizeof one);
  }
  void clear() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = read(event_.get(), &count, sizeof count);
  }

 private:
  FileDescriptor event_;
  FileDescriptor poll_;
};

void raise_if_readable(zmq::socket_t& socket, InputSignal& signal) {
  if ((socket.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0) signal.raise();
}

zmq::message_t to_message(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

std::uint64_t life_number() {
  return static_cast<std::uint64_t>(SystemClock().wall().count());
}

}  // namespace

// ---- Driver ---------------------------------------------------------------------------------------

struct DriverEndpoint::Socket {
  struct Peer {
    std::string identity;
    Link link;
    nanoseconds last_sent{};
  };

  explicit Socket(const std::string& address) : socket(context, zmq::socket_type::router) {
    socket.set(zmq::sockopt::router_mandatory, 1);
    socket.set(zmq::sockopt::router_handover, 1);
    socket.set(zmq::sockopt::linger, 1000);
    socket.set(zmq::sockopt::sndhwm, 0);  // Link and credit bound the queues
    socket.set(zmq::sockopt::rcvhwm, 0);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(2 * kMaxFrameBytes));
    try {
      socket.bind(address);
    } catch (const zmq::error_t& error) {
      throw Error(ErrorCode::kProcess,
                  fmt::format("listening for agents at {}: {}", address, error.what()));
    }
    signal = std::make_unique<InputSignal>(socket.get(zmq::sockopt::fd));
  }

  Peer& peer_of(const std::string& identity) {
    const auto [found, is_new] =
        numbers.try_emplace(identity, AgentNumber{static_cast<std::uint32_t>(peers.size())});
    if (is_new) peers.push_back({identity, Link(epoch), {}});
    return peers[found->second.value];
  }
  void send_frame(Peer& peer, const std::string& frame) {
    try {
      socket.send(to_message(peer.identity), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
      socket.send(to_message(frame), zmq::send_flags::dontwait);
    } catch (const zmq::error_t&) {
      // Not connected now: the link sends it again.
    }
  }

  zmq::context_t context{1};
  zmq::socket_t socket;
  std::unique_ptr<InputSignal> signal;
  std::uint64_t epoch = 0;
  std::map<std::string, AgentNumber> numbers;
  std::vector<Peer> peers;
  std::string complaint;
};

DriverEndpoint::DriverEndpoint(const std::string& address, std::uint64_t epoch)
    : socket_(std::make_unique<Socket>(address)) {
  socket_->epoch = epoch;
}
DriverEndpoint::~DriverEndpoint() = default;

int DriverEndpoint::descriptor() const { return socket_->signal->descriptor(); }
std::size_t DriverEndpoint::agents() const { return socket_->peers.size(); }
const std::string& DriverEndpoint::last_complaint() const { return socket_->complaint; }

std::vector<DriverEndpoint::Incoming> DriverEndpoint::receive() {
  socket_->signal->clear();
  std::vector<Incoming> all;
  zmq::message_t identity, frame;
  while (socket_->socket.recv(identity, zmq::recv_flags::dontwait)) {
    if (!identity.more() || !socket_->socket.recv(frame, zmq::recv_flags::dontwait)) continue;
    while (frame.more()) {  // no frame of ours has more parts
      if (!socket_->socket.recv(frame, zmq::recv_flags::dontwait)) break;
    }
    Socket::Peer& peer = socket_->peer_of(identity.to_string());
    const AgentNumber number = socket_->numbers.at(peer.identity);
    try {
      for (const std::string& message : peer.link.receive(frame.to_string_view())) {
        if (all.empty() || all.back().agent != number) all.push_back({number, {}});
        all.back().events.push_back(decoded<AgentEvent>(message));
      }
    } catch (const Error& error) {
      socket_->complaint = error.what();
    }
  }
  return all;
}

void DriverEndpoint::acknowledge() {
  for (Socket::Peer& peer : socket_->peers) peer.link.acknowledge();
}

void DriverEndpoint::send(AgentNumber agent, const Command& command) {
  TUNE_CHECK(agent.value < socket_->peers.size());
  socket_->peers[agent.value].link.send(encoded(command));
}

void DriverEndpoint::flush(nanoseconds now) {
  for (Socket::Peer& peer : socket_->peers) {
    std::vector<std::string> due = peer.link.frames(now);
    if (due.empty() && now - peer.last_sent >= kHeartbeatEvery) {
      due.push_back(peer.link.heartbeat());
    }
    for (const std::string& frame : due) socket_->send_frame(peer, frame);
    if (!due.empty()) peer.last_sent = now;
  }
  raise_if_readable(socket_->socket, *socket_->signal);
}

// ---- Agent ----------------------------------------------------------------------------------------

struct AgentEndpoint::Socket {
  Socket(const std::string& address, const std::string& identity)
      : socket(context, zmq::socket_type::dealer), link(life_number()) {
    socket.set(zmq::sockopt::routing_id, identity);
    socket.set(zmq::sockopt::linger, 1000);
    socket.set(zmq::sockopt::sndhwm, 0);
    socket.set(zmq::sockopt::rcvhwm, 0);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(2 * kMaxFrameBytes));
    socket.set(zmq::sockopt::reconnect_ivl, 2);  // the driver listens a few ms after the start
    socket.set(zmq::sockopt::reconnect_ivl_max, 500);
    socket.connect(address);
    signal = std::make_unique<InputSignal>(socket.get(zmq::sockopt::fd));
  }
  zmq::context_t context{1};
  zmq::socket_t socket;
  std::unique_ptr<InputSignal> signal;
  Link link;
  nanoseconds last_sent{};
};

AgentEndpoint::AgentEndpoint(const std::string& address, const std::string& identity)
    : socket_(std::make_unique<Socket>(address, identity)) {}
AgentEndpoint::~AgentEndpoint() = default;

int AgentEndpoint::descriptor() const { return socket_->signal->descriptor(); }

void AgentEndpoint::send(const AgentEvent& event) { socket_->link.send(encoded(event)); }

std::vector<Command> AgentEndpoint::receive() {
  socket_->signal->clear();
  std::vector<Command> commands;
  zmq::message_t frame;
  while (socket_->socket.recv(frame, zmq::recv_flags::dontwait)) {
    for (const std::string& message : socket_->link.receive(frame.to_string_view())) {
      commands.push_back(decoded<Command>(message));
    }
    socket_->link.acknowledge();
  }
  return commands;
}

void AgentEndpoint::flush(nanoseconds now) {
  std::vector<std::string> due = socket_->link.frames(now);
  if (due.empty() && now - socket_->last_sent >= kHeartbeatEvery) {
    due.push_back(socket_->link.heartbeat());
  }
  for (const std::string& frame : due) {
    socket_->socket.send(to_message(frame), zmq::send_flags::dontwait);
  }
  if (!due.empty()) socket_->last_sent = now;
  raise_if_readable(socket_->socket, *socket_->signal);
}

std::size_t AgentEndpoint::unacknowledged_bytes() const {
  return socket_->link.unacknowledged_bytes();
}

}  // namespace tune
