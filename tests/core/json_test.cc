#include "core/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>

#include "core/quick_json.h"
#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

TEST_CASE("values are written as one line with keys in their order") {
  const Value value = {{"z", list({1, -2, true, nullptr})},
                       {"a", {{"x", 1.0}, {"empty", Value::make_map()}}}};
  CHECK(to_json(value) == R"({"z":[1,-2,true,null],"a":{"x":1.0,"empty":{}}})");
  std::string out = "x";
  append_json(out, Value(2));
  CHECK(out == "x2");
}

TEST_CASE("floats always look like floats, what is not finite is null or text") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(to_json(list({1.0, 0.1, 1e20, std::nan(""), kInfinity, -kInfinity})) ==
        R"([1.0,0.1,1e+20,null,"inf","-inf"])");
}

TEST_CASE("strings are escaped") {
  CHECK(to_json(Value("a\"b\\c\n\t\r\x01/é")) == "\"a\\\"b\\\\c\\n\\t\\r\\u0001/é\"");
  CHECK(to_json(Value(std::string("\0", 1))) == R"("\u0000")");
  CHECK(to_json(Value{{"k\"", 1}}) == R"({"k\"":1})");
}

TEST_CASE("an indent breaks maps into lines") {
  CHECK(to_json(Value{{"a", 1}, {"b", {{"c", list({1, 2})}}}}, 2) ==
        "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": [1, 2]\n  }\n}");
  CHECK(to_json(Value::make_map(), 2) == "{}");
}

TEST_CASE("what was written reads back as the same value") {
  const Value values[] = {
      Value(),
      Value(true),
      Value(INT64_MIN),
      Value(INT64_MAX),
      Value(0.1),
      Value(1.0),
      Value(-0.0),
      Value(1e300),
      Value(""),
      Value("\x01\"\\ é \xf0\x9f\x98\x80"),
      list({}),
      Value::make_map(),
      Value{{"b", {{"x", list({1, 1.0, "s", {{"y", false}}})}}}, {"a", nullptr}}};
  for (const Value& value : values) {
    CAPTURE(to_json(value));
    CHECK(parse_json(to_json(value), "t") == value);
    CHECK(parse_json(to_json(value, 2), "t") == value);
  }
}

TEST_CASE("integers and floats stay what they were written as") {
  CHECK(parse_json("1", "t").type() == Value::Type::kInt);
  CHECK(parse_json("1.0", "t").type() == Value::Type::kFloat);
  CHECK(parse_json("1e3", "t").type() == Value::Type::kFloat);
  CHECK(parse_json(" {\"a\" : [ 1 , 2 ] } ", "t").dump() == R"({"a":[1,2]})");
}

TEST_CASE("text that is not JSON is refused with its name and position") {
  for (const char* text :
       {"", "{", "[1,", "{\"a\":}", "{\"a\" 1}", "tru", "01", "1 2", "nan", "'a'", "\"\x01\"",
        "\"\\q\"", "[1]]", "\"\xff\"", "1e999", "{a: 1}", "// x\n1"}) {
    CAPTURE(text);
    CHECK_HAS(refusal([&] { parse_json(text, "params.json"); }), "params.json");
  }
  CHECK_HAS(refusal([] { parse_json("[1, x]", "f"); }),
            "reading f: no JSON at byte 5: syntax error while parsing value");
  CHECK_HAS(refusal([] { parse_json("[1,\n x]", "f"); }), "parse error at line 2, column 2: ");
  CHECK_HAS(refusal([] { parse_json("1e999", "f"); }), "byte 5: number overflow parsing '1e999'");
}

TEST_CASE("a key that comes twice, is empty or holds a slash is refused") {
  CHECK_HAS(refusal([] { parse_json(R"({"a":1,"b":2,"a":3})", "f"); }), "'a' is there twice");
  CHECK_HAS(refusal([] { parse_json(R"({"a":{"b":1,"b":2}})", "f"); }), "'b' is there twice");
  CHECK_HAS(refusal([] { parse_json(R"({"a/b":1})", "f"); }), "'a/b'");
  CHECK_HAS(refusal([] { parse_json(R"({"":1})", "f"); }), "empty");
}

TEST_CASE("an integer that does not fit is refused") {
  CHECK(parse_json("9223372036854775807", "f").integer() == INT64_MAX);
  CHECK_HAS(refusal([] { parse_json("9223372036854775808", "f"); }), "9223372036854775808");
}

TEST_CASE("nesting is bounded") {
  const auto nested = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']');
  };
  CHECK(parse_json(nested(kMaxNesting), "f").is_list());
  CHECK_HAS(refusal([&] { parse_json(nested(kMaxNesting + 1), "f"); }), "nested deeper than 64");
  CHECK_HAS(refusal([&] { parse_json(std::string(1000000, '['), "f"); }), "nested deeper");
  std::string maps;
  for (int i = 0; i < 100000; ++i) maps += "{\"a\":";
  CHECK_HAS(refusal([&] { parse_json(maps, "f"); }), "nested deeper");
}

// ---- Reports ------------------------------------------------------------------------------------

TEST_CASE("the quick reader gives what the general one does, and leaves it the rest") {
  const auto same = [](std::string_view text) {
    CAPTURE(text);
    const auto quick = quick_json(text);
    REQUIRE(quick.has_value());
    const Value general = parse_any_json(text, "text");
    CHECK(*quick == general);
    CHECK(to_json(*quick) == to_json(general));  // integers and floats apart
  };
  for (const char* text : {"{}",
                           " [ ] ",
                           "null",
                           "true",
                           "false",
                           "\"\"",
                           "\"a b\"",
                           "0",
                           "-0",
                           "-7",
                           "0.0",
                           "-0.0",
                           "1.5e-3",
                           "1E+2",
                           "123456789012345678",
                           "-123456789012345678",
                           "1e308",
                           "4.9e-300",
                           "{\"a\":1,\"b\":{\"c\":[1,2.5,[],{}],\"d\":null},\"e\":\"x\"}\n",
                           "{ \"a\" : [ true , false ] }"}) {
    same(text);
  }
  const std::string deep(kMaxNesting, '[');
  same(deep + std::string(kMaxNesting, ']'));
  for (const std::string& text :
       std::initializer_list<std::string>{"",
                                          " ",
                                          "{",
                                          "[1,]",
                                          "[1 2]",
                                          "{\"a\":1,}",
                                          "{\"a\" 1}",
                                          "{a:1}",
                                          "01",
                                          "1.",
                                          ".5",
                                          "+1",
                                          "1e",
                                          "--1",
                                          "-",
                                          "inf",
                                          "NaN",
                                          "nul",
                                          "truely",
                                          "1 2",
                                          "\"a",
                                          "\"\\n\"",
                                          "\"\t\"",
                                          "\"\u00e4\"",
                                          "{\"a/b\":1}",
                                          "{\"\":1}",
                                          "{\"a\":1,\"a\":2}",
                                          "1234567890123456789",
                                          "1e999",
                                          "1e-999",
                                          "[" + deep + std::string(kMaxNesting + 1, ']')}) {
    CAPTURE(text);
    CHECK_FALSE(quick_json(text).has_value());
  }
}

TEST_CASE("a report may have the numbers that Python's json writes") {
  const Result report = parse_report_json(
      R"({"a": NaN, "b": [Infinity, -Infinity], "c": {"d": NaN}, "text": "NaN \" -Infinity"})", "it");
  CHECK(std::isnan(report.get<double>("a")));
  CHECK(report.at("b").list()[0].number() == std::numeric_limits<double>::infinity());
  CHECK(report.at("b").list()[1].number() == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(report.get<double>("c/d")));
  CHECK(report.get<std::string>("text") == "NaN \" -Infinity");
  CHECK_HAS(refusal([] { parse_report_json(R"({"a": NaNa})", "it"); }), "reading it");
}

TEST_CASE("a report's keys may be key paths") {
  const Result report = parse_report_json(R"({"loss/test": 1, "loss/train": 2, "x": 3})", "it");
  CHECK(report.dump() == R"({"loss":{"test":1,"train":2},"x":3})");
  CHECK_HAS(refusal([] { parse_report_json(R"({"a": 1, "a/b": 2})", "it"); }), "a");
  CHECK_HAS(refusal([] { parse_report_json(R"({"a//b": 2})", "it"); }), "a");
  CHECK_HAS(refusal([] { parse_report_json(R"({"a": 1, "a": 2})", "it"); }), "twice");
}

TEST_CASE("a report is a map") {
  for (const char* text : {"1", "[1]", "\"x\"", "null", "", "{", "{\"a\": 1} x", "{'a': 1}"}) {
    CAPTURE(text);
    CHECK_FALSE(refusal([&] { parse_report_json(text, "it"); }).empty());
  }
}

}  // namespace
}  // namespace tune
