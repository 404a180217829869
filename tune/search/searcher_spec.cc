// Searchers as values, by their names and parameters; and how any searcher is asked at once.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "tune/search/cma_es/propose.h"
#include "tune/search/gp/gp_proposer.h"
#include "tune/search/model_searcher.h"
#include "tune/search/searcher.h"
#include "tune/search/tpe/propose.h"

namespace tune {

namespace {

using Keys = std::vector<std::string>;

const Keys kSearchers = {"basic_variant", "gp", "tpe", "cma_es"};

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

SearcherSpec tpe_from(const Config& parameters) {
  check_keys("tpe", parameters, {"start_up", "random_share"});
  TpeOptions options;
  options.start_up = parameters.get_or("start_up", options.start_up);
  options.random_share = parameters.get_or("random_share", options.random_share);
  return tpe(options);
}

SearcherSpec cma_es_from(const Config& parameters) {
  check_keys("cma_es", parameters, {"population"});
  return cma_es({parameters.get_or("population", 0)});
}

void check_start_up(const char* searcher, int start_up) {
  if (start_up >= 2) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("searcher {}: start_up is {}: it must be at least 2 results, of which a "
                          "model can be made",
                          searcher, start_up));
}

void check_share(const char* searcher, double share) {
  if (share >= 0 && share <= 1) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("searcher {}: random_share is {:g}: it is a share of the proposals, from "
                          "0 to 1",
                          searcher, share));
}

SearcherSpec learning(const char* name, Config parameters,
                      std::shared_ptr<const Proposer> proposer) {
  return SearcherSpec(name, std::move(parameters), [name, proposer = std::move(proposer)] {
    return std::make_unique<ModelSearcher>(name, proposer);
  });
}

}  // namespace

SearcherSpec::SearcherSpec() : SearcherSpec(basic_variant()) {}

SearcherSpec gp(GpOptions options) {
  check_start_up("gp", options.start_up);
  check_share("gp", options.random_share);
  search::gp::Options inner;
  inner.start_up = static_cast<std::size_t>(options.start_up);
  inner.random_share = options.random_share;
  return learning("gp",
                  {{"start_up", options.start_up}, {"random_share", options.random_share}},
                  std::make_shared<const search::gp::GpProposer>(inner));
}

SearcherSpec tpe(TpeOptions options) {
  check_start_up("tpe", options.start_up);
  check_share("tpe", options.random_share);
  search::tpe::Options inner;
  inner.start_up = static_cast<std::size_t>(options.start_up);
  inner.random_share = options.random_share;
  return learning("tpe",
                  {{"start_up", options.start_up}, {"random_share", options.random_share}},
                  std::make_shared<const search::tpe::TpeProposer>(inner));
}

SearcherSpec cma_es(CmaEsOptions options) {
  if (options.population != 0 && options.population < 4) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("searcher cma_es: population is {}: a generation has at least 4 trials; "
                            "0 chooses it by the number of parameters",
                            options.population));
  }
  search::cma_es::Options inner;
  inner.population = static_cast<std::size_t>(options.population);
  return learning("cma_es", {{"population", options.population}},
                  std::make_shared<const search::cma_es::CmaEsProposer>(inner));
}

SearcherSpec searcher_from_config(const std::string& name, const Config& parameters) {
  if (name == "basic_variant") return basic_variant_from(parameters);
  if (name == "gp") return gp_from(parameters);
  if (name == "tpe") return tpe_from(parameters);
  if (name == "cma_es") return cma_es_from(parameters);
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
