// Gate: decides which machines may speak with the driver over tcp. libzmq asks it about the key of
// each connection (ZAP, rfc.zeromq.org/spec/27) before a byte of the connection is read. Only the
// experiment's join key is admitted; without a gate libzmq would admit whoever knows the driver's
// public key. Connections that never show a key (garbage, another protocol, another driver's keys)
// are ended by libzmq, and the gate is told.
//
// It answers in a thread of its own: a driver that waits for its store must not keep a machine from
// joining, and libzmq keeps what it has asked about until it is answered.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zmq {
class context_t;
class socket_t;
}  // namespace zmq

namespace tune {

class Gate {
 public:
  static constexpr const char* kDomain = "tune";
  // Of a socket that strangers may flood: connections that wait to be accepted.
  static constexpr int kBacklog = 1024;

  // One in a context, made before a socket that it is to guard.
  Gate(zmq::context_t& context, const std::string& join_public_key);
  ~Gate();
  Gate(const Gate&) = delete;

  // Hears of connections to this socket that end before they show a key.
  void watch(zmq::socket_t& socket);
  // From now on this key is admitted and no other. Connections that are there stay.
  void admit(const std::string& join_public_key);
  // This one as well, until the next admit().
  void admit_also(const std::string& join_public_key);

  // Refusals since the last call, for people. Each address is told once, and at most
  // kMaxTold in all; the rest is only counted.
  std::vector<std::string> take_refused();
  std::uint64_t refused() const;
  static constexpr std::size_t kMaxTold = 20;

 private:
  struct Keeper;
  std::unique_ptr<Keeper> keeper_;
};

}  // namespace tune
