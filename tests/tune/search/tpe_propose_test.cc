#include "tune/search/tpe/propose.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "tune/search/swept.h"

namespace tune::search::tpe {
namespace {

constexpr std::uint64_t kSeed = 4;  // of every random test here

TpeProposer by_model_only() {
  return TpeProposer({.start_up = 10, .random_share = 0});
}

TEST_CASE("before there are ten results all is drawn, each configuration another one") {
  const TpeProposer proposer;
  CHECK(proposer.start_up() == 10);
  Swept swept(cube(2), bowl, kSeed);
  std::set<UnitPoint> points;
  for (const Proposal& proposal : swept.ask(proposer, 20)) {
    CHECK(proposal.origin == ProposalOrigin::kStartUp);
    CHECK(proposal.note == "");
    points.insert(proposal.point);
  }
  CHECK(points.size() == 20);
  swept.live(proposer, 10);
  CHECK(swept.live(proposer).origin == ProposalOrigin::kModel);
}

TEST_CASE("the same question and stream have the same answer, and no state is kept") {
  const auto points = [] {
    Swept swept(cube(3), bowl, kSeed);
    for (int i = 0; i < 15; ++i) swept.live(TpeProposer());
    CHECK(swept.state() == "");
    return swept.ask(TpeProposer(), 3).back().point;
  };
  CHECK(points() == points());
}

TEST_CASE("proposals lead nearer to the best than draws") {
  double by_model = 0;
  double by_chance = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    by_model += Swept(cube(3), bowl, seed).best_of(TpeProposer(), 80);
    by_chance += Swept(cube(3), bowl, seed).best_of(TpeProposer({.start_up = 1000}), 80);
  }
  CHECK(by_model > 0.5 * by_chance);  // both are below 0
}

TEST_CASE("a proposal says what it was made of") {
  Swept swept(cube(2), bowl, kSeed);
  for (int i = 0; i < 30; ++i) swept.live(by_model_only());
  swept.begin(swept.ask(by_model_only(), 1).front().point);
  const std::vector<Proposal> batch = swept.ask(by_model_only(), 2);
  CHECK(batch[0].results_known == 30);
  CHECK(batch[0].pending_known == 1);
  CHECK(batch[1].pending_known == 2);
  REQUIRE(batch[0].expected.has_value());
  CHECK(batch[0].expected->acquisition > 0);
  // Of 30 results 3 are good.
  CHECK(batch[0].neighbours.size() == 3);
}

TEST_CASE("where trials run, less is proposed") {
  // Good is what is near .2 and what is near .8; at .2 trials run.
  const auto near_two = [](const Config& config) {
    const double x = config.get<double>("x0");
    return -std::min(std::abs(x - 0.2), std::abs(x - 0.8));
  };
  int low = 0;
  int high = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Swept swept(cube(1), near_two, seed);
    for (int i = 0; i < 40; ++i) swept.tried({(i * 17 % 40 + 0.5) / 40});  // old ones weigh little
    for (int i = 0; i < 20; ++i) swept.begin({0.18 + 0.002 * i});
    const double x = swept.ask(by_model_only(), 1).front().point.front();
    ++(x < 0.5 ? low : high);
  }
  CAPTURE(low);
  CHECK(high > 3 * low);
}

TEST_CASE("no configuration is proposed twice while there are others, then it is said") {
  const SearchSpace space = {{"a", randint(0, 4)}, {"b", choice({"x", "y", "z"})}};
  const auto value = [](const Config& config) { return config.get<int>("a") + 0.0; };
  Swept swept(Encoding(space), value, kSeed);
  std::set<UnitPoint> points;
  for (int i = 0; i < 12; ++i) points.insert(swept.live(by_model_only()).point);
  CHECK(points.size() == 12);
  const Proposal again = swept.live(by_model_only());
  CHECK(again.origin == ProposalOrigin::kFallback);
  CHECK(again.note ==
        "all candidates had been tried, or did not hold; no configuration was found that had not "
        "been tried");
}

TEST_CASE("what does not hold is not proposed") {
  const SearchSpace space = {{"a", uniform(0, 1)}, {"b", uniform(0, 1)}};
  const auto value = [](const Config& config) {
    return config.get<double>("b") - config.get<double>("a");
  };
  Swept swept(Encoding(space, {"a > b"}), value, kSeed);
  int by_model = 0;
  for (int i = 0; i < 60; ++i) {
    const Proposal proposal = swept.live(by_model_only());
    CHECK(swept.encoding().holds(proposal.point));
    by_model += proposal.origin == ProposalOrigin::kModel ? 1 : 0;
  }
  CHECK(by_model == 50);
}

// A choice that makes x active with one option and y and z with the other; good is y near .7.
Encoding conditional() {
  const Domain kinds = choice({"one", "two"});
  std::vector<Parameter> parameters = {{"kind", UnitDomain(kinds)},
                                       {"x", UnitDomain(uniform(0, 1)), Condition{0, 0}},
                                       {"y", UnitDomain(uniform(0, 1)), Condition{0, 1}},
                                       {"z", UnitDomain(randint(0, 9)), Condition{0, 1}},
                                       {"w", UnitDomain(uniform(0, 1))}};
  Config frame(Value::make_map());
  frame.set("kind", Value());
  frame.set("w", Value());
  return Encoding(std::move(parameters), std::move(frame));
}

TEST_CASE("what depends on a choice is learnt of the trials in which it is active") {
  const auto value = [](const Config& config) {
    if (config.find("x") != nullptr) return -0.4 - std::abs(config.get<double>("x") - 0.1);
    return -std::abs(config.get<double>("y") - 0.7) - 0.02 * config.get<int>("z");
  };
  int second = 0;
  double away = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Swept swept(conditional(), value, seed);
    for (int i = 0; i < 60; ++i) {
      const Proposal proposal = swept.live(by_model_only());
      const bool is_second = swept.encoding().option(0, proposal.point) == 1;
      CHECK((proposal.point[1] >= 0) != is_second);
      CHECK((proposal.point[2] >= 0) == is_second);
      CHECK((proposal.point[3] >= 0) == is_second);
      CHECK(proposal.point[4] >= 0);
      if (i < 40 || !is_second) continue;
      ++second;
      away += std::abs(proposal.point[2] - 0.7);
    }
  }
  CHECK(second > 60);           // of 80
  CHECK(away / second < 0.15);  // an even draw is .29 away
}

TEST_CASE("under a scheduler that stops a third is drawn") {
  Swept swept(cube(2), bowl, kSeed);
  for (int i = 0; i < 30; ++i) swept.live(TpeProposer(), TrialEnd::kStopped);
  int random = 0;
  for (const Proposal& proposal : swept.ask(TpeProposer(), 300)) {
    CHECK(
        (proposal.origin == ProposalOrigin::kRandom || proposal.origin == ProposalOrigin::kModel));
    random += proposal.origin == ProposalOrigin::kRandom ? 1 : 0;
  }
  CHECK(random > 70);
  CHECK(random < 130);
}

TEST_CASE("results that teach nothing are said, and proposals go on") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double value : {1.5, nan, -std::numeric_limits<double>::infinity()}) {
    Swept swept(
        cube(2), [value](const Config&) { return value; }, kSeed);
    for (int i = 0; i < 12; ++i) swept.live(TpeProposer());
    const Proposal proposal = swept.live(TpeProposer());
    CHECK(proposal.origin == ProposalOrigin::kFallback);
    CHECK(proposal.note == "all results are alike");
  }
  Swept failing(cube(2), bowl, kSeed);
  for (int i = 0; i < 12; ++i) failing.fail(TpeProposer());
  CHECK(failing.fail(TpeProposer()).note == "all results are alike");
}

TEST_CASE("some diverged values are no hindrance") {
  Swept swept(
      cube(2),
      [](const Config& config) {
        const double value = bowl(config);
        return value < -0.3 ? std::numeric_limits<double>::quiet_NaN() : value;
      },
      kSeed);
  for (int i = 0; i < 60; ++i) swept.live(by_model_only());
  CHECK(swept.best() > -0.02);
}

TEST_CASE("a space without parameters has one configuration") {
  Swept swept(
      Encoding(SearchSpace({{"a", 1}})), [](const Config&) { return 1.0; }, kSeed);
  for (int i = 0; i < 15; ++i) CHECK(swept.live(TpeProposer()).point.empty());
}

TEST_CASE("one parameter of any kind is enough") {
  const std::vector<Domain> domains = {uniform(-1, 1), loguniform(1e-3, 1), quniform(0, 1, 0.25),
                                       randint(0, 3),  lograndint(1, 5000), qrandint(0, 100, 5),
                                       randn(0, 1),    qrandn(0, 1, 0.5)};
  for (const Domain& domain : domains) {
    SearchSpace space;
    space.set("x", domain);
    Swept swept(
        Encoding(space), [](const Config& config) { return config.get<double>("x"); }, kSeed);
    for (int i = 0; i < 40; ++i) {
      const double unit = swept.live(TpeProposer()).point.front();
      CHECK(unit >= 0);
      CHECK(unit <= 1);
    }
  }
}

}  // namespace
}  // namespace tune::search::tpe
