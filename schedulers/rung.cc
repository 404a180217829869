#include "schedulers/rung.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "core/error.h"

namespace tune {

bool is_worse(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a < b;
}

namespace {

using Wide = unsigned __int128;

struct Quotient {
  std::size_t whole = 0;
  double fraction = 0;
};

// A division of 128 bits is a call, and nearly no factor needs it.
Quotient divide(Wide number, Wide by) {
  const auto quotient = [](auto a, auto b) -> Quotient {
    return {static_cast<std::size_t>(a / b), static_cast<double>(a % b) / static_cast<double>(b)};
  };
  if ((number | by) >> 64 != 0) return quotient(number, by);
  return quotient(static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(by));
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

CutOffPosition::Place CutOffPosition::at(std::size_t n) const {
  if (is_majority_) return {n < 2 ? 0 : n / 2 - 1};
  if (rule_ == AshaRule::kTop) return {n - std::max<std::size_t>(whole_part(n), 1)};
  const Quotient place = divide((n - 1) * (factor_ - scale_), factor_);
  return {place.whole, place.fraction};
}

std::size_t CutOffPosition::whole_part(std::size_t n) const {
  return divide(n * scale_, factor_).whole;
}

std::size_t Rung::add(double value) {
  return values_.add(value) + 1;
}

std::size_t Rung::add(const RankedValues::Seat& seat) {
  return values_.add(seat) + 1;
}

std::optional<double> Rung::cut_off() const {
  const std::size_t n = size();
  if (n == 0) return std::nullopt;
  const auto [below, f] = position_.at(n);
  const auto [a, b] = values_.at(below);
  if (f == 0 || below + 1 == n) return a;
  if (!std::isfinite(a)) return f >= 0.5 ? b : a;  // NaN counts as infinitely bad
  if (std::isinf(b - a) && std::isfinite(b)) return a * (1 - f) + b * f;
  return std::min(a + (b - a) * f, b);  // rounding must not stop a tie with b
}

// With one more value a place has what it had, what the place below had, or the new one between.
double Rung::cut_off_with(double value) const {
  TUNE_CHECK(position_.rule() == AshaRule::kTop);
  const std::size_t n = size();
  const std::size_t below = position_.below(n + 1);
  if (n == 0) return value;
  if (below == 0) return std::min(value, values_.at(0).value, is_worse);
  const auto [worse, better] = values_.at(below - 1);
  const double at_most = below < n ? std::min(value, better, is_worse) : value;
  return std::max(worse, at_most, is_worse);
}

Rung::Parts Rung::parts() const {
  const std::vector<double> all = values_.all();
  const auto middle =
      all.begin() + static_cast<std::ptrdiff_t>(all.empty() ? 0 : position_.below(all.size()));
  return {{std::make_reverse_iterator(middle), all.rend()}, {middle, all.end()}};
}

bool Rung::restore(const Parts& parts) {
  const auto& [low, high] = parts;
  const std::size_t n = low.size() + high.size();
  if (low.size() != (n == 0 ? 0 : position_.below(n))) return false;
  const auto is_better = [](double a, double b) { return is_worse(b, a); };
  if (!std::is_heap(low.begin(), low.end(), is_worse)) return false;
  if (!std::is_heap(high.begin(), high.end(), is_better)) return false;
  if (!low.empty() && is_worse(high.front(), low.front())) return false;
  values_ = {};
  for (const std::vector<double>* part : {&low, &high}) {
    for (const double value : *part) values_.add(value);
  }
  return true;
}

}  // namespace tune
