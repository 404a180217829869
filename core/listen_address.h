// ListenAddress: where a driver listens for machines that join, as users write it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

struct ListenAddress {
  std::string host;  // an interface, an address, or "0.0.0.0"
  int port = 0;      // 0: one that is free
};
// ADDRESS[:PORT]: "eth0", "eth0:7000", "10.0.0.1:0", "[fd00::1]:7000". Throws Error (kBadInput).
ListenAddress listen_address(std::string_view text);

// A network interface of this machine with one of its addresses.
struct Interface {
  std::string name;
  std::string address;  // "10.0.0.1", "fd00::1"
  bool is_loopback = false;
};
// The addresses that others reach it at. Throws Error (kBadInput), naming those there are, when
// this machine has no such interface or address.
std::vector<std::string> reachable(const ListenAddress& listen,
                                   const std::vector<Interface>& interfaces);

// "10.0.0.1:7000", "[fd00::1]:7000".
std::string with_port(const std::string& address, int port);

}  // namespace tune
