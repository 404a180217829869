// Where: constraints between parameters, each a comparison of two sums: "min_width < max_width",
// "layers * model/width <= 4096". Not for results: those are constraints of metrics.
//
//   comparison   sum (< | <= | > | >= | == | !=) sum
//   sum          products with + and -, of numbers, key paths and sums in parentheses
//   key path     letters, digits, '_', '.' and '/', no digit first; any other in quotes:
//   'weight-decay'
//
// '/' belongs to key paths, so there is no division. A comparison that names a key that a
// configuration does not have (of an option that is not taken) counts as held, as does one whose
// key is null. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/value.h"
#include "tune/search/search_space.h"

namespace tune {

// One comparison.
class WhereRule {
 public:
  // Throws Error (kBadInput) with the place in the text that cannot be read.
  explicit WhereRule(std::string text);

  const std::string& text() const { return text_; }
  const std::vector<std::string>& paths() const { return paths_; }  // each once
  // Throws Error (kBadInput), naming the key, when a value is not a number.
  bool holds(const Config& config) const;

  // A step of the computation: a number or a value put on the stack, or what is done with the two
  // on top of it.
  struct Step {
    enum class Kind : char { kNumber, kValue, kPlus, kMinus, kTimes };
    Kind kind = Kind::kNumber;
    double number = 0;
    std::size_t path = 0;
  };
  enum class Relation : char { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual };

 private:
  std::string text_;
  std::vector<std::string> paths_;
  std::vector<Step> steps_;  // leave the left and the right side
  Relation relation_ = Relation::kLess;
};

// All of them hold, or the configuration is none.
class Where {
 public:
  Where() = default;
  // Throws Error (kBadInput) with the first of where_complaints().
  Where(const std::vector<std::string>& texts, const SearchSpace& space);

  bool empty() const { return rules_.empty(); }
  const std::vector<WhereRule>& rules() const { return rules_; }
  // The first rule that the configuration breaks; null: it keeps them all.
  const WhereRule* broken_by(const Config& config) const;
  bool holds(const Config& config) const { return broken_by(config) == nullptr; }

 private:
  std::vector<WhereRule> rules_;
};

// The faults of the texts for a space, each as (index of the text, message): one that cannot
// be read, a key that is not there, or that may be anything but a number.
std::vector<SpaceComplaint> where_complaints(const std::vector<std::string>& texts,
                                             const SearchSpace& space);

// Configurations that break a rule are drawn anew, so often at most.
inline constexpr int kMostWhereDraws = 10'000;
// Throws Error (kBadInput) where all of so many draws of one trial broke rules such as this one.
[[noreturn]] void throw_none_holds(const WhereRule& broken);
// Throws Error (kBadInput), naming a rule, when less than 1 in 500 of drawn configurations would
// be kept. `draw` gives the rule that a configuration breaks, null for none; it gets 0, 1, 2 ...
void check_that_some_hold(const std::function<const WhereRule*(int)>& draw);

}  // namespace tune
