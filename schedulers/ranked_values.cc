#include "schedulers/ranked_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/error.h"

namespace tune {

namespace {

constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
constexpr std::size_t kLine = 8;  // keys in a cache line

// The number of keys that are at most `key`, of sorted ones. Without branches, which would be
// foreseen half of the time. The cache lines of the last 64 are asked for at once: each alone is
// waited for as long as all together.
std::size_t at_most(const std::uint64_t* keys, std::size_t left, std::uint64_t key) {
  std::size_t count = 0;
  const auto halve_to = [&](std::size_t few) {
    while (left > few) {
      const std::size_t half = left / 2;
      count += half * static_cast<std::size_t>(keys[count + half - 1] <= key);
      left -= half;
    }
  };
  halve_to(8 * kLine);
  for (std::size_t i = 0; i < left; i += kLine) __builtin_prefetch(keys + count + i);
  halve_to(kLine);
  const std::uint64_t* const last = keys + count;
  for (std::size_t i = 0; i < left; ++i) count += static_cast<std::size_t>(last[i] <= key);
  return count;
}

template <class T>
void insert_at(std::vector<T>& list, std::size_t at, T item) {
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), std::move(item));
}

template <class T, std::size_t N>
void insert_at(std::array<T, N>& list, std::size_t at, std::size_t count, T item) {
  std::copy_backward(list.data() + at, list.data() + count, list.data() + count + 1);
  list[at] = item;
}

}  // namespace

RankedValues::Key RankedValues::key_of(double value) {
  if (std::isnan(value)) return 0;
  const Key bits = std::bit_cast<Key>(value + 0.0);  // -0 is as good as 0
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

double RankedValues::value_of(Key key) {
  if (key == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<double>((key & kSign) != 0 ? key & ~kSign : ~key);
}

RankedValues::Seat RankedValues::seat_of(Key key) const {
  const auto place = [key](const Key* best, std::size_t count) {  // the last takes all above it
    return std::min(at_most(best, count, key), count - 1);
  };
  if (size_ == 0) return {key};
  const std::size_t n = place(best_.data(), best_.size());
  return {key, n, place(node(n).best.data(), node(n).leaves)};
}

RankedValues::Seat RankedValues::seat(double value) const {
  const Seat seat = seat_of(key_of(value));
  if (size_ == 0) return seat;
  const Key* const first = node(seat.node).first(seat.leaf);
  const std::size_t count = node(seat.node).size(seat.leaf);
  for (std::size_t i = 0; i < count; i += kLine) __builtin_prefetch(first + i, 1);
  return seat;
}

std::size_t RankedValues::at_most_in(const Seat& seat) const {
  const Node& own = node(seat.node);
  return at_most(own.first(seat.leaf), own.size(seat.leaf), seat.key);
}

std::size_t RankedValues::better_than(const Seat& seat, std::size_t at) const {
  return size_ - count_of_first(seat.node) - node(seat.node).before(seat.leaf) - at;
}

std::size_t RankedValues::better_than(double value) const {
  const Seat seat = seat_of(key_of(value));
  return size_ == 0 ? 0 : better_than(seat, at_most_in(seat));
}

std::size_t RankedValues::add(double value) {
  return add(seat_of(key_of(value)));
}

std::size_t RankedValues::add(const Seat& found) {
  Seat seat = found;
  if (size_ == 0) {
    nodes_.emplace_back().append(nullptr, 0);
    nodes_.front().best[0] = seat.key;
    order_.push_back(0);
    best_.push_back(seat.key);
    tree_.push_back(0);
  }
  while (node(seat.node).size(seat.leaf) == kMost) {
    Node& full = node(seat.node);
    full.leaves == kMost ? cut(seat.node) : full.cut(seat.leaf);
    seat = seat_of(seat.key);
  }
  const std::size_t at = at_most_in(seat);
  const std::size_t better = better_than(seat, at);
  Node& own = node(seat.node);
  own.insert(seat.leaf, at, seat.key);
  best_[seat.node] = own.best[own.leaves - 1];
  for (std::size_t k = seat.node + 1; k <= tree_.size(); k += k & -k) ++tree_[k - 1];
  ++size_;
  return better;
}

void RankedValues::Node::insert(std::size_t leaf, std::size_t at, Key key) {
  const std::size_t count = size(leaf);
  keys.resize(std::max(keys.size(), kMost * block[leaf] + count + 1));
  Key* const own = first(leaf);
  std::copy_backward(own + at, own + count, own + count + 1);
  own[at] = key;
  best[leaf] = own[count];
  for (std::size_t i = leaf; i < leaves; ++i) ++upto[i];
}

void RankedValues::Node::append(const Key* sorted, std::size_t count) {
  keys.resize(kMost * leaves);
  keys.insert(keys.end(), sorted, sorted + count);
  block[leaves] = static_cast<std::uint8_t>(leaves);
  if (count > 0) best[leaves] = sorted[count - 1];
  upto[leaves] = static_cast<std::uint16_t>(before(leaves) + count);
  ++leaves;
}

void RankedValues::Node::cut(std::size_t leaf) {
  constexpr std::size_t kHalf = kMost / 2;
  keys.resize(kMost * leaves + kHalf);
  std::copy_n(first(leaf) + kHalf, kHalf, keys.end() - kHalf);
  insert_at(block, leaf + 1, leaves, static_cast<std::uint8_t>(leaves));
  insert_at(upto, leaf, leaves, static_cast<std::uint16_t>(upto[leaf] - kHalf));
  insert_at(best, leaf, leaves, first(leaf)[kHalf - 1]);
  ++leaves;
}

void RankedValues::cut(std::size_t place) {
  const Node whole = std::move(node(place));
  Node lower, upper;
  for (std::size_t leaf = 0; leaf < kMost; ++leaf) {
    (leaf < kMost / 2 ? lower : upper).append(whole.first(leaf), whole.size(leaf));
  }
  insert_at(best_, place, lower.best[lower.leaves - 1]);
  node(place) = std::move(lower);
  insert_at(order_, place + 1, static_cast<std::uint32_t>(nodes_.size()));
  nodes_.push_back(std::move(upper));
  count();
}

void RankedValues::count() {
  tree_.assign(order_.size(), 0);
  for (std::size_t k = 1; k <= tree_.size(); ++k) {
    tree_[k - 1] += node(k - 1).before(node(k - 1).leaves);
    const std::size_t above = k + (k & -k);
    if (above <= tree_.size()) tree_[above - 1] += tree_[k - 1];
  }
}

std::size_t RankedValues::count_of_first(std::size_t nodes) const {
  std::size_t sum = 0;
  for (std::size_t k = nodes; k > 0; k -= k & -k) sum += tree_[k - 1];
  return sum;
}

RankedValues::Neighbours RankedValues::at(std::size_t place) const {
  TUNE_CHECK(place < size_);
  std::size_t n = 0;
  for (std::size_t step = std::bit_floor(tree_.size()); step > 0; step /= 2) {
    if (n + step > tree_.size() || tree_[n + step - 1] > place) continue;
    n += step;
    place -= tree_[n - 1];
  }
  const Node& own = node(n);
  const auto* const end = own.upto.data() + own.leaves;
  const auto leaf =
      static_cast<std::size_t>(std::upper_bound(own.upto.data(), end, place) - own.upto.data());
  const Key* const key = own.first(leaf) + (place - own.before(leaf));
  const Key* next = key + 1;
  if (place + 1 == own.upto[leaf]) {  // the next leaf's first, or the next node's
    const bool is_last = leaf + 1 == own.leaves;
    if (is_last && n + 1 == order_.size()) return {value_of(*key), value_of(*key)};
    next = is_last ? node(n + 1).first(0) : own.first(leaf + 1);
  }
  return {value_of(*key), value_of(*next)};
}

std::vector<double> RankedValues::all() const {
  std::vector<double> values;
  values.reserve(size_);
  for (const std::uint32_t index : order_) {
    const Node& own = nodes_[index];
    for (std::size_t leaf = 0; leaf < own.leaves; ++leaf) {
      const Key* const first = own.first(leaf);
      std::transform(first, first + own.size(leaf), std::back_inserter(values), value_of);
    }
  }
  return values;
}

}  // namespace tune
