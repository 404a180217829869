// Session: one connection of a browser: requests one after another, or one stream of events. Ends
// itself when its client is too slow, silent or gone. In the server's thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tune/view/guard.h"
#include "tune/view/patience.h"
#include "tune/view/worker.h"

namespace tune::view {

class StreamingSession;

// The state that all connections share.
struct Shared {
  std::string boot;
  Patience patience;
  Guard* guard = nullptr;  // orders have bodies, if it allows them
  Worker* worker = nullptr;
  boost::asio::ssl::context* tls = nullptr;  // none: plain connections
  std::size_t connections = 0;
  std::set<StreamingSession*> streams;
  std::set<std::shared_ptr<void>> waiting;       // sessions whose answer the worker makes
  std::map<std::string, std::uint64_t> changes;  // by experiment: the newest
  std::map<std::string, std::uint64_t> untold;   // those that no stream knows of
  void note(const std::vector<std::string>& keys, std::uint64_t change);
  // Tells all streams what they do not know; false: there was nothing.
  bool pass_on();
};

// Takes the connection over.
void begin_session(boost::asio::ip::tcp::socket socket, Shared& shared);
// Tells a client that there are as many already, if it can read that without TLS, and closes.
void turn_away(boost::asio::ip::tcp::socket socket, std::size_t connections);

}  // namespace tune::view
