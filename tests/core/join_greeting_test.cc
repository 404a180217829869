#include "core/join_greeting.h"

#include <doctest/doctest.h>

#include "core/link.h"
#include "core/refusal.h"

namespace tune {
namespace {

TEST_CASE("a machine of this build is taken, one of another version or contract told why not") {
  const std::string text = to_text({7, "0.9.0", "node-3-4711-17"});
  CHECK(text == "join/7/0.9.0/node-3-4711-17");
  CHECK(is_greeting(text));
  CHECK_FALSE(is_greeting("node-3-4711"));
  CHECK_FALSE(why_refused(text, 7, "0.9.0"));
  for (const auto& [contract, build] : {std::pair{8u, "0.9.0"}, {7u, "0.9.1"}}) {
    const std::string why = why_refused(text, contract, build).value_or("");
    CHECK_HAS(why, "node-3-4711-17 is tune 0.9.0 and speaks version 7");
    CHECK_HAS(why, std::string("this driver is tune ") + build);
    CHECK_HAS(why, "install the same version");
  }
}

TEST_CASE("what is not a greeting is refused") {
  for (const char* odd :
       {"", "join/", "join/7", "join/7/0.9.0", "join/x/0.9.0/n", "join/-1/0.9.0/n",
        "join/99999999999/0.9.0/n", "JOIN/7/0.9.0/n", "node-3"}) {
    CAPTURE(odd);
    CHECK_HAS(why_refused(odd, 7, "0.9.0").value_or(""), "does not greet");
  }
}

TEST_CASE("a refusal is told apart from every frame of a link") {
  CHECK(refusal_in(refusal_frame("why")) == "why");
  Link link(3);
  link.send("message");
  CHECK_FALSE(refusal_in(link.next_frame()));
  CHECK_FALSE(refusal_in(link.heartbeat()));
  CHECK_FALSE(refusal_in(""));
  CHECK(refusal_in(refusal_frame(std::string(5000, 'x'))).value_or("").size() == 1000);
}

}  // namespace
}  // namespace tune
