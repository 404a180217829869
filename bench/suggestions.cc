// The time that a model-based searcher takes for a suggestion, by how many trials there are.
#include <Eigen/Cholesky>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/random.h"
#include "tune/search/cma_es/propose.h"
#include "tune/search/gp/propose.h"
#include "tune/search/halton.h"
#include "tune/search/tpe/propose.h"

namespace tune::bench {
namespace {

constexpr const char* kHelp =
    "CPU time of a suggestion in 20 dimensions with 250 and 5,000 trials: choosing what the model "
    "is\n"
    "made of, the model, and the search of its acquisition.\n"
    "gp: also with a model that is fitted anew, and in a batch of 64. Bare limit: one Cholesky\n"
    "factorisation of 250 observations, and one triangular solve for as many candidates.\n"
    "tpe, cma_es, halton: in a cube; tpe also where a quarter each are numbers, logarithms, whole\n"
    "numbers and choices, where all are whole numbers, and in a cube where all but each fiftieth\n"
    "trial lie around one point. Bare limit: the distances of 24 points from all trials.\n\n"
    "bench_suggestions [--tiny] [--runs N]";

constexpr int kDimensions = 20;
constexpr int kObservations = 250;
constexpr int kCandidates = 3040;

Encoding cube() {
  SearchSpace space;
  for (int i = 0; i < kDimensions; ++i) space.set(fmt::format("x{}", i), uniform(0, 1));
  return Encoding(space);
}

// Trials of a smooth function, with noise. All but each fiftieth are drawn so far to either side of
// the middle, at most .5.
History lived(const Encoding& encoding, std::uint32_t trials, double spread = 0.5) {
  RandomStream random(1, "suggestions", trials);
  History history;
  for (std::uint32_t i = 0; i < trials; ++i) {
    UnitPoint point = encoding.draw(random);
    if (spread < 0.5 && i % 50 != 0) {
      for (double& unit : point) unit = 0.5 + 2 * spread * (unit - 0.5);
      point = encoding.settled(std::move(point), random);
    }
    double value = 0.05 * random.normal();
    for (int d = 0; d < kDimensions; ++d) {
      value -= std::pow(point[static_cast<std::size_t>(d)] - 0.3, 2) / (1 + d);
    }
    history.add({i}, std::move(point));
    history.result({i}, 1, value);
    history.end({i}, TrialEnd::kCompleted);
  }
  return history;
}

constexpr search::gp::Options kOptions = {.start_up = 5, .random_share = 0};

search::gp::Answer ask(const History& history, const Encoding& encoding, const search::gp::Fit& fit,
                       std::size_t count) {
  RandomStream random(1, "suggestions", 0);
  search::gp::Answer answer = search::gp::propose({search::gp::training_set(history), fit, count},
                                                  encoding, kOptions, random);
  for (const Proposal& proposal : answer.proposals) {
    if (proposal.origin == ProposalOrigin::kModel) continue;
    throw Error(ErrorCode::kBadInput, "not proposed by the model: " + proposal.note);
  }
  return answer;
}

double cpu_time_of(const std::function<void()>& call) {
  const double start = cpu_time();
  call();
  return cpu_time() - start;
}

double bare_solves(int observations) {
  const Eigen::MatrixXd points = Eigen::MatrixXd::Random(kDimensions, observations);
  Eigen::MatrixXd covariance = points.transpose() * points;
  covariance.diagonal().array() += 1;
  Eigen::MatrixXd rows = Eigen::MatrixXd::Random(observations, kCandidates);
  double sum = 0;
  const double seconds = cpu_time_of([&] {
    const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
    factor.matrixL().solveInPlace(rows);
    sum = rows.sum();
  });
  if (!std::isfinite(sum)) throw Error(ErrorCode::kBadInput, "nothing was measured");
  return seconds;
}

// ---- tpe, cma_es, halton ------------------------------------------------------------------------

Encoding mixed() {
  SearchSpace space;
  for (int i = 0; i < kDimensions; i += 4) {
    space.set(fmt::format("number{}", i), uniform(0, 1));
    space.set(fmt::format("logarithm{}", i), loguniform(1e-4, 1));
    space.set(fmt::format("whole{}", i), randint(1, 33));
    space.set(fmt::format("choice{}", i), choice({"a", "b", "c", "d"}));
  }
  return Encoding(space);
}

Encoding whole_numbers() {
  SearchSpace space;
  for (int i = 0; i < kDimensions; ++i) space.set(fmt::format("whole{}", i), randint(1, 33));
  return Encoding(space);
}

double ask_proposer(const Proposer& proposer, const ProposerQuestion& question,
                    const Encoding& encoding) {
  RandomStream random(1, "suggestions", 0);
  return cpu_time_of([&] {
    if (proposer.propose(question, encoding, random).proposals.empty()) {
      throw Error(ErrorCode::kBadInput, "nothing was proposed");
    }
  });
}

double bare_distances(std::uint32_t trials) {
  constexpr int kPoints = 24;
  const Eigen::MatrixXf places = Eigen::MatrixXf::Random(trials, kDimensions);
  const Eigen::MatrixXf points = Eigen::MatrixXf::Random(kDimensions, kPoints);
  float sum = 0;
  const double seconds = cpu_time_of([&] {
    Eigen::ArrayXf squares(trials);
    for (int i = 0; i < kPoints; ++i) {
      squares.setZero();
      for (int d = 0; d < kDimensions; ++d)
        squares += (places.col(d).array() - points(d, i)).square();
      sum += squares.minCoeff();
    }
  });
  if (!std::isfinite(sum)) throw Error(ErrorCode::kBadInput, "nothing was measured");
  return seconds;
}

void measure_others(const Setting& setting, const std::vector<std::uint32_t>& sizes) {
  const search::tpe::TpeProposer tpe({.start_up = 10, .random_share = 0});
  const search::cma_es::CmaEsProposer cma_es;
  const search::HaltonProposer halton;
  const std::string bare = "distances alone";
  Table table("a suggestion of the others, CPU time");
  for (const std::uint32_t trials : sizes) {
    const Encoding numbers = cube();
    const Encoding kinds = mixed();
    const Encoding whole = whole_numbers();
    const ProposerQuestion in_cube = {.known = lived(numbers, trials), .proposed = trials};
    const ProposerQuestion in_mixed = {.known = lived(kinds, trials), .proposed = trials};
    const ProposerQuestion in_whole = {.known = lived(whole, trials), .proposed = trials};
    const ProposerQuestion near = {.known = lived(numbers, trials, 0.05), .proposed = trials};
    RandomStream random(1, "suggestions", 1);
    ProposerQuestion of_cma_es = in_cube;
    of_cma_es.state = cma_es.propose(in_cube, numbers, random).state;
    const std::vector<double> seconds =
        medians(setting.runs, {[&] { return ask_proposer(tpe, in_cube, numbers); },
                               [&] { return ask_proposer(tpe, in_mixed, kinds); },
                               [&] { return ask_proposer(tpe, in_whole, whole); },
                               [&] { return ask_proposer(tpe, near, numbers); },
                               [&] { return ask_proposer(cma_es, of_cma_es, numbers); },
                               [&] { return ask_proposer(halton, in_cube, numbers); },
                               [&] { return bare_distances(trials); }});
    const std::vector<std::string> rows = {"tpe, {} trials",
                                           "tpe, {} trials, mixed",
                                           "tpe, {} trials, whole numbers",
                                           "tpe, {} trials, around one point",
                                           "cma_es, {} trials",
                                           "halton, {} trials"};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      table.seconds(fmt::format(fmt::runtime(rows[i]), trials), seconds[i], bare, seconds.back());
    }
  }
}

void measure_gp(const Setting& setting, const std::vector<std::uint32_t>& sizes) {
  const Encoding encoding = cube();
  const std::size_t batch = setting.tiny ? 2 : 64;
  const std::string bare = "factor and solves alone";
  Table table("a suggestion of gp, CPU time");
  for (const std::uint32_t trials : sizes) {
    const History history = lived(encoding, trials);
    const search::gp::Fit fit = ask(history, encoding, {}, 1).fit;
    search::gp::Fit old = fit;
    old.results = 1;  // so that the next one is due
    const std::vector<double> seconds =
        medians(setting.runs, {[&] { return cpu_time_of([&] { ask(history, encoding, fit, 1); }); },
                               [&] { return cpu_time_of([&] { ask(history, encoding, old, 1); }); },
                               [&] {
                                 return cpu_time_of([&] { ask(history, encoding, fit, batch); }) /
                                        static_cast<double>(batch);
                               },
                               [&] { return bare_solves(setting.tiny ? 20 : kObservations); }});
    table.seconds(fmt::format("{} trials", trials), seconds[0], bare, seconds[3]);
    table.seconds(fmt::format("{} trials, fitted anew", trials), seconds[1], bare, seconds[3]);
    table.seconds(fmt::format("{} trials, each of {} at once", trials, batch), seconds[2], bare,
                  seconds[3]);
  }
}

void measure(const Setting& setting) {
  const std::vector<std::uint32_t> sizes =
      setting.tiny ? std::vector<std::uint32_t>{20} : std::vector<std::uint32_t>{250, 5000};
  measure_gp(setting, sizes);
  measure_others(setting, sizes);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 5);
  return guarded([&] { measure(setting); });
}
