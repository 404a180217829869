#include "core/platform/transport.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include <zmq.hpp>

#include <fmt/format.h>

#include "core/error.h"
#include "core/link.h"
#include "core/platform/process.h"
#include "core/platform/system_clock.h"

namespace tune {

namespace {

using std::chrono::nanoseconds;

// Frames of one peer that wait in a socket, each way. A peer that stands still fills them with
// heartbeats; a frame that does not fit stays with its Link until the socket drains. Its bytes are
// bounded by what a Link keeps.
constexpr int kMaxQueuedFrames = 1000;
constexpr std::chrono::milliseconds kLinger{1000};

// The descriptor ZMQ_FD signals edges only, and sending consumes them. This one is readable as long
// as the socket may have input.
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

// Every call on a socket may be interrupted by a signal.
template <class Call>
auto uninterrupted(Call call) {
  while (true) {
    try {
      return call();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw;
    }
  }
}

void raise_if_readable(zmq::socket_t& socket, InputSignal& signal) {
  const int events = uninterrupted([&] { return socket.get(zmq::sockopt::events); });
  if ((events & ZMQ_POLLIN) != 0) signal.raise();
}

bool receive_part(zmq::socket_t& socket, zmq::message_t& part) {
  return uninterrupted([&] { return socket.recv(part, zmq::recv_flags::dontwait); }).has_value();
}

// False when the socket is full.
bool send_part(zmq::socket_t& socket, std::string_view bytes, zmq::send_flags flags) {
  zmq::message_t part(bytes.data(), bytes.size());
  return uninterrupted([&] { return socket.send(part, flags | zmq::send_flags::dontwait); })
      .has_value();
}

void set_common_options(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::linger, static_cast<int>(kLinger.count()));
  socket.set(zmq::sockopt::sndhwm, kMaxQueuedFrames);
  socket.set(zmq::sockopt::rcvhwm, kMaxQueuedFrames);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(2 * kMaxFrameBytes));
}

// The fresh messages of one frame, decoded. An unreadable message is dropped with a complaint.
template <class Message>
std::vector<Message> unpack_frame(Link& link, std::string_view frame, std::string& complaint) {
  std::vector<Message> messages;
  std::vector<std::string> fresh;
  try {
    fresh = link.receive(frame);
  } catch (const Error& error) {
    complaint = fmt::format("a frame of {} bytes was dropped: {}", frame.size(), error.what());
  }
  messages.reserve(fresh.size());
  for (const std::string& bytes : fresh) {
    try {
      messages.push_back(decoded<Message>(bytes));
    } catch (const Error& error) {
      complaint = fmt::format("a message of {} bytes was dropped: {}", bytes.size(), error.what());
    }
  }
  return messages;
}

std::uint64_t life_number() {
  return static_cast<std::uint64_t>(SystemClock().wall().count());
}

}  // namespace

// ---- Driver -------------------------------------------------------------------------------------

struct DriverEndpoint::Socket {
  Socket(const std::string& address, std::uint64_t epoch)
      : socket(context, zmq::socket_type::router), peers(epoch) {
    socket.set(zmq::sockopt::router_mandatory, 1);
    socket.set(zmq::sockopt::router_handover, 1);
    set_common_options(socket);
    try {
      socket.bind(address);
    } catch (const zmq::error_t& error) {
      throw Error(ErrorCode::kProcess,
                  fmt::format("listening for agents at {}: {}", address, error.what()));
    }
    signal = std::make_unique<InputSignal>(socket.get(zmq::sockopt::fd));
  }

  bool take(const std::string& identity, const std::string& frame) {
    try {
      return send_part(socket, identity, zmq::send_flags::sndmore) &&
             send_part(socket, frame, zmq::send_flags::none);
    } catch (const zmq::error_t&) {
      return false;  // not connected now
    }
  }

  zmq::context_t context{1};
  zmq::socket_t socket;
  std::unique_ptr<InputSignal> signal;
  Peers peers;
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

std::vector<Peers::Told> DriverEndpoint::receive(nanoseconds now) {
  socket_->signal->clear();
  std::vector<Peers::Told> told;
  zmq::message_t identity, frame;
  while (receive_part(socket_->socket, identity)) {
    if (!identity.more() || !receive_part(socket_->socket, frame)) continue;
    while (frame.more() && receive_part(socket_->socket, frame)) {  // ours have no more parts
    }
    socket_->peers.receive(identity.to_string(), frame.to_string_view(), now, told);
  }
  return told;
}

void DriverEndpoint::acknowledge(AgentNumber agent, Link::Position through) {
  socket_->peers.acknowledge(agent, through);
}

void DriverEndpoint::send(AgentNumber agent, const Command& command) {
  socket_->peers.send(agent, command);
}

void DriverEndpoint::flush(nanoseconds now) {
  socket_->peers.flush(now, [this](const std::string& identity, const std::string& frame) {
    return socket_->take(identity, frame);
  });
  raise_if_readable(socket_->socket, *socket_->signal);
}

// ---- Agent --------------------------------------------------------------------------------------

struct AgentEndpoint::Socket {
  Socket(const std::string& address, const std::string& identity)
      : socket(context, zmq::socket_type::dealer), link(life_number()) {
    socket.set(zmq::sockopt::routing_id, identity);
    set_common_options(socket);
    // The driver listens some ms after the start. On the same host asking again costs nothing.
    const bool same_host = address.starts_with("ipc:");
    socket.set(zmq::sockopt::reconnect_ivl, same_host ? 1 : 2);
    socket.set(zmq::sockopt::reconnect_ivl_max, same_host ? 0 : 500);
    socket.connect(address);
    signal = std::make_unique<InputSignal>(socket.get(zmq::sockopt::fd));
  }
  zmq::context_t context{1};
  zmq::socket_t socket;
  std::unique_ptr<InputSignal> signal;
  Link link;
  std::size_t handed_bytes = 0;
  nanoseconds last_heard{};
  bool heard = false;  // since the last flush
  std::string complaint;
};

AgentEndpoint::AgentEndpoint(const std::string& address, const std::string& identity)
    : socket_(std::make_unique<Socket>(address, identity)) {}
AgentEndpoint::~AgentEndpoint() = default;

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
    std::vector<Command> fresh =
        unpack_frame<Command>(socket_->link, frame.to_string_view(), socket_->complaint);
    std::move(fresh.begin(), fresh.end(), std::back_inserter(commands));
    socket_->link.acknowledge();
    socket_->heard = true;
  }
  return commands;
}

void AgentEndpoint::flush(nanoseconds now) {
  if (std::exchange(socket_->heard, false)) socket_->last_heard = now;
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

}  // namespace tune
