// Searchers as values, by their names and parameters; and how any searcher is asked at once.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "tune/search/automatic.h"
#include "tune/search/cma_es/propose.h"
#include "tune/search/gp/gp_proposer.h"
#include "tune/search/halton.h"
#include "tune/search/model_searcher.h"
#include "tune/search/nsga2/propose.h"
#include "tune/search/searcher.h"
#include "tune/search/tpe/propose.h"

namespace tune {

namespace {

using Keys = std::vector<std::string>;

std::string suggestion(const std::string& wrong, const Keys& known) {
  const std::string near = nearest(wrong, known);
  if (!near.empty()) return fmt::format("did you mean '{}'?", near);
  if (known.empty()) return "it has none";
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

void check_start_up(const std::string& searcher, int start_up) {
  if (start_up >= 2) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("searcher {}: start_up is {}: it must be at least 2 results, of which a "
                          "model can be made",
                          searcher, start_up));
}

void check_share(const std::string& searcher, double share) {
  if (share >= 0 && share <= 1) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("searcher {}: random_share is {:g}: it is a share of the proposals, from "
                          "0 to 1",
                          searcher, share));
}

SearcherSpec by_proposer(std::string name, Config parameters,
                         std::shared_ptr<const Proposer> proposer) {
  return SearcherSpec(name, std::move(parameters), [name, proposer = std::move(proposer)] {
    return std::make_unique<ModelSearcher>(name, proposer);
  });
}

// gp and tpe: a model after a start-up, and a share drawn at random.
template <class ProposerType, class Inner, class Options>
SearcherSpec learning(const std::string& name, const Options& options) {
  check_start_up(name, options.start_up);
  check_share(name, options.random_share);
  Inner inner;
  inner.start_up = static_cast<std::size_t>(options.start_up);
  inner.random_share = options.random_share;
  return by_proposer(name, {{"start_up", options.start_up}, {"random_share", options.random_share}},
                     std::make_shared<const ProposerType>(inner));
}

template <class Options>
Options learning_from(const std::string& name, const Config& parameters) {
  check_keys(name, parameters, {"start_up", "random_share"});
  Options options;
  options.start_up = parameters.get_or("start_up", options.start_up);
  options.random_share = parameters.get_or("random_share", options.random_share);
  return options;
}

BasicVariantOptions grid_from(const std::string& name, const Config& parameters) {
  check_keys(name, parameters, {"constant_grid_search"});
  return {parameters.get_or("constant_grid_search", false)};
}

SearcherSpec without_parameters(const std::string& name, const Config& parameters,
                                SearcherSpec (*make)()) {
  check_keys(name, parameters, {});
  return make();
}

SearcherSpec cma_es_from(const std::string& name, const Config& parameters) {
  check_keys(name, parameters, {"population"});
  return cma_es({parameters.get_or("population", 0)});
}

SearcherSpec nsga2_from(const std::string& name, const Config& parameters) {
  check_keys(name, parameters, {"population", "crossover"});
  Nsga2Options options;
  options.population = parameters.get_or("population", options.population);
  options.crossover = parameters.get_or("crossover", options.crossover);
  return nsga2(options);
}

using From = SearcherSpec (*)(const std::string& name, const Config& parameters);
const std::vector<std::pair<std::string, From>> kSearchers = {
    {"auto",
     [](const auto& name, const auto& p) { return without_parameters(name, p, automatic); }},
    {"random",
     [](const auto& name, const auto& p) { return without_parameters(name, p, random_search); }},
    {"grid", [](const auto& name, const auto& p) { return every_cell(grid_from(name, p)); }},
    {"basic_variant",
     [](const auto& name, const auto& p) { return basic_variant(grid_from(name, p)); }},
    {"gp", [](const auto& name, const auto& p) { return gp(learning_from<GpOptions>(name, p)); }},
    {"tpe",
     [](const auto& name, const auto& p) { return tpe(learning_from<TpeOptions>(name, p)); }},
    {"cma_es", cma_es_from},
    {"nsga2", nsga2_from},
    {"halton", [](const auto& name, const auto& p) { return without_parameters(name, p, halton); }},
};

}  // namespace

SearcherSpec::SearcherSpec() : SearcherSpec(automatic()) {}

SearcherSpec automatic() {
  return by_proposer("auto", {}, std::make_shared<const search::AutomaticProposer>());
}

SearcherSpec gp(GpOptions options) {
  return learning<search::gp::GpProposer, search::gp::Options>("gp", options);
}

SearcherSpec tpe(TpeOptions options) {
  return learning<search::tpe::TpeProposer, search::tpe::Options>("tpe", options);
}

SearcherSpec cma_es(CmaEsOptions options) {
  if (options.population != 0 && options.population < 4) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("searcher cma_es: population is {}: a generation has at least 4 trials; "
                    "0 chooses it by the number of parameters",
                    options.population));
  }
  search::cma_es::Options inner;
  inner.population = static_cast<std::size_t>(options.population);
  return by_proposer("cma_es", {{"population", options.population}},
                     std::make_shared<const search::cma_es::CmaEsProposer>(inner));
}

SearcherSpec halton() {
  return by_proposer("halton", {}, std::make_shared<const search::HaltonProposer>());
}

SearcherSpec nsga2(Nsga2Options options) {
  if (options.population < 4) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("searcher nsga2: population is {}: there must be at least 4 trials to "
                            "draw parents from",
                            options.population));
  }
  if (!(options.crossover >= 0 && options.crossover <= 1)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("searcher nsga2: crossover is {:g}: it is a chance, from 0 to 1",
                            options.crossover));
  }
  return by_proposer("nsga2", {{"population", options.population}, {"crossover", options.crossover}},
                     std::make_shared<const search::nsga2::Nsga2Proposer>(search::nsga2::Options{
                         static_cast<std::size_t>(options.population), options.crossover}));
}

SearcherSpec searcher_from_config(const std::string& name, const Config& parameters) {
  Keys known;
  for (const auto& [each, from] : kSearchers) {
    if (each == name) return from(name, parameters);
    known.push_back(each);
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("there is no searcher '{}': {}", name, suggestion(name, known)));
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
