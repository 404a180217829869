#include "core/listen_address.h"

#include <doctest/doctest.h>

#include "core/refusal.h"

namespace tune {
namespace {

using Addresses = std::vector<std::string>;

TEST_CASE("an address to listen at is read with or without a port") {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const auto& [text, host, port] : {Case{"eth0", "eth0", 0},
                                         {"eth0:7000", "eth0", 7000},
                                         {"10.0.0.1:0", "10.0.0.1", 0},
                                         {"[fd00::1]:65535", "fd00::1", 65535},
                                         {"[fd00::1]", "fd00::1", 0}}) {
    CAPTURE(text);
    CHECK(listen_address(text).host == host);
    CHECK(listen_address(text).port == port);
  }
}

TEST_CASE("what is not an address to listen at is refused with the way to write it") {
  for (const char* wrong : {"", ":7000", "eth0:", "eth0:x", "eth0:-1", "eth0:65536", "fd00::1",
                            "[fd00::1", "[fd00::1]7000", "eth0:7000x"}) {
    CAPTURE(wrong);
    CHECK_HAS(testing::refusal([&] { listen_address(wrong); }), "write ADDRESS[:PORT]");
  }
}

TEST_CASE("an interface means its addresses, and 0.0.0.0 all that others can reach") {
  const std::vector<Interface> all = {
      {"lo", "127.0.0.1", true}, {"eth0", "fd00::1"}, {"eth0", "10.0.0.1"}, {"ib0", "10.1.0.1"}};
  CHECK(reachable({"eth0"}, all) == Addresses{"10.0.0.1", "fd00::1"});
  CHECK(reachable({"10.1.0.1"}, all) == Addresses{"10.1.0.1"});
  CHECK(reachable({"lo"}, all) == Addresses{"127.0.0.1"});
  CHECK(reachable({"0.0.0.0"}, all) == Addresses{"10.0.0.1", "10.1.0.1", "fd00::1"});
  const std::string told = testing::refusal([&] { reachable({"eth1"}, all); });
  CHECK_HAS(told, "no interface or address eth1");
  CHECK_HAS(told, "ib0 (10.1.0.1)");
  CHECK_HAS(testing::refusal([&] { reachable({"0.0.0.0"}, {all[0]}); }), "no address but");
}

TEST_CASE("a port is written so that it can be read again") {
  CHECK(with_port("10.0.0.1", 7000) == "10.0.0.1:7000");
  CHECK(with_port("fd00::1", 7000) == "[fd00::1]:7000");
}

}  // namespace
}  // namespace tune
