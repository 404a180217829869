#include "core/strings.h"

#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/random.h"

namespace tune {
namespace {

TEST_CASE("a shell reads a quoted word as it was") {
  CHECK(shell_word("results/a-b_1.0:2") == "results/a-b_1.0:2");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("~") == "'~'");
  CHECK(shell_word("it's $HOME") == "'it'\\''s $HOME'");
}

TEST_CASE("the nearest word is the one with the fewest edits, or none") {
  const std::vector<std::string> known = {"uniform", "quniform", "loguniform", "lr", "momentum"};
  struct Case {
    const char* wrong;
    const char* near;
  };
  const Case cases[] = {{"unifrom", "uniform"},
                        {"log_uniform", "loguniform"},
                        {"momentun", "momentum"},
                        {"batch_size", ""},
                        {"r", "lr"},
                        {"", ""},
                        {"xy", ""},
                        {"uniform", "uniform"}};
  for (const Case& one : cases) {
    CAPTURE(one.wrong);
    CHECK(nearest(one.wrong, known) == one.near);
  }
  CHECK(nearest("ab", {}).empty());
  CHECK(nearest("sede", {"mode", "seed"}) == "seed");  // two letters that changed places
  CHECK(nearest("nan", {"bad"}).empty());
  CHECK(nearest("abcx", {"abcd", "abce"}) == "abcd");  // the first of equals
  CHECK(nearest(std::string(100000, 'a'), {std::string(100000, 'b')}).empty());
}

TEST_CASE("join puts the separator between parts only") {
  CHECK(join({}, ", ").empty());
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "a", ""}, ", ") == "a, a, ");
}

std::string number_text(double value) {
  std::string text;
  append_number(text, value);
  return text;
}

TEST_CASE("numbers are the shortest text that reads back and look like floats") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::pair<double, const char*> cases[] = {
      {0.1, "0.1"},         {1, "1.0"},         {-3, "-3.0"},
      {0.0, "0.0"},         {-0.0, "-0.0"},     {1e20, "1e+20"},
      {1e-5, "1e-05"},      {100, "100.0"},     {1.0 / 3, "0.3333333333333333"},
      {5e-324, "5e-324"},   {kInfinity, "inf"}, {-kInfinity, "-inf"},
      {std::nan(""), "nan"}};
  for (const auto& [value, text] : cases) CHECK(number_text(value) == text);
}

TEST_CASE("random numbers read back exactly") {
  RandomStream random(1, "strings", 0);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(random.next());
    if (std::isnan(value)) continue;
    const std::string text = number_text(value);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    REQUIRE(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(value));
  }
}

}  // namespace
}  // namespace tune
