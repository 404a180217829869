#include "tune/search/cma_es/propose.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "core/error.h"
#include "core/wire.h"
#include "tune/search/swept.h"

namespace tune::search::cma_es {
namespace {

constexpr std::uint64_t kSeed = 5;  // of every random test here

State state_of(Swept& swept) {
  PackReader in(swept.state());
  State state;
  decode(in, state);
  in.expect_end();
  return state;
}

TEST_CASE("proposals lead to the best") {
  CHECK(Swept(cube(4), bowl, kSeed).best_of(CmaEsProposer(), 300) > -1e-3);
}

TEST_CASE("numbers, whole numbers and choices are searched together") {
  const SearchSpace space = {{"lr", loguniform(1e-5, 1)},      {"layers", randint(1, 9)},
                             {"width", qrandint(16, 256, 16)}, {"kind", choice({"a", "b", "c"})},
                             {"bias", randint(0, 2)},          {"dropout", quniform(0, 0.5, 0.1)}};
  const auto value = [](const Config& config) {
    return -std::abs(std::log10(config.get<double>("lr")) + 3) -
           std::abs(config.get<int>("layers") - 4) -
           std::abs(config.get<int>("width") - 64) / 32.0 -
           (config.get<std::string>("kind") == "b" ? 0 : 2) - config.get<int>("bias") -
           config.get<double>("dropout");
  };
  CHECK(Swept(Encoding(space), value, kSeed).best_of(CmaEsProposer(), 400) > -0.3);
}

TEST_CASE("it begins around the best results of earlier experiments") {
  const SearchSpace space = {
      {"x", uniform(0, 1)}, {"y", uniform(0, 1)}, {"kind", choice({"a", "b", "c"})}};
  const Encoding encoding(space);
  History known;
  RandomStream draws(kSeed, "earlier", 0);
  for (int i = 0; i < 60; ++i) {
    const UnitPoint point = encoding.draw(draws);
    const double value = -std::abs(point[0] - 0.8) - std::abs(point[1] - 0.2);
    known.add_earlier(point, {{1, encoding.option(2, point) == 1 ? value : value - 1}},
                      TrialEnd::kCompleted);
  }
  RandomStream random(kSeed, "cma_es", 0);
  const Answer warm = propose(known, 40, nullptr, encoding, {}, random);
  double x = 0, y = 0, b = 0;
  for (const Proposal& one : warm.proposals) {
    x += one.point[0] / 40;
    y += one.point[1] / 40;
    b += encoding.option(2, one.point) == 1 ? 1.0 / 40 : 0;
  }
  CHECK(std::abs(x - 0.8) < 0.15);
  CHECK(std::abs(y - 0.2) < 0.15);
  CHECK(b > 0.5);  // (6 + 1) / (6 + 3) of the chances
  // Two say too little.
  History few;
  for (int i = 0; i < 2; ++i)
    few.add_earlier({0.9, 0.9, 0.5}, {{1, 1.0 * i}}, TrialEnd::kCompleted);
  RandomStream same(kSeed, "cma_es", 0);
  const Answer cold = propose(few, 1, nullptr, encoding, {}, same);
  CHECK(cold.state.distribution.mean == std::vector<double>{0.5, 0.5});
}

TEST_CASE("parameters that depend on a choice are refused by name") {
  std::vector<Parameter> parameters = {{"kind", UnitDomain(choice({"one", "two"}))},
                                       {"kind/x", UnitDomain(uniform(0, 1)), Condition{0, 0}}};
  Config frame(Value::make_map());
  frame.set("kind", Value());
  const Encoding encoding(std::move(parameters), std::move(frame));
  CHECK_THROWS_WITH_AS(CmaEsProposer().check(encoding),
                       doctest::Contains("'kind/x' depends on the option that a choice takes"),
                       Error);
  CmaEsProposer().check(cube(2));
}

TEST_CASE("a generation is made of the first results, whichever trials they are of") {
  // Four dimensions: a population of 8. Of 20 trials the last 8 end first.
  const CmaEsProposer proposer;
  Swept swept(cube(4), bowl, kSeed);
  std::vector<TrialNumber> trials;
  for (int i = 0; i < 20; ++i) trials.push_back(swept.begin(swept.ask(proposer, 1)[0].point));
  CHECK(state_of(swept).distribution.generation == 0);
  CHECK(state_of(swept).open.size() == 20);
  for (int i = 12; i < 20; ++i) swept.finish(trials[static_cast<std::size_t>(i)]);
  swept.ask(proposer, 1);
  CHECK(state_of(swept).distribution.generation == 1);
  // Those of the generation that is over count in the next one.
  for (int i = 0; i < 8; ++i) swept.finish(trials[static_cast<std::size_t>(i)]);
  swept.ask(proposer, 1);
  CHECK(state_of(swept).distribution.generation == 2);
  // Trials that never end hold up nothing.
  for (int i = 0; i < 8; ++i) swept.live(proposer);
  swept.ask(proposer, 1);
  CHECK(state_of(swept).distribution.generation == 3);
  CHECK(state_of(swept).results.empty());
}

TEST_CASE("a trial counts once, and those that failed count as the worst") {
  const CmaEsProposer proposer;
  Swept swept(cube(4), bowl, kSeed);
  const TrialNumber paused = swept.begin(swept.ask(proposer, 1)[0].point);
  swept.known().result(paused, 1, 7);
  swept.known().pause(paused);
  swept.ask(proposer, 1);
  CHECK(state_of(swept).results.size() == 1);
  swept.known().result(paused, 3, 8);
  swept.known().end(paused, TrialEnd::kCompleted);
  swept.ask(proposer, 1);
  REQUIRE(state_of(swept).results.size() == 1);
  CHECK(state_of(swept).results[0].value == 7);
  swept.fail(proposer);
  swept.ask(proposer, 1);
  REQUIRE(state_of(swept).results.size() == 2);
  CHECK(state_of(swept).results[1].value == -std::numeric_limits<double>::infinity());
}

TEST_CASE("proposals go on where results teach nothing, and say so") {
  for (const double value : {2.0, std::numeric_limits<double>::quiet_NaN()}) {
    Swept swept(
        cube(4), [value](const Config&) { return value; }, kSeed);
    for (int i = 0; i < 8; ++i) CHECK(swept.live(CmaEsProposer()).note == "");
    for (int i = 0; i < 20; ++i) {
      const Proposal proposal = swept.live(CmaEsProposer());
      CHECK(proposal.origin == ProposalOrigin::kModel);  // of its first distribution
      CHECK(proposal.note == "all results of the last generation are alike");
    }
  }
  Swept failing(cube(4), bowl, kSeed);
  for (int i = 0; i < 40; ++i) failing.fail(CmaEsProposer());
  // It gets over it.
  for (int i = 0; i < 16; ++i) failing.live(CmaEsProposer());
  CHECK(failing.live(CmaEsProposer()).origin != ProposalOrigin::kFallback);
}

TEST_CASE("half the values diverged are no hindrance") {
  Swept swept(
      cube(3),
      [](const Config& config) {
        const double value = bowl(config);
        return value < -0.05 ? std::numeric_limits<double>::quiet_NaN() : value;
      },
      kSeed);
  CHECK(swept.best_of(CmaEsProposer(), 300) > -1e-2);
}

TEST_CASE("once it has converged it begins anew with twice the population") {
  Swept swept(cube(2), bowl, kSeed);
  const CmaEsProposer proposer({.population = 6});
  std::uint64_t restarts = 0;
  for (int i = 0; i < 2000 && restarts == 0; ++i) {
    swept.live(proposer);
    restarts = state_of(swept).restarts;
  }
  REQUIRE(restarts == 1);
  CHECK(state_of(swept).distribution.population == 12);
  CHECK(largest_deviation(state_of(swept).distribution, Variables(swept.encoding())) > 0.1);
}

TEST_CASE("no configuration is proposed twice while there are others, then it is said") {
  const SearchSpace space = {{"a", randint(0, 5)}, {"b", choice({"x", "y", "z"})}};
  const auto value = [](const Config& config) { return config.get<int>("a") + 0.0; };
  Swept swept(Encoding(space), value, kSeed);
  std::set<UnitPoint> points;
  for (int i = 0; i < 15; ++i) points.insert(swept.live(CmaEsProposer()).point);
  CHECK(points.size() == 15);
  CHECK(swept.live(CmaEsProposer()).note ==
        "only configurations were drawn that had been tried, or did not hold; "
        "no configuration was found that had not been tried");
}

TEST_CASE("what does not hold is not proposed") {
  const SearchSpace space = {{"a", uniform(0, 1)}, {"b", uniform(0, 1)}};
  const auto value = [](const Config& config) {
    return config.get<double>("b") - config.get<double>("a");
  };
  Swept swept(Encoding(space, {"a > b"}), value, kSeed);
  for (int i = 0; i < 60; ++i) {
    CHECK(swept.encoding().holds(swept.live(CmaEsProposer()).point));
  }
  CHECK(state_of(swept).distribution.generation > 5);
}

TEST_CASE("the same question has the same answer, also from a state that was saved") {
  const auto points = [] {
    Swept swept(cube(3), bowl, kSeed);
    std::vector<UnitPoint> all;
    for (int i = 0; i < 40; ++i) all.push_back(swept.live(CmaEsProposer()).point);
    return all;
  };
  CHECK(points() == points());
}

TEST_CASE("a state that is not its own counts as none") {
  Swept other(cube(3), bowl, kSeed);
  other.live(CmaEsProposer());
  for (const std::string& state : {std::string("?"), other.state()}) {
    Swept swept(cube(2), bowl, kSeed);
    swept.state() = state;
    CHECK(swept.ask(CmaEsProposer(), 1).front().point ==
          Swept(cube(2), bowl, kSeed).ask(CmaEsProposer(), 1).front().point);
  }
}

TEST_CASE("a space without parameters has one configuration") {
  Swept swept(
      Encoding(SearchSpace({{"a", 1}})), [](const Config&) { return 1.0; }, kSeed);
  for (int i = 0; i < 5; ++i) CHECK(swept.live(CmaEsProposer()).point.empty());
}

}  // namespace
}  // namespace tune::search::cma_es
