#include "core/store_address.h"

#include <doctest/doctest.h>

#include "core/refusal.h"

namespace tune {
namespace {

TEST_CASE("a store's address has its parts") {
  const StoreAddress full = parse_store_address("redis://me:se@cret@host:7000/3");
  CHECK(full.host == "host");
  CHECK(full.port == 7000);
  CHECK(full.database == 3);
  CHECK(full.user == "me");
  CHECK(full.password == "se@cret");
  const StoreAddress socket = parse_store_address("unix://:secret@/run/r.sock?db=2");
  CHECK(socket.host.empty());
  CHECK(socket.path == "/run/r.sock");
  CHECK(socket.password == "secret");
  CHECK(socket.database == 2);
  CHECK(parse_store_address("redis://[::1]:6380").host == "::1");
  CHECK(shown(parse_store_address("redis://:secret@host/")) == "host:6379");
}

TEST_CASE("an address that is none is refused with the form to write, without its password") {
  for (const char* bad :
       {"host:6379", "http://host", "redis://", "redis://:6379", "redis://host:x", "redis://host:0",
        "redis://host:70000", "redis://host:6379/db", "redis://secret@host", "unix://run/r",
        "unix:///", "redis://a b", "redis://:hidden@host:x"}) {
    CAPTURE(bad);
    const std::string message = testing::refusal([&] { parse_store_address(bad); });
    CHECK_HAS(message, "redis://[:password@]host");
    CHECK_FALSE(testing::has(message, "hidden"));
  }
}

}  // namespace
}  // namespace tune
