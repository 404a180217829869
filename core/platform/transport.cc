#include "core/platform/transport.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <zmq.hpp>

#include <fmt/format.h>

#include "core/build.h"
#include "core/error.h"
#include "core/join_greeting.h"
#include "core/link.h"
#include "core/platform/gate.h"
#include "core/platform/process.h"
#include "core/platform/zmq_calls.h"
#include "core/strings.h"

namespace tune {

namespace {

using std::chrono::nanoseconds;

// Frames of one peer that wait in a socket, each way. A peer that stands still fills them with
// heartbeats; a frame that does not fit stays with its Link until the socket drains. Its bytes are
// bounded by what a Link keeps.
constexpr int kMaxQueuedFrames = 1000;
constexpr std::chrono::milliseconds kLinger{1000};
// Of a connection over a network.
constexpr std::chrono::milliseconds kPingEvery{5000};
constexpr std::chrono::milliseconds kPingPatience{15000};
constexpr std::chrono::milliseconds kHandshakePatience{10000};
constexpr std::chrono::milliseconds kAddressPatience{3000};  // until the next one is tried
constexpr std::size_t kMaxRefusalsTold = 100;
constexpr const char* kConnectionEvents = "inproc://tune-connection-events";

void set_common_options(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::linger, static_cast<int>(kLinger.count()));
  socket.set(zmq::sockopt::sndhwm, kMaxQueuedFrames);
  socket.set(zmq::sockopt::rcvhwm, kMaxQueuedFrames);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(2 * kMaxFrameBytes));
}

// A connection over a network: one that breaks without a word is noticed, and so is one that never
// says who it is.
void set_network_options(zmq::socket_t& socket) {
  const auto ms = [](std::chrono::milliseconds time) { return static_cast<int>(time.count()); };
  socket.set(zmq::sockopt::heartbeat_ivl, ms(kPingEvery));
  socket.set(zmq::sockopt::heartbeat_timeout, ms(kPingPatience));
  socket.set(zmq::sockopt::heartbeat_ttl, ms(kPingPatience));
  socket.set(zmq::sockopt::handshake_ivl, ms(kHandshakePatience));
  socket.set(zmq::sockopt::ipv6, true);
}

void refuse_tcp(const std::string& address) {
  if (!address.starts_with("tcp:")) return;
  throw Error(ErrorCode::kBadInput, fmt::format("{}: tcp needs keys", address));
}

// The fresh messages of one frame, decoded. An unreadable message is dropped with a complaint.
template <class Message>
std::vector<Message> unpack_frame(Link& link, std::string_view frame, std::string& complaint) {
  std::vector<Message> messages;
  std::vector<std::string_view> fresh;
  try {
    fresh = link.receive(frame);
  } catch (const Error& error) {
    complaint = fmt::format("a frame of {} bytes was dropped: {}", frame.size(), error.what());
  }
  messages.reserve(fresh.size());
  for (const std::string_view bytes : fresh) {
    try {
      messages.push_back(decoded<Message>(bytes));
    } catch (const Error& error) {
      complaint = fmt::format("a message of {} bytes was dropped: {}", bytes.size(), error.what());
    }
  }
  return messages;
}

// The name that the other side has given itself when the connection was made.
std::string name_of_sender(zmq::message_t& frame) {
  const char* name = ::zmq_msg_gets(frame.handle(), "Identity");
  return name == nullptr ? "" : name;
}

// Of an agent: it has a name that no other process ever has.
constexpr std::uint64_t kOnlyLife = 1;

}  // namespace

// ---- Driver -------------------------------------------------------------------------------------

struct DriverEndpoint::Socket {
  Socket(const std::string& address, std::uint64_t epoch)
      : socket(context, zmq::socket_type::router), peers(epoch) {
    refuse_tcp(address);
    set_router_options(socket);
    try {
      socket.bind(address);
    } catch (const zmq::error_t& error) {
      throw Error(ErrorCode::kProcess,
                  fmt::format("listening for agents at {}: {}", address, error.what()));
    }
    signal = std::make_unique<InputSignal>(socket.get(zmq::sockopt::fd));
  }

  static void set_router_options(zmq::socket_t& router) {
    router.set(zmq::sockopt::router_mandatory, 1);
    router.set(zmq::sockopt::router_handover, 1);
    set_common_options(router);
  }

  void make_network_socket(const JoinKeys& keys, const std::string& mark) {
    gate.emplace(context, keys.join_public);
    for (const std::string& former : keys.former) gate->admit_also(former);
    zmq::socket_t& router = network.emplace(context, zmq::socket_type::router);
    set_router_options(router);
    set_network_options(router);
    if (!mark.empty())
      router.set(zmq::sockopt::routing_id, mark);  // told when a connection is made
    router.set(zmq::sockopt::backlog, Gate::kBacklog);
    router.set(zmq::sockopt::curve_server, true);
    router.set(zmq::sockopt::curve_secretkey, zmq::buffer(keys.driver_secret));
    router.set(zmq::sockopt::zap_domain, std::string_view(Gate::kDomain));
    gate->watch(router);
  }

  int bind(const std::string& address, int port) {
    const std::string wanted = with_port(address, port);
    try {
      network->bind("tcp://" + wanted);  // port 0: libzmq takes a free one
    } catch (const zmq::error_t& error) {
      throw Error(ErrorCode::kProcess,
                  fmt::format("listening for machines that join at {}: {}", wanted, error.what()));
    }
    const std::string bound = network->get(zmq::sockopt::last_endpoint);
    return std::stoi(bound.substr(bound.rfind(':') + 1));
  }

  // The socket that an agent is connected to.
  zmq::socket_t& socket_of(const std::string& identity) {
    return network && is_greeting(identity) ? *network : socket;
  }

  bool take(const std::string& identity, const std::string& frame) {
    return send_to(socket_of(identity), identity, frame);
  }

  static bool send_to(zmq::socket_t& to, const std::string& identity, const std::string& frame) {
    try {
      return send_part(to, identity, zmq::send_flags::sndmore) &&
             send_part(to, frame, zmq::send_flags::none);
    } catch (const zmq::error_t&) {
      return false;  // not connected now
    }
  }

  // Before anything that it says is read.
  bool is_refused(const std::string& identity) {
    const auto why = why_refused(identity, kAgentContract, build_version());
    if (!why) return false;
    send_to(*network, identity, refusal_frame(*why));
    if (refusals.size() < kMaxRefusalsTold && refusals.insert(*why).second) {
      refused.push_back("refused: " + *why);
    }
    return true;
  }

  // Stops, to be called again, when `room` bytes were told; takes them off.
  void receive(zmq::socket_t& from, nanoseconds now, std::vector<Peers::Told>& told,
               std::size_t& room) {
    const bool is_network = network && &from == &*network;
    zmq::message_t identity, frame;
    while (room > 0 && receive_part(from, identity)) {
      if (!identity.more() || !receive_part(from, frame)) continue;
      while (frame.more() && receive_part(from, frame)) {  // ours have no more parts
      }
      const std::string name = identity.to_string();
      // The name of the driver's own agent cannot be had from elsewhere, nor the other way round.
      if (is_network ? is_refused(name) : is_greeting(name)) continue;
      const std::size_t before = told.size();
      peers.receive(name, frame.to_string_view(), now, told);
      for (std::size_t i = before; i < told.size(); ++i) room -= std::min(room, told[i].bytes);
    }
    if (room == 0) raise_if_readable(from, *signal);
  }

  zmq::context_t context{1};
  zmq::socket_t socket;
  std::optional<Gate> gate;              // without it libzmq admits everybody: it ends last
  std::optional<zmq::socket_t> network;  // of machines that join
  bool listens = false;                  // for them
  std::unique_ptr<InputSignal> signal;
  Peers peers;
  std::set<std::string> refusals;    // that were told
  std::vector<std::string> refused;  // still to be told
};

DriverEndpoint::DriverEndpoint(const std::string& address, std::uint64_t epoch)
    : socket_(std::make_unique<Socket>(address, epoch)) {}
DriverEndpoint::~DriverEndpoint() = default;

int DriverEndpoint::descriptor() const {
  return socket_->signal->descriptor();
}
const Peers& DriverEndpoint::peers() const {
  return socket_->peers;
}

int DriverEndpoint::listen(const std::vector<std::string>& addresses, int port,
                           const JoinKeys& keys, const std::string& mark) {
  TUNE_CHECK(!socket_->listens);
  if (!socket_->network) socket_->make_network_socket(keys, mark);
  std::vector<std::string> bound;
  try {
    for (const std::string& address : addresses) {
      port = socket_->bind(address, port);
      bound.push_back(socket_->network->get(zmq::sockopt::last_endpoint));
    }
  } catch (const Error&) {  // another port may be free
    for (const std::string& endpoint : bound) socket_->network->unbind(endpoint);
    throw;
  }
  socket_->listens = true;
  socket_->signal->watch(socket_->network->get(zmq::sockopt::fd));
  return port;
}

void DriverEndpoint::admit(const std::string& join_public_key) {
  socket_->gate->admit(join_public_key);
}

void DriverEndpoint::admit_also(const std::string& join_public_key) {
  socket_->gate->admit_also(join_public_key);
}

std::vector<std::string> DriverEndpoint::take_refused() {
  if (!socket_->gate) return {};
  std::vector<std::string> all = socket_->gate->take_refused();
  std::ranges::move(std::exchange(socket_->refused, {}), std::back_inserter(all));
  return all;
}

void DriverEndpoint::expect(AgentNumber agent, const std::string& identity, std::uint64_t heard,
                            nanoseconds now) {
  socket_->peers.expect(agent, identity, heard, now);
}

std::vector<Peers::Told> DriverEndpoint::receive(nanoseconds now, std::size_t room) {
  socket_->signal->clear();
  std::vector<Peers::Told> told;
  socket_->receive(socket_->socket, now, told, room);
  if (socket_->network) socket_->receive(*socket_->network, now, told, room);
  return told;
}

void DriverEndpoint::acknowledge(AgentNumber agent, Link::Position through) {
  socket_->peers.acknowledge(agent, through);
}

void DriverEndpoint::send(AgentNumber agent, const Command& command) {
  socket_->peers.send(agent, command);
}

bool DriverEndpoint::has_all(AgentNumber agent) const {
  return socket_->peers.has_all(agent);
}

void DriverEndpoint::flush(nanoseconds now) {
  socket_->peers.flush(now, [this](const std::string& identity, const std::string& frame) {
    return socket_->take(identity, frame);
  });
  raise_if_readable(socket_->socket, *socket_->signal);
  if (socket_->network) raise_if_readable(*socket_->network, *socket_->signal);
}

// ---- Agent --------------------------------------------------------------------------------------

struct AgentEndpoint::Socket {
  explicit Socket(const std::string& identity)
      : socket(context, zmq::socket_type::dealer), link(kOnlyLife) {
    socket.set(zmq::sockopt::routing_id, identity);
    set_common_options(socket);
  }

  // The driver listens some ms after the start. On the same host asking again costs nothing.
  void connect_beside(const std::string& address) {
    socket.set(zmq::sockopt::reconnect_ivl, 1);
    socket.set(zmq::sockopt::reconnect_ivl_max, 0);
    socket.connect(address);
    signal = std::make_unique<InputSignal>(socket.get(zmq::sockopt::fd));
  }

  // Messages queued for a connection that is given up come again by the next one. If it lingered,
  // it might be made after that one, and the driver would listen to it instead.
  void prepare_to_join() {
    set_network_options(socket);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::reconnect_ivl, 2);
    socket.set(zmq::sockopt::reconnect_ivl_max, 500);
    ::zmq_socket_monitor(socket.handle(), kConnectionEvents,
                         ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                             ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                             ZMQ_EVENT_DISCONNECTED);
    events.emplace(context, zmq::socket_type::pair);
    events->set(zmq::sockopt::linger, 0);
    events->connect(kConnectionEvents);
    signal = std::make_unique<InputSignal>(socket.get(zmq::sockopt::fd));
  }

  void join(const JoinToken& token) {
    const std::string former = addresses.empty() ? "" : "tcp://" + addresses[address];
    take(token);
    if (!former.empty()) socket.disconnect(former);
    try {
      socket.connect("tcp://" + addresses.front());
    } catch (const zmq::error_t& error) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("joining at {}: {}", addresses.front(), error.what()));
    }
  }

  // Holds for connections that are made from now on.
  void take(const JoinToken& token) {
    socket.set(zmq::sockopt::curve_serverkey, zmq::buffer(token.driver_key));
    socket.set(zmq::sockopt::curve_secretkey, zmq::buffer(token.join_key));
    socket.set(zmq::sockopt::curve_publickey, zmq::buffer(public_key_of(token.join_key)));
    addresses = token.addresses;
    address = 0;
  }

  void hear_of_connection(nanoseconds now) {
    zmq::message_t event, where;
    while (events && receive_part(*events, event)) {
      receive_part(*events, where);
      std::uint16_t kind = 0;
      std::memcpy(&kind, event.data(), std::min(event.size(), sizeof kind));
      is_connected = kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
      if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
        refusal =
            "its token is no longer good: the driver has another join key; take the line that "
            "`tune token` prints";
      } else if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL ||
                 kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) {
        closed = true;
      }
    }
    if (addresses.size() > 1) try_next_address(now);
  }

  // Where experiments share their keys, another one's driver may listen where this one's did.
  bool is_of_another(zmq::message_t& frame) {
    const std::string name = name_of_sender(frame);
    if (mark.empty()) mark = name;
    other_driver = name == mark ? "" : name;
    return !other_driver.empty();
  }

  void try_next_address(nanoseconds now) {
    if (is_connected || now - tried_at < kAddressPatience) return;
    if (tried_at != nanoseconds{}) {
      socket.disconnect("tcp://" + addresses[address]);
      address = (address + 1) % addresses.size();
      socket.connect("tcp://" + addresses[address]);
    }
    tried_at = now;
  }

  zmq::context_t context{1};
  zmq::socket_t socket;
  std::unique_ptr<InputSignal> signal;
  Link link;
  std::size_t handed_bytes = 0;
  nanoseconds last_heard{};
  bool heard = false;  // since the last flush
  std::string complaint;
  // Of one that joins
  std::optional<zmq::socket_t> events;
  std::vector<std::string> addresses;
  std::size_t address = 0;  // the one that is tried
  nanoseconds tried_at{};
  bool is_connected = false;
  bool closed = false;  // by the other side, before it was clear who it is
  std::string refusal;
  bool is_of_other_version = false;
  std::string mark;
  std::string other_driver;
};

AgentEndpoint::AgentEndpoint(const std::string& address, const std::string& identity) {
  refuse_tcp(address);
  socket_ = std::make_unique<Socket>(identity);
  socket_->connect_beside(address);
}

AgentEndpoint::AgentEndpoint(JoinsLater, const std::string& name)
    : socket_(std::make_unique<Socket>(joined_identity(name))) {
  socket_->prepare_to_join();
}

AgentEndpoint::AgentEndpoint(const JoinToken& token, const std::string& name)
    : AgentEndpoint(JoinsLater{}, name) {
  socket_->join(token);
}

AgentEndpoint::~AgentEndpoint() = default;

// The driver misses what the old connection had taken and not sent yet, and asks for it.
void AgentEndpoint::join_by(const JoinToken& token) {
  socket_->join(token);
}

std::string joined_identity(const std::string& name) {
  return to_text(Greeting{kAgentContract, std::string(build_version()), name});
}

std::string AgentEndpoint::address() const {
  const bool joins = socket_->address < socket_->addresses.size();
  return joins ? socket_->addresses[socket_->address] : std::string();
}

int AgentEndpoint::descriptor() const {
  return socket_->signal->descriptor();
}

void AgentEndpoint::send(const AgentEvent& event) {
  socket_->link.send(encoded(event));
}

std::vector<Command> AgentEndpoint::receive() {
  socket_->signal->clear();
  std::vector<Command> commands;
  zmq::message_t frame;
  while (receive_part(socket_->socket, frame)) {
    if (socket_->is_of_another(frame)) continue;
    if (auto refusal = refusal_in(frame.to_string_view())) {
      socket_->refusal = std::move(*refusal);
      socket_->is_of_other_version = true;
      continue;
    }
    std::vector<Command> fresh =
        unpack_frame<Command>(socket_->link, frame.to_string_view(), socket_->complaint);
    std::move(fresh.begin(), fresh.end(), std::back_inserter(commands));
    socket_->link.acknowledge();
    socket_->heard = socket_->heard || socket_->link.is_in_touch();
  }
  return commands;
}

void AgentEndpoint::flush(nanoseconds now) {
  if (std::exchange(socket_->heard, false)) socket_->last_heard = now;
  socket_->hear_of_connection(now);
  socket_->link.flush(now, [this](const std::string& frame) {
    if (!send_part(socket_->socket, frame, zmq::send_flags::none)) return false;
    socket_->handed_bytes += frame.size();
    return true;
  });
  raise_if_readable(socket_->socket, *socket_->signal);
}

std::size_t AgentEndpoint::unacknowledged_bytes() const {
  return socket_->link.unacknowledged_bytes();
}

std::size_t AgentEndpoint::handed_bytes() const {
  return socket_->handed_bytes;
}

nanoseconds AgentEndpoint::last_heard() const {
  return socket_->last_heard;
}
const std::string& AgentEndpoint::last_complaint() const {
  return socket_->complaint;
}
const std::string& AgentEndpoint::refusal() const {
  return socket_->refusal;
}

bool AgentEndpoint::is_of_other_version() const {
  return socket_->is_of_other_version;
}

std::string AgentEndpoint::why_not_connected() const {
  const std::string at = join(socket_->addresses, ", ");
  if (!socket_->closed) return fmt::format("no driver answers at {}", at);
  return fmt::format(
      "what listens at {} ends the connection: it is another experiment's driver, or "
      "the keys of this one were made anew",
      at);
}

std::uint64_t AgentEndpoint::driver_epoch() const {
  return socket_->link.peer_epoch();
}

const std::string& AgentEndpoint::mark() const {
  return socket_->mark;
}

const std::string& AgentEndpoint::other_driver() const {
  return socket_->other_driver;
}

}  // namespace tune
