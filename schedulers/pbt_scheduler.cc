#include "schedulers/pbt_scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "core/wire.h"
#include "schedulers/option_check.h"

namespace tune {

void check_rules(const char* scheduler, const PbtRules& rules) {
  const OptionCheck check(scheduler);
  check.require(rules.perturbation_interval > 0 && std::isfinite(rules.perturbation_interval),
                "perturbation_interval", rules.perturbation_interval, "above 0");
  check.require(rules.quantile_fraction >= 0 && rules.quantile_fraction <= 0.5, "quantile_fraction",
                rules.quantile_fraction, "from 0 to 0.5");
  check.require(rules.burn_in_period >= 0 && std::isfinite(rules.burn_in_period), "burn_in_period",
                rules.burn_in_period, "0 or more");
  check.time_attr(rules.time_attr);
}

Config parameters_of(const PbtRules& rules) {
  Config parameters{{"perturbation_interval", rules.perturbation_interval},
                    {"quantile_fraction", rules.quantile_fraction},
                    {"burn_in_period", rules.burn_in_period},
                    {"require_attrs", rules.require_attrs},
                    {"synch", rules.synch},
                    {"time_attr", rules.time_attr}};
  add_objective(parameters, rules.metric, rules.mode);
  return parameters;
}

PbtScheduler::PbtScheduler(const char* name, PbtRules rules, Explore explore)
    : MetricScheduler(name, {rules.metric, rules.mode}),
      rules_(std::move(rules)),
      explore_(std::move(explore)),
      population_(rules_.quantile_fraction),
      next_sync_(std::max(rules_.perturbation_interval, rules_.burn_in_period)) {}

RandomStream Exploration::luck(const std::string& purpose, int attempt) const {
  const std::string stream =
      attempt == 0 ? purpose : fmt::format("{}, try {}", purpose, attempt + 1);
  return {seed, stream, std::uint64_t{trial.value} << 32 | iteration};
}

PbtScheduler::TrialState& PbtScheduler::state_of(TrialNumber trial) {
  TUNE_CHECK(trial.value < trials_.size());
  return trials_[trial.value];
}

void PbtScheduler::take_config(TrialNumber trial, const Packed& config) {
  if (trials_.size() <= trial.value) trials_.resize(trial.value + 1);
  trials_[trial.value].config = config;
}

Milestone PbtScheduler::add_trial(TrialNumber trial) {
  if (trials_.size() <= trial.value) trials_.resize(trial.value + 1);
  TrialState& state = trials_[trial.value];
  if (!std::exchange(state.exists, true)) {
    state.next =
        rules_.synch ? next_sync_ : std::max(rules_.perturbation_interval, rules_.burn_in_period);
  }
  if (rules_.synch) state.next = next_sync_;
  if (std::exchange(state.is_over, false) && state.judged_at > 0) {
    population_.put(trial, state.score);
  }
  return next_stop(state);
}

// ---- Results ------------------------------------------------------------------------------------

Decision PbtScheduler::result(TrialNumber trial, const ResultView& result) {
  TrialState& state = state_of(trial);
  const std::optional<double> at = result.number(rules_.time_attr);
  const bool is_asked = at && *at >= state.next;  // false for NaN
  if (rules_.require_attrs && is_asked && !result.number(objective().metric)) {
    return Decision::stop(
        fmt::format("its result at {} {:.10g} has no number '{}', and "
                    "require_attrs is set",
                    short_time_name(rules_.time_attr), *at, objective().metric));
  }
  auto judged = read(result, rules_.time_attr, state.next, std::nullopt);
  if (auto* decision = std::get_if<Decision>(&judged)) return std::move(*decision);
  const auto& [time, value, several] = std::get<Judged>(judged);
  take_score(trial, time, signed_value(value), result.iteration());
  if (rules_.synch) return wait_for_others(trial);
  state.next = time + rules_.perturbation_interval;
  if (auto as = exploit(trial)) {
    return Decision::replace(std::move(as->by), next_stop(state), std::move(as->reason));
  }
  Decision decision = Decision::go_on(next_stop(state));
  decision.save = Population::is_among(population_.highest(), trial);
  decision.yields = true;
  if (decision.save) ++asked_to_save_;
  return decision;
}

void PbtScheduler::take_score(TrialNumber trial, double time, double score,
                              std::uint64_t iteration) {
  TrialState& state = state_of(trial);
  if (state.judged_at > 0) population_.remove(trial, state.score);
  state.time = time;
  state.score = score;
  if (rules_.keeps_intervals && state.judged_at > 0) keep_interval(trial);
  state.judged_at = iteration;
  state.base_time = time;
  state.base_score = score;
  population_.put(trial, score);
}

void PbtScheduler::keep_interval(TrialNumber trial) {
  constexpr std::size_t kMost = 200;
  const TrialState& state = trials_[trial.value];
  const double gain = (state.score - state.base_score) / (state.time - state.base_time);
  if (!std::isfinite(gain)) return;
  if (intervals_.size() == kMost) intervals_.erase(intervals_.begin());
  intervals_.push_back({trial, state.time, state.base_score, gain, state.config});
}

void PbtScheduler::checkpoint_saved(TrialNumber trial, std::uint64_t iteration) {
  state_of(trial).saved_at = iteration;
}

// The best trials that have a checkpoint of the result they are judged by, or a newer one. A value
// that is not finite makes no donor, nor does one that is not better than the trial's own.
std::vector<TrialNumber> PbtScheduler::donors_for(TrialNumber trial) const {
  std::vector<TrialNumber> donors;
  const TrialState& own = trials_[trial.value];
  for (const Population::Entry& entry : population_.highest()) {
    const TrialState& state = trials_[entry.trial.value];
    const bool is_fresh = state.saved_at >= state.judged_at;
    const bool is_better = std::isfinite(entry.score) && !(own.score >= entry.score);
    if (is_fresh && is_better && entry.trial != trial) donors.push_back(entry.trial);
  }
  return donors;
}

// The state that one of the lowest goes on with; nothing for another, or while there is no donor.
std::optional<ResumedAs> PbtScheduler::exploit(TrialNumber trial) {
  if (!Population::is_among(population_.lowest(), trial)) return std::nullopt;
  const std::vector<TrialNumber> donors = donors_for(trial);
  if (donors.empty()) return std::nullopt;
  TrialState& state = state_of(trial);
  const std::uint64_t number = std::uint64_t{trial.value} << 32 | state.judged_at;
  RandomStream random(objective().seed, "pbt donor", number);
  const TrialNumber donor = donors[static_cast<std::size_t>(random.integer(0, std::ssize(donors)))];
  Explored explored = this->explored(trial, donor);
  std::string reason = reason_of(trial, donor, explored.changes);
  state.config = pack(explored.config);
  state.saved_at = 0;  // it gives its own state up
  state.base_score = trials_[donor.value].score;
  ++replaced_;
  return ResumedAs{{donor, std::move(explored.config)}, std::move(reason)};
}

Explored PbtScheduler::explored(TrialNumber trial, TrialNumber donor) const {
  const TrialState& state = trials_[trial.value];
  const Packed& packed = trials_[donor.value].config;
  const Config config = packed.bytes.empty() ? Config() : Config(unpack(packed));
  Exploration asked{trial,
                    donor,
                    state.judged_at,
                    objective().seed,
                    config,
                    state.time,
                    trials_[donor.value].score,
                    intervals_,
                    {},
                    keeps_};
  for (const TrialState& other : trials_) {
    const bool runs = other.exists && !other.is_over && &other != &state;
    if (runs && !other.config.bytes.empty()) asked.running.push_back(&other.config);
  }
  return explore_(asked);
}

// "0.31 is among the worst 2 of 8 at iteration 8: it goes on from trial 3 with 0.78; lr 0.1 * 1.2
// = 0.12".
std::string PbtScheduler::reason_of(TrialNumber trial, TrialNumber donor,
                                    const std::string& changes) const {
  const TrialState& state = trials_[trial.value];
  return fmt::format(
      "{} is among the worst {} of {} at {} {:.10g}: it goes on from trial {} with "
      "{}; {}",
      full_text(state.score), population_.lowest().size(), population_.size(),
      short_time_name(rules_.time_attr), state.time, donor.value,
      full_text(trials_[donor.value].score), changes.empty() ? "values stay" : changes);
}

// Its newest value does not count any more.
void PbtScheduler::end_trial(TrialNumber trial, TrialEnd, const Reported*) {
  TrialState& state = state_of(trial);
  if (std::exchange(state.is_over, true)) return;
  if (state.judged_at > 0) population_.remove(trial, state.score);
  state.waits = state.may_go_on = false;
  due_.erase(trial.value);
}

// ---- Who goes on --------------------------------------------------------------------------------

// The one that was judged at the earliest time, so that each gets its share of the room. When all
// wait for each other: first those that lose their own state, so that the state that they get is
// that of this moment.
std::optional<TrialNumber> PbtScheduler::choose(const Candidates& candidates) const {
  std::optional<TrialNumber> first;
  const TrialState new_one{};  // which is not added yet
  const auto state_of = [&](TrialNumber trial) -> const TrialState& {
    return trial.value < trials_.size() ? trials_[trial.value] : new_one;
  };
  const auto rank = [&](TrialNumber trial) {
    return std::pair(!due_.contains(trial.value), state_of(trial).time);
  };
  for (const Candidate& one : candidates.list()) {
    const TrialState& state = state_of(one.trial);
    // One that waits and is not paused lost its attempt before it was saved: it comes again.
    if (one.paused && state.waits && !state.may_go_on) continue;
    if (!first || rank(one.trial) < rank(*first)) first = one.trial;
  }
  if (first || !all_have_come(candidates)) return first;
  return candidates.front().trial;
}

// A trial is on its way while it lives and does not wait.
std::size_t PbtScheduler::still_on_their_way() const {
  return static_cast<std::size_t>(std::ranges::count_if(trials_, [](const TrialState& state) {
    return state.exists && !state.is_over && !state.waits;
  }));
}

// Whether all wait, and each is saved: one that still saves is not a candidate.
bool PbtScheduler::all_have_come(const Candidates& candidates) const {
  for (std::uint32_t number = 0; number < trials_.size(); ++number) {
    const TrialState& state = trials_[number];
    if (!state.exists || state.is_over) continue;
    if (!state.waits || !candidates.contains(TrialNumber{number})) return false;
  }
  return true;
}

Decision PbtScheduler::wait_for_others(TrialNumber trial) {
  TrialState& state = state_of(trial);
  state.waits = true;
  ++asked_to_save_;
  const std::size_t left = still_on_their_way();
  return Decision::pause(fmt::format("{} waits at {} {:.10g}: {} more trial{} to come",
                                     full_text(state.score), short_time_name(rules_.time_attr),
                                     state.time, left, left == 1 ? " is" : "s are"));
}

void PbtScheduler::let_all_go_on() {
  double latest = 0;
  for (std::uint32_t number = 0; number < trials_.size(); ++number) {
    if (!trials_[number].waits) continue;
    latest = std::max(latest, trials_[number].time);
    trials_[number].may_go_on = true;
    if (auto as = exploit(TrialNumber{number})) {
      due_[number] = {as->by.donor, pack(as->by.config), std::move(as->reason)};
    }
  }
  next_sync_ = std::max(next_sync_ + rules_.perturbation_interval, latest);
}

Milestone PbtScheduler::resume_trial(TrialNumber trial) {
  TrialState& state = state_of(trial);
  if (state.waits && !state.may_go_on && still_on_their_way() == 0) let_all_go_on();
  state.waits = state.may_go_on = false;
  if (rules_.synch) state.next = next_sync_;
  return next_stop(state);
}

std::optional<ResumedAs> PbtScheduler::resumed_as(TrialNumber trial) {
  const auto due = due_.find(trial.value);
  if (due == due_.end()) return std::nullopt;
  ResumedAs as{{due->second.donor, Config(unpack(due->second.config))}, due->second.reason};
  due_.erase(due);
  return as;
}

// Ray Tune's own words.
std::vector<std::string> PbtScheduler::status_lines() const {
  return {fmt::format("PopulationBasedTraining: {} checkpoints, {} perturbs", asked_to_save_,
                      replaced_)};
}

// ---- State --------------------------------------------------------------------------------------

std::string PbtScheduler::save() const {
  PackWriter out;
  encode(out, std::string("pbt"));
  encode(out, rules_.synch);
  encode(out, next_sync_);
  encode(out, asked_to_save_);
  encode(out, replaced_);
  encode(out, trials_);
  encode(out, intervals_);
  out.array(due_.size());
  for (const auto& [trial, due] : due_) {
    encode(out, trial);
    encode(out, due);
  }
  save_objective(out);
  return out.take();
}

void PbtScheduler::restore(std::string_view bytes) {
  PackReader in(bytes);  // may be larger than a frame
  std::string name;
  bool synch = false;
  PbtScheduler made(*this);
  made.due_.clear();
  made.population_.clear();
  decode(in, name);
  decode(in, synch);
  decode(in, made.next_sync_);
  decode(in, made.asked_to_save_);
  decode(in, made.replaced_);
  decode(in, made.trials_);
  decode(in, made.intervals_);
  for (std::size_t left = in.array(); left > 0; --left) {
    std::uint32_t trial = 0;
    decode(in, trial);
    decode(in, made.due_[trial]);
  }
  check_objective(in);
  in.expect_end();
  if (name != "pbt") refuse_state("it was saved by another scheduler");
  if (synch != rules_.synch) refuse_state("it was saved with another value of synch");
  for (const auto& [trial, due] : made.due_) {
    const std::size_t count = made.trials_.size();
    if (trial >= count || due.donor.value >= count) refuse_state("it names a trial that is not");
  }
  for (std::uint32_t number = 0; number < made.trials_.size(); ++number) {
    const TrialState& state = made.trials_[number];
    if (!state.exists || state.is_over || state.judged_at == 0) continue;
    made.population_.put(TrialNumber{number}, state.score);
  }
  *this = std::move(made);
}

}  // namespace tune
