// The searcher auto: what it chooses before a sweep, and for each question.
#include "tune/search/automatic.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "core/refusal.h"
#include "tune/search/swept.h"
#include "tune/testing/searcher_conformance.h"

namespace tune::search {
namespace {

SearcherSetup setup_of(SearchSpace space, std::int64_t num_samples = 40) {
  return {std::move(space), num_samples, {}, {"loss", Mode::kMin, 7}};
}

const SearchSpace kNumbers = {{"lr", loguniform(1e-4, 1e-1)}, {"width", randint(1, 9)}};

SearchSpace with_conditions() {
  return {{"lr", uniform(0, 1)},
          {"kind", choice({{{"name", "sgd"}, {"momentum", uniform(0, 1)}},
                           {{"name", "adam"}, {"beta", uniform(0, 1)}},
                           "none"})}};
}

TEST_CASE("the choice before a sweep, and why") {
  struct Case {
    const char* what;
    SearcherSetup setup;
    const char* searcher;
    const char* told;
  };
  SearcherSetup no_metric = setup_of(kNumbers);
  no_metric.objective.metric.clear();
  SearcherSetup outside = setup_of(kNumbers);
  outside.points_to_evaluate = {{{"lr", 3}}};
  SearchSpace gridded = kNumbers;
  gridded.set("layers", grid_search({1, 2}));
  SearcherSetup several = setup_of(kNumbers);
  several.objective = {"", Mode::kMax, 7, {{"loss", Mode::kMin}, {"acc"}}};
  SearcherSetup bounded = setup_of(kNumbers);
  bounded.objective.constraints = {{.metric = "ms", .max = 20}};
  SearchSpace wide;
  for (int i = 0; i < 61; ++i) wide.set("x" + std::to_string(i), uniform(0, 1));
  SearchSpace wordy;
  Value::List words;
  for (int i = 0; i < 31; ++i) words.emplace_back("word " + std::to_string(i));
  for (const char* path : {"a", "b"}) wordy.set(path, choice(words));
  const SearchSpace computed = {{"a", 1}, {"b", sample_from([](const Config&) { return 2; })}};
  const std::vector<Case> cases = {
      {"numbers", setup_of(kNumbers), "auto",
       "gp, as 2 parameters are few enough for a model of loss"},
      {"no end", setup_of(kNumbers, -1), "auto",
       "gp, as 2 parameters are few enough for a model of loss"},
      {"several", several, "auto",
       "gp, as 2 parameters are few enough for a model of 2 objectives"},
      {"bounded", bounded, "auto",
       "gp, as 2 parameters are few enough for a model of loss under 1 constraint"},
      {"conditions", setup_of(with_conditions()), "auto",
       "gp, as 4 parameters are few enough for a model of loss"},
      {"many", setup_of(wide), "auto", "tpe, as 61 parameters are too many for gp, and loss"},
      {"wordy", setup_of(wordy), "auto",
       "tpe, as 2 parameters of 62 features are too many for gp, and loss"},
      {"just enough", setup_of(kNumbers, 10), "auto", "gp"},
      {"few", setup_of(kNumbers, 9), "basic_variant",
       "random search, as 9 trials are too few to learn from"},
      {"one", setup_of(kNumbers, 1), "basic_variant", "as 1 trial is too few"},
      {"no metric", no_metric, "basic_variant", "as there is no metric to learn from"},
      {"a grid", setup_of(gridded), "basic_variant", "as of a grid_search every value is tried"},
      {"functions", setup_of(computed), "basic_variant", "as config has nothing to choose"},
      {"a point outside", outside, "basic_variant", "points_to_evaluate/0: 'lr' is 3"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.what);
    const SearcherChoice choice = choose_searcher(each.setup, false, false);
    CHECK(choice.searcher.name() == each.searcher);
    CHECK_HAS(choice.told, each.told);
    choice.searcher.make()->configure(each.setup);  // it can
  }
  const SearcherChoice replaced = choose_searcher(setup_of(kNumbers), true, false);
  CHECK(replaced.searcher.name() == "basic_variant");
  CHECK_HAS(replaced.told, "the scheduler changes the values of trials itself");
  const SearcherChoice warm = choose_searcher(setup_of(kNumbers, 1), false, true);
  CHECK(warm.searcher.name() == "auto");
  CHECK(warm.told == "gp, as 2 parameters are few enough for a model of loss, after a warm start");
}

TEST_CASE("auto is the default, and keeps to what every searcher keeps to") {
  CHECK(SearcherSpec().name() == "auto");
  CHECK(SearcherSpec().parameters() == Config());
  CHECK(searcher_from_config("auto", {}).name() == "auto");
  CHECK_HAS(testing::refusal([] {
              searcher_from_config("auto", {{"start_up", 3}});
            }),
            "searcher auto: there is no parameter 'start_up': it has none");
  tune::testing::check_searcher([] { return automatic().make(); }, setup_of(kNumbers, 12));
  SearcherSetup setup = setup_of(with_conditions(), 16);
  setup.points_to_evaluate = {{{"lr", 0.5}}};
  tune::testing::check_searcher([] { return automatic().make(); }, setup);
}

// tpe expects no standard deviation.
bool is_by_gp(const Proposal& proposal) {
  return proposal.expected && proposal.expected->standard_deviation > 0;
}

TEST_CASE("numbers are searched by gp") {
  const AutomaticProposer proposer;
  CHECK(proposer.start_up() == 5);
  Swept swept(cube(2), bowl, 3);
  int by_model = 0;
  for (int i = 0; i < 30; ++i) {
    const Proposal proposal = swept.live(proposer);
    if (proposal.origin != ProposalOrigin::kModel) continue;
    CHECK(is_by_gp(proposal));
    ++by_model;
  }
  CHECK(by_model > 15);
}

TEST_CASE("with conditions gp searches as well") {
  const AutomaticProposer proposer;
  const auto value = [](const Config& config) { return -std::pow(config.get<double>("lr"), 2); };
  Swept swept(Encoding(with_conditions()), value, 4);
  for (int i = 0; i < 20; ++i) {
    const Proposal proposal = swept.live(proposer);
    if (proposal.origin == ProposalOrigin::kModel) CHECK(is_by_gp(proposal));
  }
}

TEST_CASE("of a question for many, gp makes the first and tpe, which is quick, the others") {
  const AutomaticProposer proposer;
  Swept swept(cube(2), bowl, 5);
  swept.live(proposer, 20);
  const std::vector<Proposal> made = swept.ask(proposer, 64);
  REQUIRE(made.size() == 64);
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i].origin == ProposalOrigin::kModel) CHECK(is_by_gp(made[i]) == (i < kMostByGp));
    CHECK(made[i].model == (i < kMostByGp ? "gp" : "tpe"));
    for (std::size_t j = 0; j < i; ++j) CHECK(made[i].point != made[j].point);
  }
}

TEST_CASE("a space of many features is searched by tpe") {
  const AutomaticProposer proposer;
  Swept swept(cube(61), bowl, 6);
  swept.live(proposer, 12);
  const Proposal proposal = swept.live(proposer);
  CHECK(proposal.origin == ProposalOrigin::kModel);
  CHECK_FALSE(is_by_gp(proposal));
}

TEST_CASE("gp's fit is kept while tpe proposes") {
  const AutomaticProposer proposer;
  Swept swept(cube(2), bowl, 7);
  swept.live(proposer, 12);
  const std::string fit = swept.state();
  CHECK_FALSE(fit.empty());
  swept.ask(proposer, 20);
  swept.live(proposer);
  CHECK_FALSE(swept.state().empty());
}

}  // namespace
}  // namespace tune::search
