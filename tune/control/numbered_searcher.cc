#include "tune/control/numbered_searcher.h"

#include <iterator>

#include "core/error.h"

namespace tune {

std::optional<TrialNumber> NumberedSearcher::inner(TrialNumber trial) const {
  if (skipped_.empty()) return trial;
  const auto at = skipped_.lower_bound(trial);
  if (at != skipped_.end() && *at == trial) return std::nullopt;
  const auto before = std::distance(skipped_.begin(), at);
  return TrialNumber{trial.value - static_cast<std::uint32_t>(before)};
}

TrialNumber NumberedSearcher::outer(TrialNumber suggestion) const {
  TrialNumber trial = suggestion;
  for (const TrialNumber skipped : skipped_) {
    if (skipped > trial) break;
    ++trial.value;
  }
  return trial;
}

std::optional<std::uint64_t> NumberedSearcher::total() const {
  const std::optional<std::uint64_t> total = searcher_->total();
  if (!total) return std::nullopt;
  return *total + skipped_.size();
}

std::optional<Config> NumberedSearcher::suggest(TrialNumber trial) {
  proposal_.reset();
  const std::optional<TrialNumber> suggestion = inner(trial);
  TUNE_CHECK(suggestion.has_value());
  std::optional<Config> config = searcher_->suggest(*suggestion);
  if (const Proposal* proposal = searcher_->newest_proposal()) {
    proposal_ = *proposal;
    for (TrialNumber& neighbour : proposal_->neighbours) neighbour = outer(neighbour);
  }
  return config;
}

void NumberedSearcher::result(TrialNumber trial, const ResultView& result) {
  if (const auto suggestion = inner(trial)) searcher_->result(*suggestion, result);
}

void NumberedSearcher::pause_trial(TrialNumber trial) {
  if (const auto suggestion = inner(trial)) searcher_->pause_trial(*suggestion);
}

void NumberedSearcher::resume_trial(TrialNumber trial) {
  if (const auto suggestion = inner(trial)) searcher_->resume_trial(*suggestion);
}

void NumberedSearcher::end_trial(TrialNumber trial, TrialEnd end, const Reported* last) {
  if (const auto suggestion = inner(trial)) searcher_->end_trial(*suggestion, end, last);
}

void NumberedSearcher::end_added(const Trial& trial, TrialEnd end) {
  if (!trial.last) return;
  const Value config = unpack(trial.config);
  if (config.is_map()) searcher_->end_added(Config(config), end, *trial.last);
}

}  // namespace tune
