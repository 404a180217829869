#include "tune/search/history.h"

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/wire.h"

namespace tune {

namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
constexpr const char* kHistoryState = "history";

struct SavedHistory {
  std::string name;
  std::vector<KnownTrial> trials;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.name, s.trials);
  }
};

// Whether a result after so many steps is the first at a rung, given the one kept last.
bool reaches_rung(const std::vector<ValueAt>& rungs, std::uint64_t iteration) {
  if (rungs.empty()) return iteration >= 1;
  double next = 1;
  while (next <= static_cast<double>(rungs.back().iteration)) next *= kRungFactor;
  return static_cast<double>(iteration) >= next;
}

Standing standing_of(TrialEnd end) {
  return end == TrialEnd::kCompleted ? Standing::kCompleted
         : end == TrialEnd::kStopped ? Standing::kStopped
                                     : Standing::kFailed;
}

}  // namespace

History::History(const Objective& objective)
    : mode_(objective.mode), goals_(needs_merit(objective) ? goals_of(objective).size() : 0) {}

double History::directed(double value) const {
  if (!std::isfinite(value)) return -std::numeric_limits<double>::infinity();
  return mode_ == Mode::kMax ? value : -value;
}

void History::append(KnownTrial trial) {
  fingerprints_.push_back(fingerprint(trial.point));
  if (trial.number) {
    const std::size_t number = trial.number->value;
    while (places_.size() <= number) places_.push_back(kNowhere);
    places_.change(number) = static_cast<std::uint32_t>(trials_.size());
  }
  trials_.push_back(std::move(trial));
}

void History::add(TrialNumber trial, UnitPoint point) {
  if (KnownTrial* found = known(trial)) {
    found->standing = Standing::kRunning;
    return;
  }
  append({.number = trial, .point = std::move(point)});
}

void History::add_earlier(UnitPoint point, const std::vector<ValueAt>& values, TrialEnd end) {
  KnownTrial trial{.point = std::move(point), .standing = standing_of(end)};
  for (const ValueAt& value : values) reach(trial, {value.iteration, directed(value.value)});
  append(std::move(trial));
}

void History::add_ended(TrialNumber trial, UnitPoint point, const ValueAt& value, TrialEnd end) {
  KnownTrial ended{.point = std::move(point), .standing = standing_of(end), .added = trial};
  reach(ended, value);
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    if (trials_[i].added != trial) continue;
    trials_.change(i) = std::move(ended);
    return;
  }
  append(std::move(ended));
}

void History::add_proposed(UnitPoint point) {
  append({.point = std::move(point)});
}

void History::result(TrialNumber trial, std::uint64_t iteration, double value) {
  take(trial, {iteration, directed(value)});
}

void History::result(TrialNumber trial, std::uint64_t iteration, MeritNumbers numbers) {
  const double first = numbers.empty() ? -std::numeric_limits<double>::infinity() : numbers.front();
  take(trial, {iteration, first, std::move(numbers)});
}

void History::take(TrialNumber trial, ValueAt value) {
  KnownTrial* found = known(trial);
  if (found == nullptr) return;
  found->standing = Standing::kRunning;
  reach(*found, std::move(value));
}

void History::reach(KnownTrial& trial, ValueAt value) {
  if (trial.newest && value.iteration <= trial.newest->iteration) return;
  if (reaches_rung(trial.rungs, value.iteration)) trial.rungs.push_back(value);
  trial.newest = std::move(value);
}

void History::end(TrialNumber trial, TrialEnd end) {
  set(trial, standing_of(end));
}

void History::set(TrialNumber trial, Standing standing) {
  if (KnownTrial* found = known(trial)) found->standing = standing;
}

const KnownTrial* History::find(TrialNumber trial) const {
  if (trial.value >= places_.size() || places_[trial.value] == kNowhere) return nullptr;
  return &trials_[places_[trial.value]];
}

KnownTrial* History::known(TrialNumber trial) {
  if (find(trial) == nullptr) return nullptr;
  return &trials_.change(places_[trial.value]);
}

std::string History::save() const {
  // Written as `encoded` would write a SavedHistory, which would have to hold a copy of all trials.
  PackWriter out;
  out.array(2);
  out.text(kHistoryState);
  out.array(trials_.size());
  for (const KnownTrial& trial : trials_) encode(out, trial);
  return out.take();
}

void History::restore(std::string_view state, std::size_t coordinates) {
  PackReader in(state);  // not `decoded`: it may be larger than a message
  SavedHistory read;
  decode(in, read);
  in.expect_end();
  if (read.name != kHistoryState) {
    throw Error(ErrorCode::kProtocol,
                fmt::format("the state of a searcher's history begins with '{}'", read.name));
  }
  History restored(mode_);
  restored.goals_ = goals_;
  for (KnownTrial& trial : read.trials) {
    const bool fits = trial.point.size() == coordinates &&
                      (!trial.number || restored.find(*trial.number) == nullptr);
    if (!fits) {
      throw Error(ErrorCode::kProtocol,
                  fmt::format("the history of a searcher has a trial of {} coordinates, or twice: "
                              "the space has {}",
                              trial.point.size(), coordinates));
    }
    if (trial.number && trial.number->value >= read.trials.size() + (1u << 24)) {
      throw Error(ErrorCode::kProtocol,
                  fmt::format("the history of a searcher has trial {}", trial.number->value));
    }
    restored.append(std::move(trial));
  }
  *this = std::move(restored);
}

}  // namespace tune
