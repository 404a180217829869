// Reads the simulator and its planted bugs: for each promise there is one that breaks it.
#include "tree/sources.h"

#include <doctest/doctest.h>

#include <regex>
#include <set>
#include <string>

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::kRoot;
using testing::Source;
using testing::sources_below;
using testing::text_of;

std::set<std::string> all_of(const std::string& text, const std::string& pattern) {
  std::set<std::string> found;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

// The first arguments of violate(), and the names of those that stand several times.
std::set<std::string> promises() {
  std::set<std::string> all;
  for (const Source& source : sources_below("tests/simulator")) {
    const std::string text = text_of(kRoot / source.file);
    for (const std::string& call : all_of(text, R"(violate\(([^,;]*(".*")?[^,;]*)[,;])")) {
      all.merge(all_of(call, R"x("([^"]+)")x"));
    }
    all.merge(all_of(text, R"x(constexpr const char\* k\w+ =\s*"([^"]* [^"]* [^"]*)")x"));
  }
  return all;
}

// As plants.sh reads it.
std::set<std::string> found_by() {
  std::set<std::string> all;
  for (const auto& patch : fs::directory_iterator(kRoot / "tests/simulator/plants")) {
    const std::string text = text_of(patch);
    all.merge(all_of(text.substr(0, text.find("\n--- ") + 1), "found by: (.*)\n"));
  }
  return all;
}

TEST_CASE("each promise of the simulator is broken by a planted bug") {
  const std::set<std::string> by = found_by();
  const std::set<std::string> all = promises();
  CHECK(all.size() > 60);  // the patterns still find them
  CHECK(all.contains("the scheduler sees each (trial, iteration) once, in order"));
  for (const std::string& promise : all) {
    CHECK_MESSAGE(by.contains(promise), promise << ": nothing breaks it");
  }
}

// A part of a promise's name would be found in the names of others, too.
TEST_CASE("what a planted bug is found by is a whole text of the simulator") {
  std::string simulator;
  for (const Source& source : sources_below("tests/simulator")) {
    simulator += text_of(kRoot / source.file);
  }
  for (const std::string& name : found_by()) {
    CHECK_MESSAGE(simulator.find('"' + name + '"') != std::string::npos, name);
  }
}

}  // namespace
}  // namespace tune
