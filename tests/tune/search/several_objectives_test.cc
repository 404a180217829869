// Searchers with several objectives and under constraints: gp, tpe and NSGA-II.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/error.h"
#include "core/refusal.h"
#include "numbers.h"
#include "tune/search/comparable_results.h"
#include "tune/search/gp/gp_proposer.h"
#include "tune/search/gp/several.h"
#include "tune/search/gp/training_set.h"
#include "tune/search/normal_distribution.h"
#include "tune/search/nsga2/propose.h"
#include "tune/search/several_swept.h"
#include "tune/search/swept.h"
#include "tune/search/tpe/evidence.h"
#include "tune/search/tpe/propose.h"
#include "tune/testing/searcher_conformance.h"

namespace tune::search {
namespace {

using tune::testing::kInfinity;

// Draws all.
class RandomProposer : public Proposer {
 public:
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override {
    ProposerAnswer answer;
    for (std::size_t i = 0; i < question.count; ++i) {
      answer.proposals.push_back({.point = encoding.draw(random)});
    }
    return answer;
  }
};

struct Problem {
  int dimensions;
  NumbersOf numbers;
  double low;  // of both objectives
};
const Problem kTwoBowls = {4, two_bowls, -1.5};

// Zitzler, Deb and Thiele's first problem: of x0 one objective is made, and the front is reached
// where all others are 0.
const Problem kZdt1 = {6,
                       [](const Config& config) -> MeritNumbers {
                         const double x = config.get<double>("x0");
                         double others = 0;
                         for (const auto& [path, value] : config.leaves()) {
                           if (path != "x0") others += value->number() / 5;
                         }
                         const double distance = 1 + 9 * others;
                         return {-x, -distance * (1 - std::sqrt(x / distance))};
                       },
                       -6};

double mean_volume(const Proposer& proposer, int trials, const Problem& problem = kTwoBowls) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SeveralSwept swept(cube(problem.dimensions), problem.numbers, seed);
    swept.live(proposer, trials);
    sum += swept.hypervolume(problem.low) / 3;
  }
  return sum;
}

const Objective kConstrained = {"a", Mode::kMax, 0, {}, {{.metric = "c", .max = 1}}};

// The best of `a`, at .3 everywhere, breaks the constraint; what keeps it has a first coordinate
// above .6, a sixth of which lies near the best that is left.
MeritNumbers bowl_beside_wall(const Config& config) {
  return {bowl(config), config.get<double>("x0") - 0.6};
}

double best_kept(SeveralSwept& swept) {
  double best = -kInfinity;
  for (const KnownTrial& trial : swept.known().trials()) {
    const Merit merit = swept.known().merit(*trial.newest);
    if (merit.violation == 0) best = std::max(best, merit.values[0]);
  }
  return best;
}

TEST_CASE("with two objectives less is known of the places that are proposed, by the margin") {
  const auto deviation = [](double margin, std::size_t averaged_up_to) {
    const gp::GpProposer proposer(
        {.random_share = 0, .averaged_up_to = averaged_up_to, .margin = margin});
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SeveralSwept swept(cube(4), two_bowls, seed);
      swept.live(RandomProposer(), 8);
      for (const Proposal& proposal : swept.ask(proposer, 8)) {
        REQUIRE(proposal.origin == ProposalOrigin::kModel);
        CHECK(proposal.margin == margin);
        sum += proposal.expected->standard_deviation;
      }
    }
    return sum;
  };
  CHECK(deviation(0.6, 0) > 1.5 * deviation(0, 0));
  const gp::Options usual;
  CHECK(deviation(usual.margin, usual.averaged_up_to) > 1.15 * deviation(0, usual.averaged_up_to));
}

TEST_CASE("gp and tpe find more of a front than random draws do") {
  const double drawn = mean_volume(RandomProposer(), 60);
  const double by_gp = mean_volume(gp::GpProposer({}), 60);
  CAPTURE(drawn);
  CAPTURE(by_gp);
  CHECK(by_gp > drawn + 0.1);
  const double by_tpe = mean_volume(tpe::TpeProposer(), 60);
  CAPTURE(by_tpe);
  CHECK(by_tpe > drawn + 0.05);
}

TEST_CASE("NSGA-II finds more of a front within 150 trials than random draws do") {
  // All of it would be 35.7. Prototypes of five seeds had 28.0 by drawing, 34.3 by this,
  // and 29.5 with the paper's distribution indices.
  const nsga2::Nsga2Proposer proposer({.population = 12});
  const double drawn = mean_volume(RandomProposer(), 150, kZdt1);
  const double found = mean_volume(proposer, 150, kZdt1);
  CAPTURE(drawn);
  CAPTURE(found);
  CHECK(found > drawn + 3.5);
}

TEST_CASE("NSGA-II crosses two different parents") {
  const nsga2::Nsga2Proposer proposer({.population = 4});
  SeveralSwept swept(cube(3), two_bowls, 1);
  swept.live(proposer, 4);
  for (const Proposal& proposal : swept.ask(proposer, 50)) {
    REQUIRE(proposal.neighbours.size() == 2);
    CHECK(proposal.neighbours[0] != proposal.neighbours[1]);
  }
}

TEST_CASE("gp and tpe find the best that keeps a constraint") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SeveralSwept by_gp(cube(2), bowl_beside_wall, seed, kConstrained);
    by_gp.live(gp::GpProposer({}), 40);
    CHECK(best_kept(by_gp) > -0.095);  // -.09 is the best
    SeveralSwept by_tpe(cube(2), bowl_beside_wall, seed, kConstrained);
    by_tpe.live(tpe::TpeProposer(), 60);
    CHECK(best_kept(by_tpe) > -0.13);
    CHECK(by_tpe.kept() > 30);  // two fifths of 60 draws would be 24
  }
}

TEST_CASE("while no trial keeps the constraints gp looks for one that does") {
  // One in a hundred draws keeps it.
  const auto numbers = [](const Config& config) -> MeritNumbers {
    const double x = config.get<double>("x0");
    const double y = config.get<double>("x1");
    return {x, 0.1 - std::max(std::abs(x - 0.9), std::abs(y - 0.9)) * 2};
  };
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SeveralSwept swept(cube(2), numbers, seed, kConstrained);
    swept.live(gp::GpProposer({}), 30);
    found += swept.kept() > 0 ? 1 : 0;
  }
  CHECK(found == 3);
}

TEST_CASE("where nothing keeps a constraint gp goes to what breaks it least") {
  // Nothing comes nearer than .5, and all values are exact: models are sure of it.
  const auto numbers = [](const Config& config) -> MeritNumbers {
    return {config.get<double>("x1"), -0.5 - config.get<double>("x0")};
  };
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SeveralSwept swept(cube(2), numbers, seed, kConstrained);
    swept.live(gp::GpProposer({.random_share = 0}), 30);
    const auto& trials = swept.known().trials();
    for (std::size_t i = trials.size() - 10; i < trials.size(); ++i) {
      CHECK(trials[i].point[0] < 0.2);
    }
  }
}

TEST_CASE("gp's proposals for several objectives follow from the question alone") {
  const gp::GpProposer proposer({});
  SeveralSwept one(cube(3), two_bowls, 5);
  one.live(proposer, 12);
  RandomStream first(1, "x", 0), second(1, "x", 0);
  const ProposerQuestion question{one.known(), one.state(), 12, 3};
  const ProposerAnswer a = proposer.propose(question, one.encoding(), first);
  const ProposerAnswer b = proposer.propose(question, one.encoding(), second);
  CHECK(encoded(a.proposals) == encoded(b.proposals));
  CHECK(a.state == b.state);
  std::set<UnitPoint> points;
  for (const Proposal& each : a.proposals) points.insert(each.point);
  CHECK(points.size() == 3);
  // A state that is not its own counts as none.
  RandomStream third(1, "x", 0);
  ProposerQuestion other = question;
  other.state = "\x93nonsense";
  CHECK(proposer.propose(other, one.encoding(), third).proposals.size() == 3);
}

TEST_CASE("a large batch of gp for several objectives finds about what searches in full find") {
  // All of it proposed at once, after 12 trials one by one.
  const auto after_batch = [](const Proposer& proposer) {
    SeveralSwept swept(cube(4), two_bowls, 5);
    swept.live(gp::GpProposer({.random_share = 0}), 12);
    std::set<UnitPoint> points;
    for (const Proposal& each : swept.ask(proposer, 40)) {
      points.insert(each.point);
      swept.tried(each.point);
    }
    CHECK(points.size() == 40);
    return swept.hypervolume(kTwoBowls.low);
  };
  const gp::GpProposer proposer({.random_share = 0});
  const double by_gp = after_batch(proposer);
  CHECK(by_gp > 0.8 * after_batch(gp::GpProposer({.random_share = 0, .searched_in_full = 40})));
  CHECK(by_gp == after_batch(proposer));
}

TEST_CASE("a large batch of gp under a constraint mostly keeps it, or breaks it by little") {
  // The best lies where the constraint is just kept. The nearer the trials before have come to it,
  // the more both sides are looked at: by the likeliest length scales they come less near.
  const auto kept = [](std::size_t averaged_up_to, double lowest) {
    SeveralSwept swept(cube(2), bowl_beside_wall, 1, kConstrained);
    const gp::GpProposer proposer({.random_share = 0, .averaged_up_to = averaged_up_to});
    swept.live(proposer, 20);
    int count = 0;
    for (const Proposal& each : swept.ask(proposer, 40)) {
      count += swept.tried(each.point).back() >= lowest ? 1 : 0;
    }
    return count;
  };
  CHECK(kept(0, 0) > 24);  // of draws 16
  CHECK(kept(gp::Options().averaged_up_to, -0.01) > 36);
}

TEST_CASE("under a constraint gp has a margin where trials are ended early, as without one") {
  const gp::Options options = {.random_share = 0, .averaged_up_to = 0};
  const auto proposed = [&](const NumbersOf& numbers, bool stopped_early) {
    SeveralSwept swept(cube(2), numbers, 1, kConstrained);
    swept.live(RandomProposer(), 8);
    gp::SeveralQuestion question{gp::training_set(swept.known()), 1, {}};
    question.known.stopped_early = stopped_early;
    RandomStream random(1, "stopped_early", 0);
    const auto answer = gp::propose_several(question, swept.encoding(), options, random);
    REQUIRE(answer.proposals.front().origin == ProposalOrigin::kModel);
    return answer.proposals.front();
  };
  const NumbersOf kept = [](const Config& config) { return MeritNumbers{bowl(config), 1}; };
  for (const bool stopped_early : {false, true}) {
    const Proposal proposal = proposed(kept, stopped_early);
    CHECK(proposal.margin == (stopped_early ? options.margin : 0));
    const auto& [mean, deviation, acquisition] = *proposal.expected;
    const double z = (mean - proposal.margin) / deviation;  // 0 is the best
    const double improvement = deviation * (normal_density(z) + z * normal_cdf(z));
    CHECK(acquisition == doctest::Approx(std::log(improvement)));
  }
  // While no trial keeps the constraint there is nothing to improve on.
  const NumbersOf broken = [](const Config& config) {
    return MeritNumbers{bowl(config), -config.get<double>("x0") - 1};
  };
  CHECK(proposed(broken, true).margin == 0);
}

TEST_CASE("gp's search of a front averages over length scales while results are few") {
  // A rate that diverges beyond a cliff, as in cliff(): of few results the likeliest scales are
  // sure that other parameters do not matter.
  const auto numbers = [](const Config& config) -> MeritNumbers {
    const double rate = config.get<double>("x0"), other = config.get<double>("x1");
    double rest = 0;
    for (const char* name : {"x1", "x2", "x3", "x4"}) {
      rest += std::pow(config.get<double>(name) - 0.4, 2);
    }
    if (rate > 0.7) return {-2 - rest, -2 - other};
    return {rate - rest, -other * other - (rate - 0.3) * (rate - 0.3) / 2};
  };
  const auto deviation = [&](std::size_t averaged_up_to) {
    const gp::GpProposer proposer({.random_share = 0, .averaged_up_to = averaged_up_to});
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SeveralSwept swept(cube(5), numbers, seed);
      swept.live(RandomProposer(), 10);
      sum += swept.ask(proposer, 1).front().expected->standard_deviation;
    }
    return sum;
  };
  CHECK(deviation(10) > 1.2 * deviation(9));
}

TEST_CASE("numbers that are not finite, alike or missing stop no gp") {
  const gp::GpProposer proposer({.random_share = 0});
  SeveralSwept alike(
      cube(2),
      [](const Config&) -> MeritNumbers {
        return {1, 1};
      },
      1);
  alike.live(proposer, 8);
  const Proposal fallback = alike.ask(proposer, 1).front();
  CHECK(fallback.origin == ProposalOrigin::kFallback);
  CHECK(fallback.note == "all results are alike");

  // One objective is the same of all, the other one is not finite half of the time.
  SeveralSwept odd(
      cube(2),
      [](const Config& config) -> MeritNumbers {
        const double x = config.get<double>("x0");
        return {x > 0.5 ? -kInfinity : x, 1};
      },
      2);
  odd.live(proposer, 15);
  CHECK(odd.ask(proposer, 1).front().origin == ProposalOrigin::kModel);

  SeveralSwept failing(cube(2), two_bowls, 3);
  for (std::uint32_t i = 0; i < 8; ++i) {
    failing.known().add({i}, {0.1 * i, 0.5});
    failing.known().end({i}, TrialEnd::kError);
  }
  CHECK(failing.ask(proposer, 2).size() == 2);
  failing.live(proposer, 6);
  CHECK(failing.ask(proposer, 1).front().origin == ProposalOrigin::kModel);
}

TEST_CASE("beyond 500 trials of several objectives gp lets NSGA-II go on, and says so") {
  const gp::GpProposer proposer({});
  SeveralSwept swept(cube(2), two_bowls, 1);
  swept.live(RandomProposer(), 500);
  CHECK(swept.ask(proposer, 1).front().note == "");
  swept.live(RandomProposer(), 1);
  const Proposal proposal = swept.ask(proposer, 1).front();
  CHECK(proposal.origin == ProposalOrigin::kModel);
  CHECK(proposal.note == "there are more than 500 trials of several objectives: NSGA-II goes on");
  // One objective under constraints stays with the process.
  SeveralSwept constrained(cube(2), bowl_beside_wall, 1, kConstrained);
  constrained.live(RandomProposer(), 501);
  CHECK(constrained.ask(gp::GpProposer({.random_share = 0}), 1).front().note == "");
}

TEST_CASE("tpe's good trials are the first by non-dominated rank, and keep the constraints") {
  History history({"", Mode::kMax, 0, {{"a"}, {"b"}}, {{.metric = "c", .max = 1}}});
  const auto add = [&](std::uint32_t trial, MeritNumbers numbers, TrialEnd end) {
    history.add({trial}, {0.01 * trial});
    history.result({trial}, 1, std::move(numbers));
    history.end({trial}, end);
  };
  for (std::uint32_t i = 0; i < 20; ++i) {
    add(i, {0.1 * i, 0.1 * i, i < 18 ? 1.0 : -1.0}, TrialEnd::kCompleted);
  }
  add(20, {0.0, 9.0, 1.0}, TrialEnd::kError);  // completed or not: it is on the front
  // 21 results: three are good. 18 and 19 are better than all, and break the constraint.
  const tpe::Evidence found = tpe::evidence(history, 1, 1);
  CHECK(found.good == std::vector<std::size_t>{16, 17, 20});
}

TEST_CASE("where few trials keep the constraints these alone are tpe's good ones") {
  History history({"", Mode::kMax, 0, {{"a"}, {"b"}}, {{.metric = "c", .max = 1}}});
  const auto add = [&](std::uint32_t trial, double margin) {
    history.add({trial}, {0.01 * trial});
    history.result({trial}, 1, MeritNumbers{1.0 * trial, 1, margin});
    history.end({trial}, TrialEnd::kCompleted);
  };
  for (std::uint32_t i = 0; i < 20; ++i) add(i, i == 3 ? 0.5 : -0.1 * (i + 1));
  CHECK(tpe::evidence(history, 1, 1).good == std::vector<std::size_t>{3});
  History none({"", Mode::kMax, 0, {{"a"}, {"b"}}, {{.metric = "c", .max = 1}}});
  history = none;
  for (std::uint32_t i = 0; i < 20; ++i) add(i, -0.1 * (i + 1));
  CHECK(tpe::evidence(history, 1, 1).good == std::vector<std::size_t>{0, 1});
}

TEST_CASE("NSGA-II draws until there is a population, then crosses the best") {
  const nsga2::Nsga2Proposer proposer({.population = 10});
  SeveralSwept swept(cube(3), two_bowls, 1);
  for (int i = 0; i < 10; ++i) {
    const Proposal proposal = swept.ask(proposer, 1).front();
    CHECK(proposal.origin == ProposalOrigin::kStartUp);
    swept.tried(proposal.point);
  }
  swept.live(RandomProposer(), 30);
  std::vector<Merit> merits;
  for (const KnownTrial& trial : swept.known().trials()) {
    merits.push_back(swept.known().merit(*trial.newest));
  }
  const std::vector<std::size_t> order = best_first(merits);
  const std::set<std::size_t> best(order.begin(), order.begin() + 10);
  for (const Proposal& proposal : swept.ask(proposer, 40)) {
    CHECK(proposal.origin == ProposalOrigin::kModel);
    REQUIRE(proposal.neighbours.size() == 2);
    for (const TrialNumber parent : proposal.neighbours) CHECK(best.contains(parent.value));
  }
}

TEST_CASE("NSGA-II searches spaces with choices, conditions, whole numbers and few points") {
  SearchSpace space = {
      {"n", randint(1, 6)},
      {"kind", choice({{{"name", "a"}, {"x", uniform(0, 1)}}, {{"name", "b"}}, "c"})}};
  const nsga2::Nsga2Proposer proposer({.population = 6});
  const auto numbers = [](const Config& config) -> MeritNumbers {
    const double n = config.get<double>("n");
    return {n, config.contains("kind/x") ? config.get<double>("kind/x") : 0.5};
  };
  SeveralSwept swept(Encoding(space), numbers, 4);
  swept.live(proposer, 60);
  const auto& prints = swept.known().fingerprints();
  CHECK(std::set<std::uint64_t>(prints.begin(), prints.end()).size() == 60);

  // Of four points each is tried once; then there is nothing new, and it says so.
  SeveralSwept small(
      Encoding(SearchSpace{{"n", randint(0, 4)}}),
      [](const Config& config) -> MeritNumbers {
        return {config.get<double>("n"), -config.get<double>("n")};
      },
      4);
  const nsga2::Nsga2Proposer few({.population = 4});
  small.live(few, 4);
  const Proposal none = small.ask(few, 1).front();
  CHECK(none.origin == ProposalOrigin::kFallback);
  CHECK_HAS(none.note, "all children had been tried");
}

TEST_CASE("under a scheduler that stops, NSGA-II's parents are the best at one rung") {
  History known(kTwoObjectives);
  for (std::uint32_t i = 0; i < 12; ++i) {
    known.add({i}, {0.05 * i, 0.5});
    known.result({i}, 1, MeritNumbers{1.0 * i, 1.0 * i});
    // The first four go on, and are far better after three steps.
    if (i < 4) known.result({i}, 3, MeritNumbers{50.0, 50.0});
    known.end({i}, i < 4 ? TrialEnd::kCompleted : TrialEnd::kStopped);
  }
  RandomStream random(1, "x", 0);
  const nsga2::Nsga2Proposer proposer({.population = 4});
  const auto answer = proposer.propose({known, {}, 0, 30}, cube(2), random);
  for (const Proposal& proposal : answer.proposals) {
    for (const TrialNumber parent : proposal.neighbours) CHECK(parent.value >= 8);
  }
}

TEST_CASE("a history of several numbers is saved and restored whole") {
  History history(kTwoObjectives);
  history.add({0}, {0.5});
  history.result({0}, 1, MeritNumbers{1, 2});
  history.result({0}, 4, MeritNumbers{3, 4});
  History restored(kTwoObjectives);
  restored.restore(history.save(), 1);
  CHECK(restored.save() == history.save());
  CHECK(restored.goals() == 2);
  CHECK(restored.find({0})->newest->numbers == MeritNumbers{3, 4});
  CHECK(restored.find({0})->rungs.size() == 2);
  CHECK(restored.merit(*restored.find({0})->newest).values == std::vector<double>{3, 4});
  // A value without numbers is the worst there is.
  CHECK(restored.merit({1, 5}).violation == kInfinity);
}

TEST_CASE("searchers keep their contract with several objectives, too") {
  SearcherSetup setup;
  setup.space = {{"x", uniform(0, 1)}, {"n", randint(0, 50)}, {"act", choice({"relu", "tanh"})}};
  setup.num_samples = 14;
  setup.objective = {"",
                     Mode::kMax,
                     3,
                     {{"loss", Mode::kMin}, {"training_iteration"}},
                     {{.metric = "loss", .max = 0.2}}};
  const SearcherSpec specs[] = {tune::gp(GpOptions{}),
                                tune::tpe(TpeOptions{}),
                                tune::nsga2({.population = 5}),
                                automatic(),
                                halton(),
                                basic_variant()};
  for (const SearcherSpec& spec : specs) {
    tune::testing::check_searcher([&] { return spec.make(); }, setup);
  }
}

TEST_CASE("options of nsga2 out of range are refused, and searchers say what they take") {
  using testing::refusal;
  CHECK_HAS(refusal([] { tune::nsga2({.population = 3}); }), "population is 3");
  CHECK_HAS(refusal([] { tune::nsga2({.crossover = 1.5}); }), "crossover is 1.5");
  CHECK_HAS(refusal([] {
              searcher_from_config("nsga2", {{"size", 3}});
            }),
            "there is no parameter 'size'");
  for (const char* name : {"auto", "gp", "tpe", "nsga2", "halton", "random", "basic_variant"}) {
    CHECK(searcher_from_config(name, {}).make()->takes_several_objectives());
  }
  CHECK_FALSE(tune::cma_es().make()->takes_several_objectives());
}

}  // namespace
}  // namespace tune::search
