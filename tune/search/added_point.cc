#include "tune/search/added_point.h"

#include <string>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "tune/search/basic_variant.h"

namespace tune {

namespace {

void refuse_left_out_grids(const SearchSpace& space, const Config& point) {
  for (const auto& [path, domain] : space.domains()) {
    if (!domain->is_grid() || point.contains(path)) continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' is a grid_search: the configuration has to have one of its "
                            "values, or another",
                            path));
  }
}

std::string without(std::string text, const std::string& prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

// As a sweep of this one point would draw it.
Config whole_point(const SearcherSetup& sweep, const Config& point, std::uint64_t number) try {
  SearcherSetup setup;
  setup.space = sweep.space;
  setup.points_to_evaluate = {point};
  setup.where = sweep.where;
  setup.objective = sweep.objective;
  setup.objective.seed = RandomStream(sweep.objective.seed, "added", number).next();
  BasicVariantSearcher searcher{BasicVariantOptions{}};
  searcher.configure(setup);
  refuse_left_out_grids(sweep.space, point);
  std::optional<Config> whole = searcher.suggest(TrialNumber{0});
  TUNE_CHECK(whole.has_value());
  return std::move(*whole);
} catch (const Error& error) {
  throw Error(ErrorCode::kBadInput, without(error.what(), "points_to_evaluate/0: "));
}

}  // namespace tune
