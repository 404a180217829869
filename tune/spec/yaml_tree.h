// YAML text as a checked Value with the line of every key. Scalars follow the YAML 1.2 core schema:
// only true and false are booleans, 010 is ten, a quoted scalar is a string. Anchors, aliases and
// merge keys work; their expansion is bounded. Nothing is thrown: a mistake becomes a complaint.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

inline constexpr std::size_t kMaxYamlBytes = 1u << 20;
inline constexpr std::size_t kMaxYamlNodes = 100'000;  // aliases expanded

struct YamlRules {
  // Whether a plain scalar at this key path is taken as text ("name: 007").
  bool (*is_text)(std::string_view path) = [](std::string_view) { return false; };
  // Whether keys of the map at this path are key paths: `loss/test: 1` means `loss: {test: 1}`.
  bool (*keys_are_paths)(std::string_view path) = [](std::string_view) { return false; };
};

struct YamlTree {
  Value value;                       // null when nothing could be read
  std::map<std::string, int> lines;  // 1-based, of every key path; items of a list by their index
};

// `at` is the key path of the text (empty: the whole file).
YamlTree parse_yaml(std::string_view text, const std::string& at, const YamlRules& rules,
                    std::vector<Complaint>& complaints);

// One plain scalar of the core schema. A whole number that does not fit 64 bits: Error (kBadInput).
Value yaml_scalar(const std::string& text);

}  // namespace tune
