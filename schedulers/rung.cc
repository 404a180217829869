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

bool is_better(double a, double b) {
  return is_worse(b, a);
}

}  // namespace

CutOffPosition::CutOffPosition(AshaRule rule, double factor) : rule_(rule) {
  TUNE_CHECK(factor > 1);
  // factor = mantissa * 2^(exponent - 53) with a whole mantissa: exact.
  int exponent = 0;
  const double fraction = std::frexp(factor, &exponent);
  auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  int shift = 53 - exponent;
  while (shift > 0 && mantissa % 2 == 0) mantissa /= 2, --shift;
  // Factors of 2^53 and more keep one value of any rung: the largest scale serves as well.
  factor_ =
      shift >= 0 ? mantissa : (static_cast<unsigned __int128>(mantissa) << std::min(-shift, 60));
  scale_ = static_cast<unsigned __int128>(1) << std::max(shift, 0);
}

std::size_t CutOffPosition::below(std::size_t n) const {
  if (rule_ == AshaRule::kTop) {
    const auto best = static_cast<std::size_t>(n * scale_ / factor_);
    return n - std::max<std::size_t>(best, 1);
  }
  return static_cast<std::size_t>((n - 1) * (factor_ - scale_) / factor_);
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
    std::push_heap(high_.begin(), high_.end(), is_better);
  }
  balance();
}

void Rung::balance() {
  const std::size_t wanted = position_.below(size());
  while (low_.size() > wanted) {
    std::pop_heap(low_.begin(), low_.end(), is_worse);
    high_.push_back(low_.back());
    low_.pop_back();
    std::push_heap(high_.begin(), high_.end(), is_better);
  }
  while (low_.size() < wanted) {
    std::pop_heap(high_.begin(), high_.end(), is_better);
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
  if (a == b) return a;
  if (std::isinf(a)) return f >= 0.5 ? b : a;
  return a + (b - a) * f;
}

void Rung::restore(std::vector<double> low, std::vector<double> high) {
  low_ = std::move(low);
  high_ = std::move(high);
  const std::size_t below = size() == 0 ? 0 : position_.below(size());
  TUNE_CHECK(low_.size() == below);
}

}  // namespace tune
