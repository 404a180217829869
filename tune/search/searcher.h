// Searcher: proposes configurations. Pure: no clock, file or thread; the same calls give the same
// proposals. Derive a custom one from it: configure, total, suggest, save and restore are enough.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/contract_values.h"
#include "core/ids.h"
#include "core/value.h"
#include "schedulers/trial_scheduler.h"
#include "tune/search/earlier_trial.h"
#include "tune/search/search_space.h"

namespace tune {

struct Proposal;  // tune/search/proposal.h

struct SearcherSetup {
  SearchSpace space;
  std::int64_t num_samples = 1;  // -1: no end
  std::vector<Config> points_to_evaluate = {};
  Objective objective = {};  // its seed is the experiment's
  // Comparisons that every configuration keeps (tune/search/where.h), checked already: "x < y".
  std::vector<std::string> where = {};
  // Trials of earlier experiments, for searchers that learn. They are not trials of this one.
  std::vector<EarlierTrial> earlier = {};
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  // Once, before anything else. Throws Error (kBadInput) for a space it cannot search.
  virtual void configure(const SearcherSetup& setup) = 0;
  // Whether it heeds an objective's goals and constraints, or needs none; else a sweep that has
  // them is refused.
  virtual bool takes_several_objectives() const { return false; }
  // A resumed experiment may ask for more samples than it began with; suggestions go on from there.
  virtual void set_num_samples(std::int64_t /*num_samples*/) {}
  // The number of trials there will be; nothing: no end, or not known.
  virtual std::optional<std::uint64_t> total() const = 0;
  // The configuration of this trial; asked for 0, 1, 2 ... in order, each when there is room for
  // its trial. Nothing: there are no more.
  virtual std::optional<Config> suggest(TrialNumber trial) = 0;
  virtual void result(TrialNumber /*trial*/, const ResultView& /*result*/) {}
  // The scheduler keeps the trial back; it goes on after that, or again after its end.
  virtual void pause_trial(TrialNumber /*trial*/) {}
  virtual void resume_trial(TrialNumber /*trial*/) {}
  // `last` is null when the trial never reported. A trial that ended as kError, or that was
  // stopped, may be tried again; then it ends again: the newest end counts.
  virtual void end_trial(TrialNumber /*trial*/, TrialEnd /*end*/, const Reported* /*last*/) {}
  // A trial with a configuration that a user has added, and no number here, is over with this
  // result, of which `trial` is its number in the sweep. It may end again, like others. Until it is
  // over it is not known here.
  virtual void end_added(const Config& /*config*/, TrialEnd /*end*/, const Reported& /*last*/) {}
  virtual std::string save() const = 0;              // MessagePack
  virtual void restore(std::string_view state) = 0;  // Error (kProtocol) when it is not its own

  // ---- For searchers whose proposals take time (a model is fitted, say); others leave it alone.
  // The driver's loop does not wait for them. It puts a question when there is room for new trials;
  // the answer is made beside the loop, while the searcher is told more, and comes back by the
  // journal: a resumed sweep reads it there. suggest() then only hands out what is ready.

  // The number of suggestions that are ready, in answers or from the start; suggest() is not called
  // for more of them, but after the last trial of all. Nothing: suggest() makes each when it is
  // asked.
  virtual std::optional<std::size_t> ready() const { return std::nullopt; }
  // Makes the answer with `count` further suggestions of what is known now. It is called at most
  // once, in another thread: it holds copies. It throws when it cannot be made, which ends the
  // sweep with that reason. At most kMaxAnswerBytes.
  using Question = std::function<std::string()>;
  virtual Question question(std::size_t /*count*/) const { return {}; }
  // Takes such an answer in. One without suggestions means that there are no more. Error
  // (kProtocol) when it is not its own.
  virtual void answer(std::string_view /*answer*/) {}
  // The configurations in an answer, for readers who compare answers; none: it does not tell.
  virtual std::vector<Config> configurations(std::string_view /*answer*/) const { return {}; }
  // The origin of the newest suggestion, up to the next call; null: there is nothing to tell.
  virtual const Proposal* newest_proposal() const { return nullptr; }
};

inline constexpr std::size_t kMaxAnswerBytes = 4u << 20;

// Suggests as a driver does whose loop may wait: puts a question when nothing is ready.
std::optional<Config> suggest_now(Searcher& searcher, TrialNumber trial);

// A searcher as a value, as SchedulerSpec is for schedulers.
class SearcherSpec {
 public:
  using Make = std::function<std::unique_ptr<Searcher>()>;
  SearcherSpec();  // automatic()
  SearcherSpec(std::string name, Config parameters, Make make)
      : name_(std::move(name)), parameters_(std::move(parameters)), make_(std::move(make)) {}
  const std::string& name() const { return name_; }
  const Config& parameters() const { return parameters_; }
  std::unique_ptr<Searcher> make() const { return make_(); }

 private:
  std::string name_;
  Config parameters_;
  Make make_;
};

// `auto` in a sweep, and the default: what fits the sweep, told in one line when it begins. Random
// search when there is no metric, a grid_search, hardly anything to learn from or a space that the
// others cannot search; else gp, or tpe where gp would take too long.
// tune/search/automatic.h has the rules.
SearcherSpec automatic();

struct BasicVariantOptions {
  bool constant_grid_search = false;  // draw random values once a sample, not for every grid cell
};
// Grid and random search mixed: the same list of configurations whatever the order of events.
SearcherSpec basic_variant(BasicVariantOptions options = {});
// The same lists as basic_variant's, by names that say what is meant: `random` refuses a space with
// a grid_search, `grid` one without.
SearcherSpec random_search();
SearcherSpec every_cell(BasicVariantOptions options = {});

struct GpOptions {
  int start_up = 5;           // results before there is a model; at least 2
  double random_share = 0.1;  // of the proposals after that, from 0 to 1: drawn as the space draws
};
// Bayesian optimisation by a Gaussian process: learns from each trial's last value, also of those
// that a scheduler stops or pauses. For spaces without grids, and with a metric. tune/search/gp has
// the method: the expected improvement of Jones, Schonlau and Welch ("Efficient Global Optimization
// of Expensive Black-Box Functions", 1998). Ours models ranks within rungs in place of values.
// Several objectives are scalarised by random weights (Knowles, "ParEGO", 2006), and constraints
// kept by their probability (Gardner et al., "Bayesian Optimization with Inequality Constraints",
// ICML 2014); ours has a process for each metric.
SearcherSpec gp(GpOptions options = {});

struct TpeOptions {
  int start_up = 10;              // as gp's
  double random_share = 1.0 / 3;  // as gp's, once a scheduler has stopped or paused a trial
};
// The tree-structured Parzen estimator (Bergstra et al., "Algorithms for Hyper-Parameter
// Optimization", NIPS 2011), with the rules of Optuna 5: learns as gp does, and takes less time for
// a proposal. Ours draws a choice first, and then what depends on it; tune/search/tpe has the rest.
// Under a scheduler that stops trials it learns from the highest rung with enough of them, and
// draws a share at random, as BOHB does (Falkner, Klein and Hutter, ICML 2018).
SearcherSpec tpe(TpeOptions options = {});

struct CmaEsOptions {
  int population = 0;  // trials of a generation; 0: 4 + floor(3 ln d) for d parameters
};
// CMA-ES with categories and margin (Hamano et al., "CatCMA with Margin", GECCO 2025): for hundreds
// of trials, of spaces without conditions. Ours waits for no trial of a generation, and learns from
// ranks; tune/search/cma_es has the method.
SearcherSpec cma_es(CmaEsOptions options = {});

// Halton's sequence ("On the efficiency of certain quasi-random sequences of points", 1960):
// configurations more even than random ones, the same list whatever the order of events. Digits
// are permuted (Owen, "A randomized Halton algorithm in R", 2017); ours keeps `where`. Needs no
// metric. For spaces without grids.
SearcherSpec halton();

struct Nsga2Options {
  int population = 50;     // the best trials, of which parents are drawn; at least 4
  double crossover = 0.9;  // the chance that parents are crossed, from 0 to 1
};
// NSGA-II, a genetic algorithm (Deb et al., IEEE Transactions on Evolutionary Computation 6, 2002):
// for several objectives and hundreds of trials. Ours has no generations, so that no trial is
// waited for; tune/search/nsga2 has the method.
SearcherSpec nsga2(Nsga2Options options = {});

template <class T, class... Args>
SearcherSpec searcher(Args... args) {
  return SearcherSpec("", {}, [args...] { return std::make_unique<T>(args...); });
}

// As in a sweep: throws Error (kBadInput), naming what is known, for an unknown name or parameter.
SearcherSpec searcher_from_config(const std::string& name, const Config& parameters);

}  // namespace tune
