#include "schedulers/trial_scheduler.h"

#include <algorithm>

namespace tune {

bool Candidates::contains(TrialNumber trial) const {
  return pending_.contains(trial) || paused_.contains(trial);
}

bool Candidates::paused_goes_first() const {
  if (pending_.empty() || paused_.empty()) return pending_.empty();
  return paused_first_ || *paused_.begin() < *pending_.begin();
}

Candidate Candidates::front() const {
  const bool paused = paused_goes_first();
  return {*(paused ? paused_ : pending_).begin(), paused};
}

std::optional<TrialNumber> Candidates::first_pending() const {
  if (pending_.empty()) return std::nullopt;
  return *pending_.begin();
}

std::vector<Candidate> Candidates::list() const {
  std::vector<Candidate> all;
  all.reserve(pending_.size() + paused_.size());
  for (TrialNumber trial : paused_) all.push_back({trial, true});
  for (TrialNumber trial : pending_) all.push_back({trial, false});
  if (!paused_first_) {
    std::inplace_merge(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(paused_.size()),
                       all.end(),
                       [](const Candidate& a, const Candidate& b) { return a.trial < b.trial; });
  }
  return all;
}

std::optional<TrialNumber> TrialScheduler::choose(const Candidates& candidates) const {
  return candidates.front().trial;
}

}  // namespace tune
