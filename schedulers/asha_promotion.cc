#include "schedulers/asha_promotion.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/wire.h"
#include "schedulers/silent_rung.h"

namespace tune {

namespace {

using PromotionBrackets = std::vector<std::vector<PromotionRung>>;

PromotionBrackets fresh_rungs(const AshaOptions& options) {
  const CutOffPosition position(AshaRule::kTop, options.reduction_factor);
  const auto min_size = static_cast<std::size_t>(options.min_rung_size);
  PromotionBrackets brackets;
  for (int s = 0; s < options.brackets; ++s) {
    std::vector<PromotionRung>& rungs = brackets.emplace_back();
    for (double milestone : rung_milestones(options, s)) {
      rungs.emplace_back(milestone, position, min_size);
    }
  }
  return brackets;
}

// How many of the lower rungs are open when the top one has `at_top` values.
std::size_t open_rungs_of(const AshaOptions& options, std::size_t rungs, std::size_t at_top) {
  if (options.open_after == 0) return 0;
  std::size_t count = 0;
  double needed = options.open_after;
  for (; count + 1 < rungs && static_cast<double>(at_top) >= needed; ++count) {
    needed *= options.reduction_factor;
  }
  return count;
}

}  // namespace

AshaPromotion::AshaPromotion(AshaOptions options)
    : MetricScheduler("asha", {options.metric, options.mode}),
      options_(std::move(options)),
      draw_(options_),
      brackets_(fresh_rungs(options_)),
      silent_(brackets_.size()) {}

std::optional<double> AshaPromotion::max_t() const {
  if (!options_.stop_last_trials || options_.time_attr != "training_iteration") return std::nullopt;
  return options_.max_t;
}

AshaPromotion::TrialState& AshaPromotion::state_of(TrialNumber trial) {
  TUNE_CHECK(trial.value < trials_.size());
  return trials_[trial.value];
}

// One that failed while it waited waits at the same rung again, and pauses at its next report.
Milestone AshaPromotion::add_trial(TrialNumber trial) {
  if (trials_.size() <= trial.value) trials_.resize(trial.value + 1);
  TrialState& state = trials_[trial.value];
  state.bracket = draw_.draw(objective().seed, trial);
  state.is_over = false;
  if (state.waits) {
    const std::uint32_t rung = state.recorded - 1;
    ++waiting_;
    brackets_[state.bracket][rung].wait_again(state.entry);
    note(state.bracket, rung);
  } else {
    pass_open_rungs(state);
  }
  return until(options_.time_attr, next_stop(state));
}

// While it was not promoted, at the rung where it waits.
std::optional<double> AshaPromotion::next_stop(const TrialState& state) const {
  const std::uint32_t next = state.waits ? state.recorded - 1 : state.recorded;
  return next_judged(options_, brackets_[state.bracket], next);
}

// Before the trial is told how far to run: what it was told holds even if the rung opens meanwhile.
void AshaPromotion::pass_open_rungs(TrialState& state) {
  const std::vector<PromotionRung>& rungs = brackets_[state.bracket];
  while (state.recorded < rungs.size() && rungs[state.recorded].is_open()) ++state.recorded;
}

std::uint32_t AshaPromotion::reached(const TrialState& state, double time) const {
  return rungs_reached(brackets_[state.bracket], state.recorded, time);
}

Decision AshaPromotion::result(TrialNumber trial, const ResultView& result) {
  TrialState& state = state_of(trial);
  auto judged = read(result, options_.time_attr, next_stop(state),
                     options_.stop_last_trials ? std::optional(options_.max_t) : std::nullopt);
  if (auto* decision = std::get_if<Decision>(&judged)) {
    if (decision->kind == Decision::Kind::kStop) ++stopped_;
    return std::move(*decision);
  }
  const auto& [time, value, numbers] = std::get<Judged>(judged);
  const std::uint32_t upto = reached(state, time);
  const bool is_nan = has_merits() ? !std::isfinite(merit(numbers).violation) : std::isnan(value);
  if (upto > state.recorded && has_merits()) record(trial, upto, merit(numbers), !is_nan);
  if (upto > state.recorded && !has_merits()) record(trial, upto, signed_value(value), !is_nan);
  Decision decision = is_nan ? stop(fmt::format("nan is worse than any value at {} {:.10g}",
                                                short_time_name(options_.time_attr), time))
                             : Decision::pause(pause_reason(state));
  decision.place = place(state, value);
  if (brackets_.size() > 1) decision.place->bracket = state.bracket;
  return decision;
}

// At the highest rung that it has reached.
RungPlace AshaPromotion::place(const TrialState& state, double value) const {
  const PromotionRung& rung = brackets_[state.bracket][state.recorded - 1];
  if (has_merits()) return front_place(rung.fronts(), state.entry.arrival, rung.milestone());
  std::optional<double> cut_off = rung.cut_off();
  if (cut_off) cut_off = signed_value(*cut_off);
  return {rung.milestone(), value, cut_off, rung.rank(signed_value(value)), rung.size()};
}

Decision AshaPromotion::stop(std::string reason) {
  ++stopped_;
  return Decision::stop(std::move(reason));
}

// Fills the rungs below `upto` that lack the trial. It has passed all of them but the highest.
template <class Worth>
void AshaPromotion::record(TrialNumber trial, std::uint32_t upto, const Worth& worth, bool waits) {
  TrialState& state = state_of(trial);
  take_from_rung(state);
  for (; state.recorded < upto; ++state.recorded) {
    const bool waits_here = waits && state.recorded + 1 == upto;
    state.entry = brackets_[state.bracket][state.recorded].add(worth, trial, waits_here);
    note(state.bracket, state.recorded);
  }
  state.waits = waits;
  if (waits) ++waiting_;
  open_rungs(state.bracket, upto);
}

void AshaPromotion::take_from_rung(TrialState& state) {
  if (!std::exchange(state.waits, false) || state.is_over) return;
  --waiting_;
  brackets_[state.bracket][state.recorded - 1].leave(state.entry);
  note(state.bracket, state.recorded - 1);
}

// To be called after a value has come to the last of so many rungs.
void AshaPromotion::open_rungs(std::uint32_t bracket, std::uint32_t reached) {
  if (options_.open_after == 0) return;
  std::vector<PromotionRung>& rungs = brackets_[bracket];
  std::size_t count = open_rungs_of(options_, rungs.size(), rungs.back().size());
  count = std::max<std::size_t>(count, silent_[bracket]);
  if (options_.open_silent && !has_merits() && count + 2 <= reached) {
    while (count + 2 < rungs.size() && is_silent(rungs[count], rungs[count + 1])) {
      silent_[bracket] = static_cast<std::uint32_t>(++count);
    }
  }
  for (std::uint32_t rung = 0; rung < count; ++rung) {
    if (rungs[rung].is_open()) continue;
    rungs[rung].open();
    note(bracket, rung);
  }
}

// Keeps open_ right after a rung has changed.
void AshaPromotion::note(std::uint32_t bracket, std::uint32_t rung) {
  const PromotionRung& changed = brackets_[bracket][rung];
  const Place place{changed.milestone(), bracket, rung};
  if (changed.promotable().empty()) {
    open_.erase(place);
  } else {
    open_.insert(place);
  }
}

// "0.81 is among the best 2 of 7 at iteration 3: it goes on when there is room".
std::string AshaPromotion::pause_reason(const TrialState& state) const {
  const PromotionRung& rung = brackets_[state.bracket][state.recorded - 1];
  std::string text = has_merits() ? merit_text(rung.fronts().merits()[state.entry.arrival])
                                  : full_text(state.entry.value);
  if (rung.is_open()) {
    text += " waits for room: the rung is open to all";
    if (state.recorded <= silent_[state.bracket]) {
      text += ", as values say little of the next one's";
    }
  } else if (rung.places() == 0) {
    text += fmt::format(" waits: {} value{} too few to promote one", rung.size(),
                        rung.size() == 1 ? " is" : "s are");
  } else {
    text += fmt::format(" {} among the best {} of {}",
                        rung.is_among_best(state.entry) ? "waits for room:" : "waits: not",
                        rung.places(), rung.size());
  }
  return text + fmt::format(" at {} {}", short_time_name(options_.time_attr), rung.milestone());
}

// Those that may go on and are not candidates are still saving: not more than run.
std::optional<TrialNumber> AshaPromotion::choose(const Candidates& candidates) const {
  for (const Place& place : open_) {
    for (const RungEntry& entry : brackets_[place.bracket][place.rung].promotable()) {
      if (candidates.contains(entry.trial)) return entry.trial;
    }
  }
  return candidates.first_pending();
}

Milestone AshaPromotion::resume_trial(TrialNumber trial) {
  TrialState& state = state_of(trial);
  if (state.waits) ++promoted_;
  take_from_rung(state);
  pass_open_rungs(state);
  return until(options_.time_attr, next_stop(state));
}

// The rung to which the last result of a trial that ended by itself was added: the highest that it
// reached, if it was not there.
std::optional<std::uint32_t> AshaPromotion::add_last(TrialNumber trial, const ResultView& result) {
  TrialState& state = state_of(trial);
  const std::optional<double> time = result.number(options_.time_attr);
  const std::uint32_t upto = time ? reached(state, *time) : state.recorded;
  if (upto == state.recorded) return std::nullopt;
  PromotionRung& rung = brackets_[state.bracket][upto - 1];
  if (has_merits()) {
    const std::optional<MeritNumbers> found = numbers(result);
    if (!found) return std::nullopt;
    take_from_rung(state);
    state.entry = rung.add(merit(*found), trial, false);
  } else {
    const std::optional<double> value = result.number(objective().metric);
    if (!value) return std::nullopt;
    take_from_rung(state);
    state.entry = rung.add(signed_value(*value), trial, false);
  }
  return upto;
}

void AshaPromotion::end_trial(TrialNumber trial, TrialEnd end, const Reported* last) {
  TrialState& state = state_of(trial);
  const bool waits = state.waits;
  if (end != TrialEnd::kError && last != nullptr) {
    if (const std::optional<std::uint32_t> upto = add_last(trial, *last)) {
      state.recorded = *upto;
      note(state.bracket, *upto - 1);
      open_rungs(state.bracket, *upto);
    }
  }
  take_from_rung(state);
  state.waits = waits && end == TrialEnd::kError;
  state.is_over = true;
}

std::vector<std::string> AshaPromotion::status_lines() const {
  std::vector<std::string> lines = {
      fmt::format("Using AsyncHyperBand by promotion: num_stopped={}, num_promoted={}, "
                  "num_waiting={}",
                  stopped_, promoted_, waiting_)};
  for (const std::vector<PromotionRung>& rungs : brackets_) {
    std::vector<RungText> texts;
    for (const PromotionRung& rung : rungs) {
      texts.push_back({rung.milestone(), rung.is_open() ? "open"
                                         : has_merits() ? fronts_text(rung.fronts())
                                                        : short_text(rung.cut_off())});
    }
    lines.push_back(bracket_line(texts));
  }
  return lines;
}

// ---- State

namespace {

struct SavedRung {
  double milestone = 0;
  std::vector<RungEntry> best;
  std::vector<RungEntry> others;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.milestone, s.best, s.others);
  }
};

struct SavedTrial {
  std::uint32_t bracket = 0;
  std::uint32_t recorded = 0;
  bool waits = false;
  bool is_over = false;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.bracket, s.recorded, s.waits, s.is_over);
  }
};

struct SavedPromotion {
  std::string kind;  // "promotion": not the other form's
  std::uint64_t stopped = 0;
  std::uint64_t promoted = 0;
  std::vector<SavedTrial> trials;
  std::vector<std::vector<SavedRung>> rungs;
  std::vector<std::uint32_t> silent{};  // empty in states of builds before it
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.kind, s.stopped, s.promoted, s.trials, s.rungs);
    f.added(s.silent);
  }
};

constexpr const char* kKind = "promotion";

[[noreturn]] void refuse_promotion(const std::string& why) {
  refuse_scheduler_state("asha", why);
}

// Of fresh ones, which have no values yet, those that were open when `saved` was.
void open_as_saved(const AshaOptions& options, const std::vector<SavedRung>& saved,
                   std::size_t silent, std::vector<PromotionRung>& rungs) {
  if (saved.empty()) return;
  const std::size_t at_top = saved.back().best.size() + saved.back().others.size();
  const std::size_t count = std::max(open_rungs_of(options, rungs.size(), at_top), silent);
  for (std::size_t rung = 0; rung < count; ++rung) rungs[rung].open();
}

// The rungs with the saved values; `fronts` are their merits, where they have such.
PromotionBrackets restored_promotion_rungs(const AshaOptions& options, SavedPromotion& saved,
                                           std::vector<std::vector<Fronts>> fronts) {
  PromotionBrackets brackets = fresh_rungs(options);
  const char* const other_rungs = "it was saved with other rungs than these parameters give";
  if (saved.silent.empty()) saved.silent.resize(brackets.size());
  if (saved.rungs.size() != brackets.size() || saved.silent.size() != brackets.size()) {
    refuse_promotion(other_rungs);
  }
  for (std::size_t s = 0; s < brackets.size(); ++s) {
    if (saved.rungs[s].size() != brackets[s].size()) refuse_promotion(other_rungs);
    const std::size_t silent = saved.silent[s];
    if (silent > 0 && (!options.open_silent || silent + 1 >= brackets[s].size())) {
      refuse_promotion("rungs are open that these parameters leave closed");
    }
    open_as_saved(options, saved.rungs[s], silent, brackets[s]);
    for (std::size_t k = 0; k < brackets[s].size(); ++k) {
      SavedRung& from = saved.rungs[s][k];
      if (from.milestone != brackets[s][k].milestone()) refuse_promotion(other_rungs);
      if (!brackets[s][k].restore(std::move(from.best), std::move(from.others),
                                  std::move(fronts[s][k]))) {
        refuse_promotion("the values of a rung are not in the order of these parameters");
      }
    }
  }
  return brackets;
}

// The entry of each trial in its highest rung.
class HighestEntries {
 public:
  explicit HighestEntries(const std::vector<SavedTrial>& trials)
      : trials_(trials), entries_(trials.size()) {}

  void read(const std::vector<RungEntry>& heap, std::uint32_t bracket, std::uint32_t rung) {
    for (const RungEntry& entry : heap) {
      const std::uint32_t number = entry.trial.value;
      if (number >= trials_.size() || trials_[number].bracket != bracket ||
          trials_[number].recorded <= rung) {
        refuse_promotion("a rung has a trial that was not there");
      }
      if (trials_[number].recorded != rung + 1) continue;
      if (entries_[number]) refuse_promotion("a trial is in a rung twice");
      entries_[number] = entry;
    }
  }
  const std::optional<RungEntry>& of(std::size_t trial) const { return entries_[trial]; }

 private:
  const std::vector<SavedTrial>& trials_;
  std::vector<std::optional<RungEntry>> entries_;
};

HighestEntries highest_entries(const std::vector<SavedTrial>& trials,
                               const PromotionBrackets& brackets) {
  HighestEntries highest(trials);
  for (std::uint32_t s = 0; s < brackets.size(); ++s) {
    for (std::uint32_t k = 0; k < brackets[s].size(); ++k) {
      highest.read(brackets[s][k].best(), s, k);
      highest.read(brackets[s][k].others(), s, k);
    }
  }
  return highest;
}

}  // namespace

std::string AshaPromotion::save() const {
  SavedPromotion saved{kKind, stopped_, promoted_, {}, {}, silent_};
  for (const TrialState& state : trials_) {
    saved.trials.push_back({state.bracket, state.recorded, state.waits, state.is_over});
  }
  for (const std::vector<PromotionRung>& rungs : brackets_) {
    std::vector<SavedRung>& all = saved.rungs.emplace_back();
    for (const PromotionRung& rung : rungs) {
      all.push_back({rung.milestone(), rung.best(), rung.others()});
    }
  }
  PackWriter out;
  encode(out, saved);
  save_objective(out);
  if (!has_merits()) return out.take();
  for (const std::vector<PromotionRung>& rungs : brackets_) {
    for (const PromotionRung& rung : rungs) encode(out, rung.fronts().merits());
  }
  return out.take();
}

void AshaPromotion::restore(std::string_view bytes) {
  PackReader in(bytes);  // may be larger than a frame
  SavedPromotion saved;
  decode(in, saved);
  check_objective(in);
  if (saved.kind != kKind) refuse_promotion("it was saved by another type");
  std::vector<std::vector<Fronts>> fronts;
  for (const std::vector<PromotionRung>& rungs : brackets_) {
    for (Fronts& rung : fronts.emplace_back(rungs.size())) {
      if (has_merits()) read_merits(in, rung);
    }
  }
  in.expect_end();
  AshaPromotion made(*this);
  made.trials_.clear();
  made.open_.clear();
  made.waiting_ = 0;
  made.brackets_ = restored_promotion_rungs(options_, saved, std::move(fronts));
  const HighestEntries highest = highest_entries(saved.trials, made.brackets_);
  for (std::size_t i = 0; i < saved.trials.size(); ++i) {
    const SavedTrial& from = saved.trials[i];
    const bool exists = from.bracket < made.brackets_.size() &&
                        from.recorded <= made.brackets_[from.bracket].size();
    if (!exists || (from.waits && !highest.of(i)))
      refuse_promotion("a trial is in a rung that does not exist");
    made.trials_.push_back({highest.of(i).value_or(RungEntry{}), from.bracket, from.recorded,
                            from.waits, from.is_over});
    if (!from.waits || from.is_over) continue;
    ++made.waiting_;
    made.brackets_[from.bracket][from.recorded - 1].wait_again(*highest.of(i));
    made.note(from.bracket, from.recorded - 1);
  }
  made.silent_ = std::move(saved.silent);
  made.stopped_ = saved.stopped;
  made.promoted_ = saved.promoted;
  *this = std::move(made);
}

}  // namespace tune
