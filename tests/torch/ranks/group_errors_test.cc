// Groups' words on errors and addresses; nothing is started.
#include <doctest/doctest.h>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <stdexcept>
#include <string>

#include "skip.h"
#include "core/platform/network_address.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

TEST_CASE("of an error of NCCL's, its last error is said too") {
  const std::runtime_error nccl(
      "NCCL error in: NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO for "
      "details), NCCL version 2.28.9\nncclUnhandledCudaError: Call to CUDA function failed.\n"
      "Last error:\nCuda failure 2 'out of memory'\nException raised from somewhere\nframe #0");
  CHECK(cause_of(nccl) ==
        "NCCL error in: NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO for "
        "details), NCCL version 2.28.9; NCCL's last error: Cuda failure 2 'out of memory'");
  CHECK(cause_of(std::runtime_error("it broke\nLast error:\n")) == "it broke");
  CHECK(cause_of(std::runtime_error("it broke\nin line 3")) == "it broke");
  CHECK(cause_of(std::runtime_error("")).empty());
}

// Of the first interface that is not the loopback; empty: there is none.
std::string outer_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  std::string found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    const bool is_outer = one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
                          (one->ifa_flags & IFF_LOOPBACK) == 0 && (one->ifa_flags & IFF_UP) != 0;
    char text[NI_MAXHOST] = "";
    if (is_outer && ::getnameinfo(one->ifa_addr, sizeof(sockaddr_in), text, sizeof text, nullptr, 0,
                                  NI_NUMERICHOST) == 0) {
      found = text;
    }
  }
  ::freeifaddrs(all);
  return found;
}

TEST_CASE("a rank's address is that of the interface towards rank 0, not the host name's") {
  CHECK(own_address_towards("no such host", 1).find_first_not_of("0123456789.:abcdef") ==
        std::string::npos);
  const std::string outer = outer_address();
  if (outer.empty()) return testing::skip("no interface but the loopback");
  CHECK(own_address_towards(outer, 29500) == outer);  // as rank 0 itself
  // Rank 0 by a name that its own /etc/hosts gives to the loopback: what others can reach.
  const std::string by_name = own_address_towards("127.0.1.1", 29500);
  CHECK_FALSE(by_name.empty());
  CHECK(by_name == own_address_towards("198.51.100.1", 29500));
}

}  // namespace
}  // namespace tune
