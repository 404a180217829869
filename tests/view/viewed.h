// An experiment's folder beside the Experiment that reads it, and its columns taken apart.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "tune/view/experiment.h"
#include "view/folder.h"

namespace tune::view {

inline const auto kForever = Experiment::Clock::time_point::max();

struct Viewed {
  explicit Viewed(const std::string& state = "finished") { testing::begin_experiment(path, state); }
  Experiment& load() {
    experiment.emplace(read_head(path), change);
    REQUIRE(experiment->load_some(kForever));
    return *experiment;
  }
  // The next look, some time later.
  bool poll() { return experiment->poll(now += std::chrono::seconds(10)); }

  testing::TemporaryFolder folder;
  std::filesystem::path path = folder.path() / "s";
  std::uint64_t change = 0;
  std::optional<Experiment> experiment;
  Experiment::Clock::time_point now = Experiment::Clock::now();
};

// The header of columns, and one of them.
inline Value header_in(const std::string& blob) {
  REQUIRE(blob.starts_with("TVC1"));
  std::uint32_t length = 0;
  std::memcpy(&length, blob.data() + 4, sizeof length);
  return parse_json(blob.substr(8, length), "header");
}
template <class T>
std::vector<T> column(const std::string& blob, const std::string& name) {
  std::uint32_t length = 0;
  std::memcpy(&length, blob.data() + 4, sizeof length);
  const Value header = header_in(blob);
  for (const Value& one : header.at("columns").list()) {
    if (one.at("name").string() != name) continue;
    std::vector<T> values(one.get<std::size_t>("count"));
    const std::size_t at = 8 + length + one.get<std::size_t>("at");
    CHECK(at % 8 == 0);
    REQUIRE(at + values.size() * sizeof(T) <= blob.size());
    if (!values.empty()) std::memcpy(values.data(), blob.data() + at, values.size() * sizeof(T));
    return values;
  }
  FAIL("there is no column " << name);
  return {};
}

}  // namespace tune::view
