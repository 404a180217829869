// BulkSocket: a connection for much data between machines that have joined and the driver's host,
// beside the one of core/platform/transport.h, so that a checkpoint never stands in the way of a
// verdict. tcp with CURVE and the keys of joining; the gate admits as it does there.
//
// Frames may be lost: when a connection breaks, and when the other side takes none for long. One
// thread each.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/join_token.h"
#include "core/platform/join_keys.h"

namespace tune {

// The name of a machine that has joined, and of the experiment that it takes part in.
inline std::string bulk_identity(const std::string& mark, const std::string& machine) {
  return mark.empty() ? machine : mark + "/" + machine;
}

class BulkSocket {
 public:
  // Of the driver's host: listens at these addresses, at one port; 0: a free one. Throws Error
  // (kProcess).
  BulkSocket(const std::vector<std::string>& addresses, int port, const JoinKeys& keys);
  // Of a machine that has joined. `identity` is unique.
  BulkSocket(const JoinToken& token, const std::string& address, const std::string& identity);
  ~BulkSocket();

  int port() const;  // where it listens
  // As those of DriverEndpoint. From any thread.
  void admit(const std::string& join_public_key);
  void admit_also(const std::string& join_public_key);
  std::vector<std::string> take_refused();

  // Connects by this token and to this address from now on.
  void connect(const JoinToken& token, const std::string& address);

  // Until there is input, the descriptor is readable, or the time is over.
  void wait(int descriptor, std::chrono::milliseconds time);
  bool receive(std::string& peer, std::string& frame);  // false: there is none now
  // False: it is lost. `peer` is not used by a machine that has joined.
  bool send(const std::string& peer, std::string_view frame);

 private:
  struct Socket;
  std::unique_ptr<Socket> socket_;
};

}  // namespace tune
