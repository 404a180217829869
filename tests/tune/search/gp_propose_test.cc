#include "tune/search/gp/propose.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "core/wire.h"
#include "tune/search/gp/candidates.h"
#include "tune/search/gp/gp_proposer.h"
#include "tune/search/gp/targets.h"
#include "tune/search/normal_distribution.h"

namespace tune::search::gp {
namespace {

constexpr std::uint64_t kSeed = 3;  // of every random test here

// Sweeps one trial after another, as the searcher will: each knows all results before it.
class Sweep {
 public:
  using Value = std::function<double(const Config&)>;
  Sweep(Encoding encoding, Value value, std::uint64_t seed, Options options = {})
      : encoding_(std::move(encoding)), value_(std::move(value)), seed_(seed), options_(options) {}

  std::vector<Proposal> ask(std::size_t count) {
    const auto next = static_cast<std::uint32_t>(history_.trials().size());
    RandomStream random(seed_, "gp_propose_test", next);
    Answer answer = propose({training_set(history_), fit_, count}, encoding_, options_, random);
    fit_ = answer.fit;
    return answer.proposals;
  }
  void begin(const UnitPoint& point) {
    history_.add({static_cast<std::uint32_t>(history_.trials().size())}, point);
  }
  // One trial from its proposal to its end.
  Proposal live() {
    const TrialNumber trial{static_cast<std::uint32_t>(history_.trials().size())};
    const Proposal proposal = ask(1).front();
    begin(proposal.point);
    const double value = value_(encoding_.decode(proposal.point));
    best_ = std::fmax(best_, value);
    history_.result(trial, 1, value);
    history_.end(trial, TrialEnd::kCompleted);
    return proposal;
  }
  double best_of(int trials) {
    for (int i = 0; i < trials; ++i) live();
    return best_;
  }
  History& history() { return history_; }
  const Encoding& encoding() const { return encoding_; }
  const Fit& fit() const { return fit_; }

 private:
  Encoding encoding_;
  Value value_;
  std::uint64_t seed_;
  Options options_;
  History history_;
  Fit fit_;
  double best_ = -std::numeric_limits<double>::infinity();
};

Encoding cube(int dimensions) {
  SearchSpace space;
  for (int i = 0; i < dimensions; ++i) space.set("x" + std::to_string(i), uniform(0, 1));
  return Encoding(space);
}

// Largest, 0, where every coordinate is 0.3.
double bowl(const Config& config) {
  double sum = 0;
  for (const auto& [path, value] : config.leaves()) sum -= std::pow(value->number() - 0.3, 2);
  return sum;
}

Sweep::Value constant(double value) {
  return [value](const Config&) { return value; };
}

constexpr Options kNeverRandom = {.start_up = 5, .random_share = 0};
// By the likeliest scales, as in haste, however few results there are.
constexpr Options kLikeliest = {.start_up = 5, .random_share = 0, .averaged_up_to = 0};

TEST_CASE("before there are results all is drawn, each configuration another one") {
  Sweep sweep(cube(2), bowl, kSeed);
  std::set<UnitPoint> points;
  for (const Proposal& proposal : sweep.ask(20)) {
    CHECK(proposal.origin == ProposalOrigin::kStartUp);
    CHECK(proposal.note == "");
    CHECK_FALSE(proposal.expected.has_value());
    CHECK(proposal.results_known == 0);
    points.insert(proposal.point);
  }
  CHECK(points.size() == 20);
}

TEST_CASE("the same question and stream have the same answer") {
  const auto points = [] {
    Sweep sweep(cube(3), bowl, kSeed);
    std::vector<UnitPoint> all;
    for (int i = 0; i < 12; ++i) all.push_back(sweep.live().point);
    return all;
  };
  CHECK(points() == points());
}

// The sum of the best values of sweeps with different seeds, by the model and by chance.
struct Compared {
  double by_model = 0;
  double by_chance = 0;
};
Compared compared(const Encoding& encoding, const Sweep::Value& value, int by_model, int by_chance,
                  const Options& options = {}) {
  Compared sums;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    sums.by_model += Sweep(encoding, value, seed, options).best_of(by_model);
    sums.by_chance += Sweep(encoding, value, seed, {.start_up = 1000}).best_of(by_chance);
  }
  return sums;
}

TEST_CASE("few proposals lead nearer to the best than many drawn") {
  const auto [by_model, by_chance] = compared(cube(3), bowl, 50, 200);
  CAPTURE(by_model);
  CAPTURE(by_chance);
  CHECK(by_model > 0.5 * by_chance);  // both are below 0
}

TEST_CASE("a known space of every kind of domain is searched well") {
  const SearchSpace space = {{"lr", loguniform(1e-5, 1)},
                             {"layers", randint(1, 9)},
                             {"width", qrandint(16, 256, 16)},
                             {"kind", choice({"a", "b", "c"})},
                             {"dropout", quniform(0, 0.5, 0.1)}};
  const auto value = [](const Config& config) {
    return -std::abs(std::log10(config.get<double>("lr")) + 3) -
           std::abs(config.get<int>("layers") - 4) -
           std::abs(config.get<int>("width") - 64) / 32.0 -
           (config.get<std::string>("kind") == "b" ? 0 : 2) - config.get<double>("dropout");
  };
  const auto [by_model, by_chance] = compared(Encoding(space), value, 40, 40);
  CAPTURE(by_model);
  CAPTURE(by_chance);
  CHECK(by_model > 0.5 * by_chance);
}

// The nearer a rate is to where it diverges the better, as with learning rates; of the others one
// matters.
double cliff(const Config& config) {
  const double rate = config.get<double>("x0");
  if (rate > 0.7) return -5 - rate;
  return rate - 0.7 - std::abs(config.get<double>("x1") - 0.4);
}

TEST_CASE("averaged over length scales the search comes nearer to a cliff") {
  const double averaged = compared(cube(5), cliff, 40, 0).by_model;
  const Compared likeliest = compared(cube(5), cliff, 40, 40, {.averaged_up_to = 0});
  CAPTURE(averaged);
  CAPTURE(likeliest.by_model);
  CAPTURE(likeliest.by_chance);
  CHECK(averaged > 0.9 * likeliest.by_model);
  CHECK(averaged > 0.5 * likeliest.by_chance);
}

TEST_CASE("one parameter is enough") {
  CHECK(Sweep(cube(1), bowl, kSeed).best_of(15) > -1e-3);
}

TEST_CASE("of twenty dimensions the two that matter are found") {
  const auto value = [](const Config& config) {
    return -std::abs(config.get<double>("x3") - 0.3) - std::abs(config.get<double>("x17") - 0.8);
  };
  const auto [by_model, by_chance] = compared(cube(20), value, 50, 50);
  CAPTURE(by_model);
  CAPTURE(by_chance);
  CHECK(by_model > 0.6 * by_chance);
}

TEST_CASE("a proposal says what was known and expected, and which trials are like it") {
  Sweep sweep(cube(2), bowl, kSeed, kNeverRandom);
  sweep.best_of(12);
  sweep.begin({0.9, 0.9});  // pending
  const std::vector<Proposal> batch = sweep.ask(3);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    CHECK(batch[i].origin == ProposalOrigin::kModel);
    CHECK(batch[i].results_known == 12);
    CHECK(batch[i].pending_known == 1 + i);
    REQUIRE(batch[i].expected.has_value());
    CHECK(batch[i].expected->standard_deviation > 0);
    CHECK(std::isfinite(batch[i].expected->mean));
    CHECK(std::isfinite(batch[i].expected->acquisition));
    REQUIRE(batch[i].neighbours.size() == 3);
    for (const TrialNumber trial : batch[i].neighbours) CHECK(trial.value < 12);
    CHECK(encoded(decoded<Proposal>(encoded(batch[i]))) == encoded(batch[i]));
  }
  CHECK(batch[0].point != batch[1].point);
  CHECK(batch[1].point != batch[2].point);
  // Each knows those before it: what was expected to be gained there is gained.
  CHECK(batch[0].expected->acquisition > batch[2].expected->acquisition);
}

TEST_CASE("a share is drawn on purpose") {
  Sweep sweep(cube(2), bowl, kSeed, {.start_up = 5, .random_share = 0.5});
  int drawn = 0;
  for (int i = 0; i < 45; ++i) drawn += sweep.live().origin == ProposalOrigin::kRandom;
  CHECK(drawn > 10);
  CHECK(drawn < 30);
}

TEST_CASE("no configuration is tried twice while there is another one") {
  const SearchSpace space = {{"a", choice({1, 2, 3})}, {"b", randint(0, 4)}};
  Sweep sweep(
      Encoding(space),
      [](const Config& config) { return config.get<double>("a") * config.get<int>("b"); }, kSeed);
  std::set<std::string> tried;
  for (int i = 0; i < 12; ++i) {
    const Proposal proposal = sweep.live();
    CHECK(proposal.note == "");
    tried.insert(sweep.encoding().decode(proposal.point).dump());
  }
  CHECK(tried.size() == 12);
  CHECK(sweep.live().note.find("no configuration was found") != std::string::npos);
  // Nor in one batch.
  Sweep batch(Encoding(space), constant(1), kSeed);
  std::set<UnitPoint> points;
  for (const Proposal& proposal : batch.ask(12)) points.insert(proposal.point);
  CHECK(points.size() == 12);
}

TEST_CASE("results that are all alike are searched by chance, and it is said") {
  for (const double value : {1.0, std::nan(""), HUGE_VAL}) {
    Sweep sweep(cube(2), constant(value), kSeed, kNeverRandom);
    sweep.best_of(6);
    const Proposal proposal = sweep.ask(1).front();
    CHECK(proposal.origin == ProposalOrigin::kFallback);
    CHECK(proposal.note == "all results are alike");
    CHECK(proposal.results_known == 6);
  }
}

TEST_CASE("trials that all failed are searched on by chance") {
  Sweep sweep(cube(2), bowl, kSeed, kNeverRandom);
  for (std::uint32_t i = 0; i < 8; ++i) {
    sweep.begin({0.1 * i, 0.5});
    sweep.history().end({i}, TrialEnd::kError);
  }
  CHECK(sweep.ask(1).front().origin == ProposalOrigin::kFallback);
}

TEST_CASE("under a scheduler that ends trials early less is known of the place that is proposed") {
  Sweep sweep(cube(2), bowl, kSeed, kLikeliest);
  sweep.best_of(20);
  const auto proposed = [&](bool stopped_early) {
    Question question{training_set(sweep.history()), sweep.fit(), 1};
    CHECK_FALSE(question.known.stopped_early);
    question.known.stopped_early = stopped_early;
    RandomStream random(kSeed, "stopped_early", 0);
    const Proposal proposal =
        propose(question, sweep.encoding(), kLikeliest, random).proposals.front();
    REQUIRE(proposal.origin == ProposalOrigin::kModel);
    const auto targets = targets_of(question.known.observations);
    const double best = *std::max_element(targets.begin(), targets.end());
    const auto& [mean, deviation, acquisition] = *proposal.expected;
    CHECK(proposal.margin == (stopped_early ? 0.3 : 0));
    const double z = (mean - best - proposal.margin) / deviation;
    const double improvement = deviation * (normal_density(z) + z * normal_cdf(z));
    CHECK(acquisition == doctest::Approx(std::log(improvement)));
    return deviation;
  };
  CHECK(proposed(true) > 2 * proposed(false));
}

TEST_CASE("where trials diverge no more is proposed than by chance would be") {
  // Half of the cube fails.
  Sweep sweep(
      cube(2),
      [](const Config& config) {
        return config.get<double>("x0") > 0.5 ? std::nan("") : bowl(config);
      },
      kSeed, kNeverRandom);
  sweep.best_of(8);
  int diverged = 0;
  for (int i = 0; i < 20; ++i) {
    diverged += sweep.encoding().decode(sweep.live().point).get<double>("x0") > 0.5;
  }
  CHECK(diverged < 8);  // by chance 10
}

TEST_CASE("a fit is made again after a tenth more results, from where the last one ended") {
  Sweep sweep(cube(2), bowl, kSeed, kNeverRandom);
  sweep.best_of(30);
  const Fit fit = sweep.fit();
  CHECK(fit.scales.log_lengths.size() == 2);
  CHECK(fit.results <= 30);
  CHECK_FALSE(is_due(fit, fit.results + 1));
  CHECK(is_due(fit, fit.results * 11 / 10 + 3));
  CHECK(decoded<Fit>(encoded(fit)) == fit);
}

TEST_CASE("a fit of another space is not used") {
  Sweep sweep(cube(2), bowl, kSeed, kNeverRandom);
  sweep.best_of(8);
  RandomStream random(kSeed, "gp_propose_test", 0);
  const Fit foreign{{std::vector<double>(5, 0.0), -3}, 8};
  const Answer answer =
      propose({training_set(sweep.history()), foreign, 1}, sweep.encoding(), kNeverRandom, random);
  CHECK(answer.proposals.front().origin == ProposalOrigin::kModel);
  CHECK(answer.fit.scales.log_lengths.size() == 2);
}

TEST_CASE("numbers that fail are a fallback in words") {
  Sweep sweep(cube(2), bowl, kSeed, kNeverRandom);
  sweep.best_of(8);
  RandomStream random(kSeed, "gp_propose_test", 0);
  const Fit broken{{{std::nan(""), 0}, -3}, 8};  // not due
  const Answer answer =
      propose({training_set(sweep.history()), broken, 2}, sweep.encoding(), kNeverRandom, random);
  for (const Proposal& proposal : answer.proposals) {
    CHECK(proposal.origin == ProposalOrigin::kFallback);
    CHECK(proposal.note == "the covariance is not positive definite");
  }
}

TEST_CASE("conditional parameters are searched where they are active") {
  const Value map = {{"x", nullptr}};
  const Value other = {{"y", nullptr}};
  Sweep sweep(
      Encoding({{"k", UnitDomain(choice({map, other}))},
                {"k/x", UnitDomain(uniform(0, 1)), Condition{0, 0}},
                {"k/y", UnitDomain(uniform(0, 1)), Condition{0, 1}}},
               Config{{"k", nullptr}}),
      [](const Config& config) {
        return config.contains("k/x") ? -1.0 : -std::abs(config.get<double>("k/y") - 0.7);
      },
      kSeed);
  CHECK(sweep.best_of(30) > -0.01);
}

TEST_CASE("proposals keep the rules between parameters, and the best is found on their border") {
  const Encoding encoding(SearchSpace{{"x", uniform(0, 1)}, {"y", uniform(0, 1)}}, {"x < y"});
  double best = -1;
  Sweep sweep(
      encoding,
      [&](const Config& config) {
        const double x = config.get<double>("x") - 0.6;
        const double y = config.get<double>("y") - 0.3;
        best = std::fmax(best, -x * x - y * y);
        return -x * x - y * y;
      },
      kSeed);
  for (int i = 0; i < 30; ++i) CHECK(encoding.holds(sweep.live().point));
  CHECK(best > -0.05);  // at x = y = 0.45: 0.045
}

// ---- Large batches

// Answered with the whole search for batches of up to so many.
std::vector<UnitPoint> batch_points(const Sweep::Value& value, std::size_t count,
                                    std::size_t searched_in_full) {
  Options options = kLikeliest;
  options.searched_in_full = searched_in_full;
  Sweep sweep(cube(3), value, kSeed, options);
  for (int i = 0; i < 12; ++i) sweep.live();
  std::vector<UnitPoint> points;
  for (const Proposal& proposal : sweep.ask(count)) {
    CHECK(proposal.origin == ProposalOrigin::kModel);
    CHECK(proposal.neighbours.size() == 3);
    points.push_back(proposal.point);
  }
  return points;
}

TEST_CASE("of up to 16 proposals each is searched for in full, of more the first") {
  CHECK(batch_points(bowl, 16, Options().searched_in_full) == batch_points(bowl, 16, 1000));
  const std::vector<UnitPoint> points = batch_points(bowl, 17, Options().searched_in_full);
  const std::vector<UnitPoint> in_full = batch_points(bowl, 17, 1000);
  for (std::size_t d = 0; d < 3; ++d) CHECK(std::abs(points[0][d] - in_full[0][d]) < 0.01);
  CHECK(points != in_full);
  CHECK(points == batch_points(bowl, 17, Options().searched_in_full));
}

TEST_CASE("a few are proposed in haste where more than 16 are kept in stock, and last of all") {
  Sweep sweep(cube(3), bowl, kSeed, kNeverRandom);
  sweep.best_of(12);
  const GpProposer proposer(kNeverRandom);
  const auto answer = [&](std::size_t in_stock, bool is_last = false,
                          const std::string& state = {}) {
    ProposerQuestion question{sweep.history(), state};
    question.count = 4;
    question.in_stock = in_stock;
    question.is_last = is_last;
    RandomStream random(kSeed, "gp_propose_test", 7);
    return proposer.propose(question, sweep.encoding(), random);
  };
  const auto points = [](const ProposerAnswer& made) {
    std::vector<UnitPoint> all;
    for (const Proposal& proposal : made.proposals) all.push_back(proposal.point);
    return all;
  };
  const ProposerAnswer in_full = answer(4);
  CHECK(points(answer(16)) == points(in_full));
  const ProposerAnswer in_haste = answer(17);
  CHECK(points(in_haste) != points(in_full));
  // The last question is for what is left, not for all that was kept in stock.
  CHECK(points(answer(4, true)) == points(in_full));
  CHECK(points(answer(4, true, in_full.state)) == points(answer(4, false, in_full.state)));
  CHECK(points(answer(4, true, in_haste.state)) != points(answer(4, false, in_haste.state)));
}

TEST_CASE(
    "in haste a fit goes on from the last, with care when results have passed a power of two") {
  Sweep sweep(cube(3), bowl, kSeed, kNeverRandom);
  sweep.best_of(20);
  const auto fitted_again = [&](std::uint64_t before, std::uint32_t now, std::size_t count) {
    Question question{training_set(sweep.history()), first_fit(3), count};
    question.fit.scales.log_lengths[0] += 2;
    question.fit.results = before;
    question.known.results_known = now;
    RandomStream random(kSeed, "gp_propose_test", 7);
    return propose(question, sweep.encoding(), kNeverRandom, random).fit.scales.log_lengths;
  };
  const std::vector<double> with_care = fitted_again(70, 90, 1);
  CHECK(fitted_again(70, 90, 17) != with_care);
  CHECK(fitted_again(60, 70, 17) == with_care);
  CHECK(fitted_again(250, 290, 17) != with_care);  // there are many, it is the same again
}

TEST_CASE("proposals of a large batch differ, and each knows those before it") {
  Sweep sweep(cube(3), bowl, kSeed, kNeverRandom);
  sweep.best_of(20);
  const std::vector<Proposal> batch = sweep.ask(64);
  std::set<UnitPoint> points;
  double mean_distance = 0;  // from the nearest before
  for (std::size_t i = 0; i < batch.size(); ++i) {
    CHECK(batch[i].origin == ProposalOrigin::kModel);
    CHECK(batch[i].pending_known == i);
    REQUIRE(batch[i].expected.has_value());
    CHECK(batch[i].expected->standard_deviation > 0);
    points.insert(batch[i].point);
    double nearest = 10;
    for (std::size_t j = 0; j < i; ++j) {
      double square = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        square += std::pow(batch[i].point[d] - batch[j].point[d], 2);
      }
      nearest = std::min(nearest, std::sqrt(square));
    }
    if (i > 0) mean_distance += nearest / 63;
  }
  CHECK(points.size() == 64);
  CHECK(mean_distance > 0.05);  // without believers all lie around the best
  CHECK(batch[0].expected->acquisition > batch[63].expected->acquisition);
}

TEST_CASE("short searches find nearly what a search in full would find at that moment") {
  // The first of a batch is searched for in full, given all that came before as pending.
  Sweep sweep(cube(2), bowl, kSeed, kLikeliest);
  sweep.best_of(12);
  const std::vector<Proposal> batch = sweep.ask(20);
  double worst = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Proposal one = sweep.ask(1).front();
    worst = std::max(worst, one.expected->acquisition - batch[i].expected->acquisition);
    sweep.begin(batch[i].point);
  }
  CHECK(worst < 1);  // of the logarithm
}

TEST_CASE("a large batch keeps conditions and the rules between parameters") {
  const Value map = {{"x", nullptr}};
  const Value other = {{"y", nullptr}};
  const Encoding encoding({{"k", UnitDomain(choice({map, other}))},
                           {"k/x", UnitDomain(uniform(0, 1)), Condition{0, 0}},
                           {"k/y", UnitDomain(uniform(0, 1)), Condition{0, 1}}},
                          Config{{"k", nullptr}});
  Sweep conditional(
      encoding,
      [](const Config& config) {
        return config.contains("k/x") ? -1.0 : -std::abs(config.get<double>("k/y") - 0.7);
      },
      kSeed, kNeverRandom);
  conditional.best_of(12);
  for (const Proposal& proposal : conditional.ask(40)) {
    const Config config = encoding.decode(proposal.point);
    CHECK(config.contains("k/x") != config.contains("k/y"));
  }
  const Encoding ruled(SearchSpace{{"x", uniform(0, 1)}, {"y", uniform(0, 1)}}, {"x < y"});
  Sweep sweep(
      ruled, [](const Config& config) { return config.get<double>("x"); }, kSeed, kNeverRandom);
  sweep.best_of(12);
  for (const Proposal& proposal : sweep.ask(40)) CHECK(ruled.holds(proposal.point));
}

TEST_CASE("a large batch of a small space tries each configuration once, then says so") {
  const SearchSpace space = {{"a", choice({1, 2, 3, 4, 5, 6})}, {"b", randint(0, 8)}};
  Sweep sweep(
      Encoding(space),
      [](const Config& config) { return config.get<double>("a") * config.get<int>("b"); }, kSeed,
      kNeverRandom);
  std::set<UnitPoint> points;
  for (int i = 0; i < 8; ++i) points.insert(sweep.live().point);
  int repeated = 0;
  for (const Proposal& proposal : sweep.ask(50)) {
    repeated += !points.insert(proposal.point).second;
    if (points.size() < 48) CHECK(proposal.note == "");
  }
  CHECK(points.size() == 48);
  CHECK(repeated == 10);  // 8 + 50 - 48
}

// ---- Candidates near a point

constexpr int kPoints = 1000;

// The number of points near the middle of a cube that have so many coordinates moved, by number.
std::vector<int> moved_counts(int dimensions) {
  const Encoding encoding = cube(dimensions);
  const UnitPoint middle(static_cast<std::size_t>(dimensions), 0.5);
  RandomStream random(kSeed, "gp_propose_test", 0);
  std::vector<int> counts(middle.size() + 1);
  for (int i = 0; i < kPoints; ++i) {
    std::size_t moved = 0;
    for (const double unit : near(middle, {0.02}, encoding, random)) moved += unit != 0.5;
    ++counts[moved];
  }
  return counts;
}

TEST_CASE("near a point all of few parameters are moved, of many about twenty") {
  CHECK(moved_counts(7)[7] == kPoints);
  const std::vector<int> counts = moved_counts(100);
  int many = 0, few = 0;
  for (int moved = 0; moved < 4; ++moved) few += counts[moved];
  for (int moved = 37; moved <= 100; ++moved) many += counts[moved];
  CHECK(few + many < 0.01 * kPoints);  // 20 and four standard deviations of 4
}

TEST_CASE("near a point a parameter of few values moves as far as noise does in the mean") {
  const Encoding encoding(SearchSpace{{"layers", randint(1, 6)}});
  RandomStream random(kSeed, "gp_propose_test", 1);
  int up = 0, down = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double unit = near({0.5}, {0.05}, encoding, random)[0];
    up += unit > 0.6;
    down += unit < 0.4;
  }
  // Of noise of .05 the mean way is .04, a fifth of a cell.
  CHECK(up + down > 0.15 * kPoints);
  CHECK(up + down < 0.25 * kPoints);
  CHECK(up > 0.06 * kPoints);
  CHECK(down > 0.06 * kPoints);
}

}  // namespace
}  // namespace tune::search::gp
