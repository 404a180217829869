#include "core/line_pattern.h"

#include <doctest/doctest.h>

#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

TEST_CASE("named groups are found in a line, in the order of the expression") {
  const LinePattern pattern(R"(step (?P<step>\d+).*?loss=(?P<loss>\S+)( acc=(?P<acc>\S+))?)");
  LinePattern::Found found;
  REQUIRE(pattern.find("[1] step 12: loss=0.5 acc=0.9", found));
  REQUIRE(found.size() == 3);
  CHECK(found[0] == std::pair<std::string, std::string_view>("step", "12"));
  CHECK(found[1].second == "0.5");
  CHECK(found[2].second == "0.9");
  REQUIRE(pattern.find("step 1 loss=2", found));
  CHECK(found.size() == 2);  // acc took no part
  CHECK_FALSE(pattern.find("nothing", found));
  CHECK(found.empty());
}

TEST_CASE("a line may hold any bytes") {
  const LinePattern pattern(R"(x=(?P<x>[0-9.]+))");
  LinePattern::Found found;
  const std::string line("\xff\xfe\0 x=1.5\x80", 11);
  REQUIRE(pattern.find(line, found));
  CHECK(found[0].second == "1.5");
}

TEST_CASE("an expression that takes other engines for ever takes linear time") {
  const LinePattern pattern(R"(^(?P<x>(a+)+)$)");
  LinePattern::Found found;
  CHECK_FALSE(pattern.find(std::string(100'000, 'a') + "b", found));
}

TEST_CASE("an expression that is none, or names nothing, is refused") {
  CHECK_HAS(refusal([] { LinePattern("loss=(?P<loss>"); }), "is not a regular expression");
  CHECK_HAS(refusal([] { LinePattern(R"((?P<x>.)\1)"); }), "is not a regular expression");
  CHECK_HAS(refusal([] { LinePattern("loss=(.*)"); }), "names no group");
  CHECK_HAS(refusal([] { LinePattern("(?P<x>((a{1000}){1000}){1000})"); }), "regular expression");
}

}  // namespace
}  // namespace tune
