// Searchers as values, by their names and parameters; and how any searcher is asked at once.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "tune/search/gp/gp_proposer.h"
#include "tune/search/model_searcher.h"
#include "tune/search/searcher.h"

namespace tune {

namespace {

using Keys = std::vector<std::string>;

const Keys kSearchers = {"basic_variant", "gp"};

std::string suggestion(const std::string& wrong, const Keys& known) {
  const std::string near = nearest(wrong, known);
  if (!near.empty()) return fmt::format("did you mean '{}'?", near);
  return fmt::format("known {}: {}", known.size() == 1 ? "is" : "are", join(known, ", "));
}

void check_keys(const std::string& searcher, const Config& parameters, const Keys& known) {
  for (const Member& member : parameters.map()) {
    if (std::ranges::find(known, member.key) != known.end()) continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("searcher {}: there is no parameter '{}': {}", searcher, member.key,
                            suggestion(member.key, known)));
  }
}

SearcherSpec basic_variant_from(const Config& parameters) {
  check_keys("basic_variant", parameters, {"constant_grid_search"});
  return basic_variant({parameters.get_or("constant_grid_search", false)});
}

SearcherSpec gp_from(const Config& parameters) {
  check_keys("gp", parameters, {"start_up", "random_share"});
  GpOptions options;
  options.start_up = parameters.get_or("start_up", options.start_up);
  options.random_share = parameters.get_or("random_share", options.random_share);
  return gp(options);
}

}  // namespace

SearcherSpec::SearcherSpec() : SearcherSpec(basic_variant()) {}

SearcherSpec gp(GpOptions options) {
  if (options.start_up < 2) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("searcher gp: start_up is {}: it must be at least 2 results, of which a "
                    "model can be made",
                    options.start_up));
  }
  if (!(options.random_share >= 0 && options.random_share <= 1)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("searcher gp: random_share is {:g}: it is a share of the proposals, "
                            "from 0 to 1",
                            options.random_share));
  }
  const Config parameters{{"start_up", options.start_up}, {"random_share", options.random_share}};
  search::gp::Options inner;
  inner.start_up = static_cast<std::size_t>(options.start_up);
  inner.random_share = options.random_share;
  const auto proposer = std::make_shared<const search::gp::GpProposer>(inner);
  return SearcherSpec("gp", parameters,
                      [proposer] { return std::make_unique<ModelSearcher>("gp", proposer); });
}

SearcherSpec searcher_from_config(const std::string& name, const Config& parameters) {
  if (name == "basic_variant") return basic_variant_from(parameters);
  if (name == "gp") return gp_from(parameters);
  throw Error(ErrorCode::kBadInput,
              fmt::format("there is no searcher '{}': {}", name, suggestion(name, kSearchers)));
}

std::optional<Config> suggest_now(Searcher& searcher, TrialNumber trial) {
  const std::optional<std::uint64_t> total = searcher.total();
  const bool is_past_end = total && trial.value >= *total;
  if (!is_past_end && searcher.ready() == std::size_t{0}) {
    searcher.answer(searcher.question(1)());
    if (searcher.ready() == std::size_t{0}) return std::nullopt;  // there are no more
  }
  return searcher.suggest(trial);
}

}  // namespace tune
