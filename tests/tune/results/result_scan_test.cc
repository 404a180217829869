#include "tune/results/result_scan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/refusal.h"
#include "numbers.h"

namespace tune {
namespace {

using testing::kInfinity;
using Found = std::vector<std::pair<std::string, double>>;

Found scanned(const std::string& line) {
  Found found;
  scan_numbers(line, "a line",
               [&](std::string_view path, double value) { found.emplace_back(path, value); });
  return found;
}

void check_same(const Found& a, const Found& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].first == b[i].first);
    CHECK((a[i].second == b[i].second || (std::isnan(a[i].second) && std::isnan(b[i].second))));
  }
}

TEST_CASE("numbers are found by their paths, odd ones too") {
  check_same(
      scanned(
          R"({"a":1,"b":{"c":-2.5e-3,"d":{"e":7}},"t":"x","n":null,"i":"inf","m":"-inf","y":true})"),
      {{"a", 1},
       {"b/c", -2.5e-3},
       {"b/d/e", 7},
       {"n", std::nan("")},
       {"i", kInfinity},
       {"m", -kInfinity},
       {"y", 1}});
}

TEST_CASE("names of any kind, lists, spaces and escapes are read as JSON") {
  check_same(scanned(R"({ "a\"\n<b>" : 1 , "\u00f6": 2, "l": [1, 2], "e": {}, "ü": 3 })"),
             {{"a\"\n<b>", 1}, {"ö", 2}, {"ü", 3}});
}

TEST_CASE("lines that are not objects are refused by name") {
  for (const char* line : {"", "{", "{\"a\":1", "{\"a\":1}x", "[1]", "1", "{\"a\":}", "{\"a\":01}",
                           "{\"a\":+1}", "{\"a\":nan}", "{\"a\":inf}", "{\"a\":1.}", "{\"a\":1e}",
                           "{\"a\":tru}", "{a:1}", "{\"a\" 1}", "{\"a\":1,}", "\xff{}"}) {
    CAPTURE(line);
    CHECK_HAS(testing::refusal([&] { scanned(line); }), "a line");
  }
  CHECK_THROWS(scanned(std::string(100'000, '{')));
}

TEST_CASE("a line that differs from the one before it in more than its values is read anew") {
  const Found first = {{"a", 1}, {"b/c", 2}, {"d", 3}};
  check_same(scanned(R"({"a":1,"t":"x","b":{"c":2},"d":3})"), first);
  check_same(scanned(R"({"a":-1e9,"t":"longer","b":{"c":null},"d":false})"),
             {{"a", -1e9}, {"b/c", std::nan("")}, {"d", 0}});
  check_same(scanned(R"({"a":"x","t":"inf","b":{"c":"-inf"},"d":12345678901234567})"),
             {{"t", kInfinity}, {"b/c", -kInfinity}, {"d", 12345678901234567.0}});
  check_same(scanned(R"({"a":{"e":1},"t":"x","b":{"c":2},"d":3})"),
             {{"a/e", 1}, {"b/c", 2}, {"d", 3}});
  check_same(scanned(R"({"a":1,"t":"x","b":{"c":2},"d":3})"), first);
  check_same(scanned(R"({"a":1,"t":"x\"","b":{"c":2},"d":3})"), first);
  check_same(scanned(R"({"a":1,"t":"x","b":{"c":2},"d":3,"e":4})"),
             {{"a", 1}, {"b/c", 2}, {"d", 3}, {"e", 4}});
  check_same(scanned(R"({"a":1,"t":"x","b":{"c":2}})"), {{"a", 1}, {"b/c", 2}});
  CHECK_HAS(testing::refusal([] { scanned(R"({"a":1,"t":"x","b":{"c":2}}x)"); }), "a line");
  CHECK_HAS(testing::refusal([] { scanned(R"({"a":1,"t":"x","b":{"c":01}})"); }), "a line");
  check_same(scanned("{}"), {});
  check_same(scanned(R"({"a":1})"), {{"a", 1}});
}

// The scanner reads the same as a JSON reader: random lines, and those with one
// byte changed.
TEST_CASE("the scanner agrees with the JSON reader") {
  std::mt19937 random(20261122);
  const auto below = [&](unsigned limit) { return random() % limit; };
  const std::vector<std::string> leaves = {"1",    "-0.5",      "1e300",
                                           "null", "\"inf\"",   "\"x\"",
                                           "true", "false",     "12345678901234567890",
                                           "{}",   "{\"k\":2}", "[3]"};
  std::size_t read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string line = "{";
    for (unsigned i = 0; i < below(5); ++i) {
      if (i > 0) line += ",";
      line +=
          "\"k" + std::to_string(i) + "\":" + leaves[below(static_cast<unsigned>(leaves.size()))];
    }
    line += "}";
    if (below(2) == 0)
      line[below(static_cast<unsigned>(line.size()))] = static_cast<char>(32 + below(95));
    CAPTURE(line);
    std::optional<Value> value;
    try {
      value = parse_json(line, "it");
    } catch (const Error& error) {
      if (testing::has(error.what(), "twice")) continue;  // the scanner takes the last of them
    }
    if (!value || !value->is_map()) {
      CHECK_THROWS_AS(scanned(line), Error);
      continue;
    }
    ++read;
    double sum = 0;
    std::size_t count = 0;
    for (const auto& [path, leaf] : value->leaves()) {
      if (leaf->is_number()) sum += leaf->number(), ++count;
    }
    double own = 0;
    std::size_t own_count = 0;
    for (const auto& [path, leaf] : scanned(line)) {
      const Value* found = value->find(path);
      REQUIRE(found != nullptr);
      if (found->is_number()) own += leaf, ++own_count;
    }
    CHECK(own_count >= count);  // of keys given twice the JSON reader keeps one
    if (own_count == count) CHECK(own == doctest::Approx(sum));
  }
  CHECK(read > 5000);
}

}  // namespace
}  // namespace tune
