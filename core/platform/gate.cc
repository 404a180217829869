#include "core/platform/gate.h"

#include <array>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include <zmq.hpp>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/deaf_thread.h"

namespace tune {

namespace {

constexpr const char* kZap = "inproc://zeromq.zap.01";
constexpr const char* kVersion = "1.0";
constexpr const char* kEvents = "inproc://tune-gate-events";
constexpr const char* kOrders = "inproc://tune-gate-orders";
constexpr int kHandshakeFailures =
    ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;

std::vector<std::string> receive_all(zmq::socket_t& socket) {
  std::vector<std::string> parts;
  zmq::message_t part;
  do {
    if (!socket.recv(part, zmq::recv_flags::dontwait)) return parts;
    parts.push_back(part.to_string());
  } while (part.more());
  return parts;
}

void send_all(zmq::socket_t& socket, const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto more = i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    socket.send(zmq::buffer(parts[i]), more);
  }
}

}  // namespace

// A request: version, number, domain, address, identity, mechanism, and the key of the other side.
struct Gate::Keeper {
  Keeper(zmq::context_t& context, std::string key)
      : admitted{std::move(key)},
        context(context),
        questions(context, zmq::socket_type::rep),
        orders(context, zmq::socket_type::pair),
        end(context, zmq::socket_type::pair) {
    questions.bind(kZap);
    orders.bind(kOrders);
    end.connect(kOrders);
    for (zmq::socket_t* socket : {&questions, &orders, &end}) socket->set(zmq::sockopt::linger, 0);
  }

  void work() {
    zmq::socket_t events(context, zmq::socket_type::pair);
    events.set(zmq::sockopt::linger, 0);
    bool watches = false;
    while (true) {
      zmq_pollitem_t watched[] = {{questions.handle(), 0, ZMQ_POLLIN, 0},
                                  {orders.handle(), 0, ZMQ_POLLIN, 0},
                                  {events.handle(), 0, ZMQ_POLLIN, 0}};
      ::zmq_poll(watched, watches ? 3 : 2, -1);
      if ((watched[1].revents & ZMQ_POLLIN) != 0) {
        if (receive_all(orders).at(0) == "end") return;
        events.connect(kEvents);
        watches = true;
      }
      if ((watched[0].revents & ZMQ_POLLIN) != 0) answer(receive_all(questions));
      if (watches && (watched[2].revents & ZMQ_POLLIN) != 0) hear(receive_all(events));
    }
  }

  void answer(const std::vector<std::string>& asked) {
    if (asked.empty()) return;
    const bool is_request = asked.size() == 7 && asked[0] == kVersion && asked[5] == "CURVE";
    bool is_known = false;
    if (is_request) {
      const std::lock_guard lock(mutex);
      is_known = admitted.contains(asked[6]);
    }
    const std::string number = asked.size() > 1 ? asked[1] : "";
    if (is_known) return send_all(questions, {kVersion, number, "200", "OK", "", ""});
    send_all(questions, {kVersion, number, "400", "not the join key of this experiment", "", ""});
    constexpr std::string_view kOldFamily = "::ffff:";  // IPv4 through a socket of both
    std::string from = asked.size() > 3 ? asked[3] : "somewhere";
    if (from.starts_with(kOldFamily)) from.erase(0, kOldFamily.size());
    refuse(
        fmt::format("a connection from {} was refused: its token is not, or no longer, one of "
                    "this experiment's; `tune token` prints the one that is",
                    from));
  }

  void hear(const std::vector<std::string>& event) {
    if (event.empty() || event[0].size() < sizeof(std::uint16_t)) return;
    std::uint16_t kind = 0;
    std::memcpy(&kind, event[0].data(), sizeof kind);
    if ((kind & kHandshakeFailures) == 0) return;
    refuse(
        "a connection was refused: it did not speak as a machine with a token of this "
        "experiment does");
  }

  void refuse(std::string text) {
    const std::lock_guard lock(mutex);
    ++refusals;
    if (told.size() >= kMaxTold || !told.insert(text).second) return;
    refused.push_back(std::move(text));
  }

  std::mutex mutex;
  std::set<std::string> admitted;
  std::uint64_t refusals = 0;
  std::set<std::string> told;
  std::vector<std::string> refused;

  zmq::context_t& context;
  zmq::socket_t questions;  // of the thread alone, once it runs
  zmq::socket_t orders;     // the same
  zmq::socket_t end;        // of the gate's owner
  std::thread thread;
};

Gate::Gate(zmq::context_t& context, const std::string& join_public_key)
    : keeper_(std::make_unique<Keeper>(context, join_public_key)) {
  keeper_->thread = deaf_thread([keeper = keeper_.get()] { keeper->work(); });
}

Gate::~Gate() {
  keeper_->end.send(zmq::str_buffer("end"));
  keeper_->thread.join();
}

void Gate::watch(zmq::socket_t& socket) {
  if (::zmq_socket_monitor(socket.handle(), kEvents, kHandshakeFailures) != 0) {
    throw Error(ErrorCode::kProcess,
                fmt::format("watching connections: {}", ::zmq_strerror(::zmq_errno())));
  }
  keeper_->end.send(zmq::str_buffer("watch"));
}

void Gate::admit(const std::string& join_public_key) {
  const std::lock_guard lock(keeper_->mutex);
  keeper_->admitted = {join_public_key};
}

void Gate::admit_also(const std::string& join_public_key) {
  const std::lock_guard lock(keeper_->mutex);
  keeper_->admitted.insert(join_public_key);
}

std::vector<std::string> Gate::take_refused() {
  const std::lock_guard lock(keeper_->mutex);
  return std::exchange(keeper_->refused, {});
}

std::uint64_t Gate::refused() const {
  const std::lock_guard lock(keeper_->mutex);
  return keeper_->refusals;
}

}  // namespace tune
