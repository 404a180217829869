// Encoding: a search space as coordinates, the same for all model-based searchers. A configuration
// is a point of the unit cube with one coordinate a parameter (tune/search/unit_domain.h). What is
// constant or has a single value is not a parameter; functions (sample_from) are computed from the
// others and never searched; grids are refused.
//
// A parameter may depend on a choice before it: it is active when the choice takes one option, and
// otherwise not in the configuration; its coordinate is then kInactive. Two parameters of different
// options may have the same path.
//
// Not every point keeps `where`: what is drawn does, and what is made in another way has to be
// asked about (holds).
//
// Not for the draws of basic_variant, where a key's value does not depend on other keys. Pure; a
// plain value, copies may be used in other threads (functions of the space are called by decode
// alone).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "core/value.h"
#include "tune/search/sample_functions.h"
#include "tune/search/search_space.h"
#include "tune/search/unit_domain.h"
#include "tune/search/where.h"

namespace tune {

using UnitPoint = std::vector<double>;
inline constexpr double kInactive = -1;

struct Parameter {
  std::string path;
  UnitDomain domain;
  std::optional<Condition> condition = {};  // of a parameter before it; nothing: always active
};

// Either a point or what stands against it ("'lr' is 3.0, which loguniform [0.1, 1] never draws").
struct Encoded {
  UnitPoint point = {};
  std::string complaint = {};
};

class Encoding {
 public:
  // Throws Error (kBadInput), naming the keys, for a space with grids, and as
  // check_that_some_hold() for one of which hardly anything keeps `where`.
  explicit Encoding(const SearchSpace& space, const std::vector<std::string>& where = {});
  // `frame` has every key; null where a parameter that is always active stands. An option that
  // makes others active is a map with null where these stand.
  Encoding(std::vector<Parameter> parameters, Config frame);

  std::size_t size() const { return parameters_.size(); }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // The number of configurations; nothing: no end, or more than 2^53.
  std::optional<std::uint64_t> count() const;

  // As the space draws: each parameter alone, those that are active; anew until it holds, or
  // kMostWhereDraws times.
  UnitPoint draw(RandomStream& random) const;
  // A configuration that is given in part, the rest drawn, whether it holds or not: of each choice
  // an option that what is given may be. Calls no functions of the space.
  Encoded completed(const Config& given, RandomStream& random) const;
  // Whether the configuration of a settled point keeps `where`, or the first rule that it breaks.
  // Functions of the space are called only when it names what they compute.
  bool holds(const UnitPoint& point) const { return broken_by(point) == nullptr; }
  const WhereRule* broken_by(const UnitPoint& point) const;
  bool is_active(std::size_t parameter, const UnitPoint& point) const;
  // The option that a choice takes there; it is active.
  std::size_t option(std::size_t parameter, const UnitPoint& point) const;
  // The one form of all points that mean the same configuration: coordinates that stand for their
  // cells, kInactive where nothing is active. A parameter that is active without having a
  // coordinate gets one from `random`.
  UnitPoint settled(UnitPoint point, RandomStream& random) const;

  // A configuration that the space could have drawn, with constants and functions. Throws as
  // compute_functions.
  Config decode(const UnitPoint& point) const;
  // Reads the parameters of a configuration; other keys do not count.
  Encoded encode(const Config& config) const;
  // Where a configuration that encodes to this point differs from those of the space in what is not
  // searched ("'epochs' is 3, not 30"), but for what functions compute; empty: nowhere.
  std::string difference(const Config& config, const UnitPoint& point) const;

  // The vector of distances: a coordinate for each number, in the middle when inactive, and one
  // for each value of a choice, kOneHot where it is taken and else 0, so that two values of one
  // choice are 1 apart.
  static constexpr double kOneHot = 0.70710678118654752;
  std::size_t feature_count() const { return feature_count_; }
  void write_features(const UnitPoint& point, std::span<double> features) const;

 private:
  // Of the space: computed when the condition is met.
  struct Function {
    SampleFunction function;
    std::optional<Condition> condition;
  };
  class Builder;

  void count_features();
  void check_where();
  bool is_computed(const std::string& path) const;
  UnitPoint draw_once(RandomStream& random) const;
  bool may_take(std::size_t choice, std::size_t option, const Config& given) const;
  std::vector<std::size_t> options_for(std::size_t choice, const Config& given) const;
  bool is_met(const std::optional<Condition>& condition, const UnitPoint& point) const;
  Config without_functions(const UnitPoint& point) const;
  bool may_be(std::size_t choice, std::size_t option, const Value& value) const;
  bool has_own_values(std::size_t choice, std::size_t option, const Value& value) const;
  std::uint64_t below(std::size_t choice, std::size_t option) const;
  std::uint64_t count_of(std::size_t parameter) const;
  std::optional<std::size_t> option_taken(std::size_t choice, const Value& value) const;

  std::vector<Parameter> parameters_;
  Config frame_;
  std::vector<Function> functions_;
  Where where_;
  bool where_names_functions_ = false;
  std::size_t feature_count_ = 0;
};

// The same for equal points alone, but for chance.
std::uint64_t fingerprint(const UnitPoint& point);

}  // namespace tune
