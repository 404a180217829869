#include "schedulers/rung.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace tune {

bool is_worse(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a < b;
}

namespace {

bool is_higher(double a, double b) {
  return is_worse(b, a);
}

}  // namespace

CutOffPosition::CutOffPosition(AshaRule rule, double factor) : rule_(rule) {
  TUNE_CHECK(factor > 1);
  // A larger factor keeps one value of any rung, and the products below must fit 128 bits.
  factor = std::min(factor, 0x1p62);
  // A double above 1 has at most 52 fractional bits: doubling makes it whole without rounding.
  for (; factor != std::floor(factor); factor *= 2) scale_ *= 2;
  factor_ = static_cast<std::uint64_t>(factor);
}

CutOffPosition CutOffPosition::majority() {
  CutOffPosition position(AshaRule::kTop, 2);
  position.is_majority_ = true;
  return position;
}

std::size_t CutOffPosition::below(std::size_t n) const {
  if (is_majority_) return n < 2 ? 0 : n / 2 - 1;
  if (rule_ == AshaRule::kTop) {
    return n - std::max<std::size_t>(whole_part(n), 1);
  }
  return static_cast<std::size_t>((n - 1) * (factor_ - scale_) / factor_);
}

std::size_t CutOffPosition::whole_part(std::size_t n) const {
  return static_cast<std::size_t>(n * scale_ / factor_);
}

double CutOffPosition::fraction(std::size_t n) const {
  if (rule_ == AshaRule::kTop) return 0;
  const unsigned __int128 rest = (n - 1) * (factor_ - scale_) % factor_;
  return static_cast<double>(rest) / static_cast<double>(factor_);
}

void Rung::add(double value) {
  if (!low_.empty() && is_worse(value, low_.front())) {
    low_.push_back(value);
    std::push_heap(low_.begin(), low_.end(), is_worse);
  } else {
    high_.push_back(value);
    std::push_heap(high_.begin(), high_.end(), is_higher);
  }
  balance();
}

void Rung::balance() {
  const std::size_t wanted = position_.below(size());
  while (low_.size() > wanted) {
    std::pop_heap(low_.begin(), low_.end(), is_worse);
    high_.push_back(low_.back());
    low_.pop_back();
    std::push_heap(high_.begin(), high_.end(), is_higher);
  }
  while (low_.size() < wanted) {
    std::pop_heap(high_.begin(), high_.end(), is_higher);
    low_.push_back(high_.back());
    high_.pop_back();
    std::push_heap(low_.begin(), low_.end(), is_worse);
  }
}

std::optional<double> Rung::cut_off() const {
  if (high_.empty()) return std::nullopt;
  const double a = high_.front();
  const double f = position_.fraction(size());
  if (f == 0 || high_.size() == 1) return a;
  // The next better value: the smaller child of the heap's root.
  double b = high_[1];
  if (high_.size() > 2 && is_worse(high_[2], b)) b = high_[2];
  if (!std::isfinite(a)) return f >= 0.5 ? b : a;  // NaN counts as infinitely bad
  if (std::isinf(b - a) && std::isfinite(b)) return a * (1 - f) + b * f;
  return std::min(a + (b - a) * f, b);  // rounding must not stop a tie with b
}

bool Rung::restore(std::vector<double> low, std::vector<double> high) {
  const std::size_t n = low.size() + high.size();
  if (low.size() != (n == 0 ? 0 : position_.below(n))) return false;
  if (!std::is_heap(low.begin(), low.end(), is_worse)) return false;
  if (!std::is_heap(high.begin(), high.end(), is_higher)) return false;
  if (!low.empty() && is_worse(high.front(), low.front())) return false;
  low_ = std::move(low);
  high_ = std::move(high);
  return true;
}

}  // namespace tune
