// A search space in Optuna's words: which parameters a configuration has there, with their
// distributions. Pure.
//
// A choice whose options hold domains is a categorical parameter with a text for each such option,
// and parameters that only trials with that option have. What Optuna has no distribution for
// (normal distributions, functions) and what lies outside of its own (a value that a scheduler has
// moved, a point that the user gave) is not a parameter but an attribute "config/<path>".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"
#include "tune/search/search_space.h"

namespace tune {

std::string json_text(std::string_view text);  // with its quotes

// Parts of a trial's line, JSON.
struct OptunaParams {
  std::string distributions = "{}";
  std::string params = "{}";
  std::vector<std::string> attributes = {};  // "\"config/x\":0.5"
};

class OptunaSpace {
 public:
  explicit OptunaSpace(SearchSpace space);
  // Copies refer to their own space.
  OptunaSpace(const OptunaSpace&) = delete;

  OptunaParams describe(const Config& config) const;

 private:
  struct Known {
    std::string name;  // quoted
    std::string distribution;
  };
  struct Writer;
  void learn(const SearchSpace& node, const std::string& path);
  void describe_node(const SearchSpace& node, const std::string& path, const Value& value,
                     Writer& out) const;

  SearchSpace space_;
  std::map<const Domain*, Known> known_;  // of the space; those that are parameters
};

}  // namespace tune
