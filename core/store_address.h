// The address of a store as users write it: redis://[[user]:password@]host[:port][/database] or
// unix://[[user]:password@]/path/to/socket[?db=N]. Form only; nothing is contacted.
#pragma once

#include <string>
#include <string_view>

namespace tune {

struct StoreAddress {
  std::string host;  // empty: a unix socket
  int port = 6379;
  std::string path;
  std::string user;
  std::string password;
  int database = 0;
};

// Throws Error (kBadInput) that says what is wrong and how to write it, without the password.
StoreAddress parse_store_address(std::string_view text);
// "host:6379" or "/run/redis.sock": fit to be shown.
std::string shown(const StoreAddress& address);

}  // namespace tune
