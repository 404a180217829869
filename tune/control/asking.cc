#include "tune/control/asking.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"

namespace tune {

namespace {

// Means over about the last so many.
constexpr int kAnswers = 4;
constexpr int kAttempts = 16;
// Proposals are used up unevenly while an answer is made.
constexpr int kUneven = 2;

struct Began {
  TrialNumber trial;
  ExperimentTime at{};
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.at);
  }
};

void count_in(Duration& mean, Duration value, int weight) {
  mean += mean == Duration{} ? value : (value - mean) / weight;
}

}  // namespace

void Asking::ask(std::uint64_t count, std::uint32_t stock) {
  TUNE_CHECK(!open_);
  TUNE_CHECK(count > 0u);
  const std::uint64_t most = stock > kFewProposals ? kMostAtOnce : kFewProposals;
  open_ = Question{++newest_, static_cast<std::uint32_t>(std::min(count, most))};
}

bool Asking::answered(std::uint64_t number, Duration took) {
  if (!open_ || open_->number != number) return false;
  open_.reset();
  count_in(takes_, std::max(took, Duration{}), kAnswers);
  return true;
}

void Asking::attempt_began(TrialNumber trial, ExperimentTime now) {
  began_[trial] = now;
}

void Asking::attempt_ended(TrialNumber trial, ExperimentTime now) {
  const auto began = began_.extract(trial);
  if (!began.empty()) count_in(lasts_, now - began.mapped(), kAttempts);
}

std::uint32_t Asking::stock(std::uint64_t places) const {
  if (lasts_ <= Duration{} || takes_ * kNoticedPart < lasts_) return 0;
  const double used = static_cast<double>(places) * static_cast<double>(takes_.count()) /
                      static_cast<double>(lasts_.count());
  const auto most = static_cast<double>(std::min<std::uint64_t>(places, kMostAtOnce));
  return static_cast<std::uint32_t>(std::clamp(std::ceil(kUneven * used), 0.0, most));
}

void Asking::save(PackWriter& out) const {
  std::vector<Began> began;
  for (const auto& [trial, at] : began_) began.push_back({trial, at});
  encode(out, open_);
  encode(out, newest_);
  encode(out, takes_);
  encode(out, lasts_);
  encode(out, began);
}

void Asking::restore(PackReader& in) {
  std::vector<Began> began;
  decode(in, open_);
  decode(in, newest_);
  decode(in, takes_);
  decode(in, lasts_);
  decode(in, began);
  began_.clear();
  for (const Began& one : began) began_[one.trial] = one.at;
}

}  // namespace tune
