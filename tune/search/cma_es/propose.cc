#include "tune/search/cma_es/propose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/wire.h"
#include "tune/search/cma_es/update.h"
#include "tune/search/cma_es/warm_start.h"
#include "tune/search/tried_points.h"

namespace tune::search::cma_es {

namespace {

constexpr double kConverged = 1e-4;
constexpr int kMostRepeats = 100;  // of tried configurations, before it begins anew
constexpr std::uint64_t kMostPopulation = 4096;
constexpr std::size_t kMostOpen = 65536;  // proposals that never became trials are let go

bool is_better(const Result& a, const Result& b) {
  if (a.completed != b.completed) return a.completed;
  if (!a.completed && a.iteration != b.iteration) return a.iteration > b.iteration;
  return a.value > b.value;
}

bool fits(const Drawn& drawn, const Variables& variables) {
  const auto sizes = variables.category_sizes();
  bool all = drawn.numbers.size() == variables.numbers() && drawn.categories.size() == sizes.size();
  for (std::size_t i = 0; all && i < sizes.size(); ++i) all = drawn.categories[i] < sizes[i];
  return all && std::all_of(drawn.numbers.begin(), drawn.numbers.end(),
                            [](double number) { return std::isfinite(number); });
}

// Whether it is a state of this search.
bool fits(const State& state, const Variables& variables) {
  return fits(state.distribution, variables) && state.distribution.population <= kMostPopulation &&
         state.results.size() < state.distribution.population &&
         std::all_of(state.open.begin(), state.open.end(),
                     [&](const Sample& each) { return fits(each.drawn, variables); }) &&
         std::all_of(state.results.begin(), state.results.end(),
                     [&](const Result& each) { return fits(each.sample.drawn, variables); });
}

// Ranks, the best first; equal results share theirs. All alike: empty.
std::vector<Judged> judged(const std::vector<Result>& results) {
  std::vector<Judged> found;
  for (const Result& each : results) {
    double rank = 0;
    for (const Result& other : results) {
      rank += is_better(other, each) ? 1 : is_better(each, other) ? 0 : 0.5;
    }
    found.push_back({each.sample.drawn, rank});
  }
  const auto same = [&](const Judged& each) { return each.loss == found.front().loss; };
  if (std::all_of(found.begin(), found.end(), same)) return {};
  return found;
}

// The value of a trial's sample, by its end or pause; nothing while it runs or when it ended
// without having said anything.
std::optional<Result> result_of(const KnownTrial& trial) {
  if (trial.standing == Standing::kRunning) return std::nullopt;
  Result result;
  result.completed = trial.standing == Standing::kCompleted;
  if (trial.newest) {
    result.iteration = trial.newest->iteration;
    result.value = trial.newest->value;
    return result;
  }
  if (trial.standing != Standing::kFailed) return std::nullopt;
  result.value = -std::numeric_limits<double>::infinity();
  return result;
}

// One batch of proposals.
class Batch {
 public:
  Batch(const History& known, const State* state, const Encoding& encoding, const Options& options)
      : known_(known),
        encoding_(encoding),
        variables_(encoding),
        fingerprints_(known.fingerprints().begin(), known.fingerprints().end()),
        tried_(fingerprints_) {
    const std::uint64_t first =
        options.population == 0 ? default_population(variables_)
                                : std::clamp<std::uint64_t>(options.population, 2, kMostPopulation);
    if (state != nullptr && fits(*state, variables_)) {
      state_ = *state;
    } else {
      state_.distribution = first_distribution(variables_, first);
      begin_around_earlier();
    }
  }

  Answer proposals(std::size_t count, RandomStream& random) && {
    take_results(random);
    Answer answer;
    for (std::size_t i = 0; i < count; ++i) {
      Proposal proposal = next(random);
      proposal.results_known = ended_;
      proposal.pending_known = running_ + static_cast<std::uint32_t>(i);
      tried_.add(proposal.point);
      answer.proposals.push_back(std::move(proposal));
    }
    answer.state = std::move(state_);
    return answer;
  }

 private:
  // Where the best results of earlier experiments are, if there are any.
  void begin_around_earlier() {
    std::vector<Result> results;
    for (const KnownTrial& trial : known_.trials()) {
      std::optional<Result> result = trial.number ? std::nullopt : result_of(trial);
      if (!result) continue;
      result->sample.drawn = variables_.drawn(trial.point);
      results.push_back(std::move(*result));
    }
    std::stable_sort(results.begin(), results.end(), is_better);
    results.resize(best_of_earlier(results.size()));
    if (results.empty()) return;
    std::vector<Drawn> best;
    for (Result& one : results) best.push_back(std::move(one.sample.drawn));
    state_.distribution = begun_around(best, std::move(state_.distribution));
  }

  void take_results(RandomStream& random) {
    std::unordered_map<std::uint64_t, std::size_t> trials;  // by fingerprint; only looked into
    for (std::size_t i = 0; i < known_.trials().size(); ++i) {
      const bool runs = known_.trials()[i].standing == Standing::kRunning;
      ++(runs ? running_ : ended_);
      trials.emplace(fingerprints_[i], i);
    }
    std::vector<Sample> open = std::exchange(state_.open, {});
    for (Sample& sample : open) {
      const auto found = trials.find(sample.fingerprint);
      const KnownTrial* trial = found == trials.end() ? nullptr : &known_.trials()[found->second];
      if (trial == nullptr || trial->standing == Standing::kRunning) {
        state_.open.push_back(std::move(sample));
      } else if (std::optional<Result> result = result_of(*trial)) {
        result->sample = std::move(sample);
        add_result(std::move(*result), random);
      }
    }
    if (state_.open.size() > kMostOpen) {
      state_.open.erase(state_.open.begin(), state_.open.end() - kMostOpen);
    }
  }

  void add_result(Result result, RandomStream& random) {
    if (result.sample.generation != state_.distribution.generation) {
      pull_in(result.sample.drawn, state_.distribution);
    }
    state_.results.push_back(std::move(result));
    if (state_.results.size() < state_.distribution.population) return;
    const std::vector<Judged> generation = judged(state_.results);
    state_.results.clear();
    state_.note = generation.empty() ? "all results of the last generation are alike" : "";
    if (generation.empty()) return;
    if (!update(state_.distribution, variables_, generation)) {
      begin_anew("numbers failed in the last generation", random);
    } else if (has_converged()) {
      begin_anew({}, random);
    }
    sampler_.reset();
  }

  bool has_converged() const {
    return variables_.continuous() > 0 &&
           largest_deviation(state_.distribution, variables_) < kConverged;
  }

  // Samples of the run before say nothing of this one.
  void begin_anew(std::string note, RandomStream& random) {
    const std::uint64_t population = std::min(2 * state_.distribution.population, kMostPopulation);
    state_.distribution = first_distribution(variables_, population);
    for (double& mean : state_.distribution.mean) mean = random.uniform();
    state_.open.clear();
    state_.results.clear();
    ++state_.restarts;
    state_.note = std::move(note);
    sampler_.reset();
  }

  Proposal next(RandomStream& random) {
    if (variables_.size() == 0) return drawn("there are no parameters", random);
    for (int repeats = 0; repeats < 2 * kMostRepeats; ++repeats) {
      if (repeats == kMostRepeats) begin_anew({}, random);
      if (!sampler_) sampler_.emplace(state_.distribution);
      Sample sample = {0, state_.distribution.generation, sampler_->draw(random)};
      UnitPoint point = variables_.point(sample.drawn);
      if (!encoding_.holds(point)) continue;
      sample.fingerprint = fingerprint(point);
      if (!tried_.contains(point)) {
        state_.open.push_back(std::move(sample));
        return proposed(std::move(point));
      }
      add_known(std::move(sample), random);
    }
    return drawn("only configurations were drawn that had been tried, or did not hold", random);
  }

  // A configuration that has a result already gives it at once.
  void add_known(Sample sample, RandomStream& random) {
    const auto at = std::find(fingerprints_.begin(), fingerprints_.end(), sample.fingerprint);
    if (at == fingerprints_.end()) return;
    const auto trial = static_cast<std::size_t>(at - fingerprints_.begin());
    std::optional<Result> result = result_of(known_.trials()[trial]);
    if (!result) return;
    result->sample = std::move(sample);
    add_result(std::move(*result), random);
  }

  Proposal proposed(UnitPoint point) const {
    Proposal proposal;
    proposal.point = std::move(point);
    const bool is_first = state_.distribution.generation == 0 && state_.note.empty();
    proposal.origin = is_first ? ProposalOrigin::kStartUp : ProposalOrigin::kModel;
    proposal.note = state_.note;
    return proposal;
  }

  Proposal drawn(const std::string& note, RandomStream& random) const {
    DrawnPoint found = draw_untried(encoding_, tried_, random);
    Proposal proposal;
    proposal.point = std::move(found.point);
    proposal.origin = ProposalOrigin::kFallback;
    proposal.note = found.note.empty() ? note : note + "; " + found.note;
    return proposal;
  }

  const History& known_;
  const Encoding& encoding_;
  const Variables variables_;
  std::vector<std::uint64_t> fingerprints_;
  TriedPoints tried_;
  State state_;
  std::optional<Sampler> sampler_;  // of the distribution as it is
  std::uint32_t ended_ = 0;
  std::uint32_t running_ = 0;
};

// Nothing when it is not one of ours.
std::optional<State> state_from(const std::string& bytes) {
  if (bytes.empty()) return std::nullopt;
  try {
    PackReader in(bytes);
    State state;
    decode(in, state);
    in.expect_end();
    return state;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Answer propose(const History& known, std::size_t count, const State* state,
               const Encoding& encoding, const Options& options, RandomStream& random) {
  return Batch(known, state, encoding, options).proposals(count, random);
}

void CmaEsProposer::check(const Encoding& encoding) const {
  Variables variables(encoding);
}

ProposerAnswer CmaEsProposer::propose(const ProposerQuestion& question, const Encoding& encoding,
                                      RandomStream& random) const {
  const std::optional<State> state = state_from(question.state);
  Answer answer = cma_es::propose(question.known, question.count, state ? &*state : nullptr,
                                  encoding, options_, random);
  return {std::move(answer.proposals), encoded(answer.state)};
}

}  // namespace tune::search::cma_es
