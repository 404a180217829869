#include "schedulers/population.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/error.h"

namespace tune {

namespace {

double ranked(double score) {
  return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

bool is_before(const Population::Entry& a, const Population::Entry& b) {
  return std::tie(a.score, a.trial) < std::tie(b.score, b.trial);
}

}  // namespace

std::vector<Population::Entry>::const_iterator Population::place(const Entry& entry) const {
  return std::lower_bound(entries_.begin(), entries_.end(), entry, is_before);
}

bool Population::contains(TrialNumber trial, double score) const {
  const auto found = place({ranked(score), trial});
  return found != entries_.end() && found->trial == trial && found->score == ranked(score);
}

void Population::put(TrialNumber trial, double score) {
  const Entry entry{ranked(score), trial};
  entries_.insert(place(entry), entry);
}

void Population::remove(TrialNumber trial, double score) {
  TUNE_CHECK(contains(trial, score));
  entries_.erase(place({ranked(score), trial}));
}

bool Population::is_among(std::span<const Entry> some, TrialNumber trial) {
  return std::ranges::find(some, trial, &Entry::trial) != some.end();
}

std::size_t Population::quantile() const {
  if (entries_.size() <= 1) return 0;
  const double count = std::ceil(static_cast<double>(entries_.size()) * fraction_);
  return std::min(static_cast<std::size_t>(count), entries_.size() / 2);
}

}  // namespace tune
