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

// The number of keys that are at most `key`, of sorted ones. Without branches, which would be
// foreseen half of the time.
std::size_t at_most(const std::vector<std::uint64_t>& keys, std::uint64_t key) {
  std::size_t count = 0;
  std::size_t left = keys.size();
  while (left > 0) {
    const std::size_t half = (left + 1) / 2;
    count += keys[count + half - 1] <= key ? half : 0;
    left -= half;
  }
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

// The cache lines are asked for at once: each alone is waited for as long as all together. As many
// steps for any key, so that the processor foresees them.
template <std::size_t N>
std::size_t RankedValues::at_most(const std::array<Key, N>& keys, Key key) {
  constexpr std::size_t kFew = kLine / sizeof(Key);
  for (std::size_t i = 0; i < N; i += kFew) __builtin_prefetch(&keys[i]);
  std::size_t count = 0;
  for (std::size_t half = N / 2; half >= kFew; half /= 2) {
    count += keys[count + half - 1] <= key ? half : 0;
  }
  const Key* const last = &keys[count];
  for (std::size_t i = 0; i < kFew; ++i) count += static_cast<std::size_t>(last[i] <= key);
  return count;
}

RankedValues::Seat RankedValues::seat_of(Key key) const {  // the last takes all above it
  if (size_ == 0) return {key};
  const std::size_t n = std::min(tune::at_most(best_, key), best_.size() - 1);
  const Node& own = node(n);
  return {key, n, std::min(at_most(own.best, key), own.leaves - 1)};
}

RankedValues::Seat RankedValues::seat(double value) const {
  const Seat seat = seat_of(key_of(value));
  if (size_ == 0) return seat;
  const auto& keys = node(seat.node).leaf(seat.leaf).keys;
  for (std::size_t i = 0; i < kValues; i += kLine / sizeof(Key)) __builtin_prefetch(&keys[i], 1);
  return seat;
}

std::size_t RankedValues::at_most_in(const Seat& seat) const {
  return at_most(node(seat.node).leaf(seat.leaf).keys, seat.key);
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
    nodes_.emplace_back().append({}, 0);
    nodes_.front().best[0] = seat.key;
    order_.push_back(0);
    best_.push_back(seat.key);
    tree_.push_back(0);
  }
  while (node(seat.node).size(seat.leaf) == kValues) {
    Node& full = node(seat.node);
    full.leaves == kLeaves ? cut(seat.node) : full.cut(seat.leaf);
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

// The second makes room for all: leaves are not copied as their number grows, and a node of few
// values stays small.
RankedValues::Leaf& RankedValues::Node::make_leaf() {
  if (leaves == 1) all.reserve(kLeaves);
  return all.emplace_back();
}

void RankedValues::Node::insert(std::size_t place, std::size_t at, Key key) {
  const std::size_t count = size(place);
  auto& keys = leaf(place).keys;
  insert_at(keys, at, count, key);
  best[place] = keys[count];
  for (std::size_t i = 0; i < kLeaves; ++i) upto[i] += i >= place ? 1 : 0;
}

void RankedValues::Node::append(const Leaf& leaf, std::size_t count) {
  make_leaf() = leaf;
  made[leaves] = static_cast<std::uint8_t>(leaves);
  if (count > 0) best[leaves] = leaf.keys[count - 1];
  upto[leaves] = static_cast<std::uint16_t>(before(leaves) + count);
  ++leaves;
}

void RankedValues::Node::cut(std::size_t place) {
  constexpr std::size_t kHalf = kValues / 2;
  Leaf& upper = make_leaf();
  auto& lower = leaf(place).keys;
  std::copy(lower.begin() + kHalf, lower.end(), upper.keys.begin());
  std::fill(lower.begin() + kHalf, lower.end(), kNone);
  insert_at(made, place + 1, leaves, static_cast<std::uint8_t>(leaves));
  insert_at(upto, place, leaves, static_cast<std::uint16_t>(upto[place] - kHalf));
  insert_at(best, place, leaves, lower[kHalf - 1]);
  ++leaves;
}

void RankedValues::cut(std::size_t place) {
  const Node whole = std::move(node(place));
  Node lower, upper;
  for (std::size_t leaf = 0; leaf < kLeaves; ++leaf) {
    (leaf < kLeaves / 2 ? lower : upper).append(whole.leaf(leaf), whole.size(leaf));
  }
  tree_to_sizes();
  tree_[place] = lower.size();
  insert_at(tree_, place + 1, upper.size());
  sizes_to_tree();
  insert_at(best_, place, lower.best[lower.leaves - 1]);
  node(place) = std::move(lower);
  insert_at(order_, place + 1, static_cast<std::uint32_t>(nodes_.size()));
  nodes_.push_back(std::move(upper));
}

void RankedValues::tree_to_sizes() {
  for (std::size_t k = tree_.size(); k > 0; --k) {
    const std::size_t above = k + (k & -k);
    if (above <= tree_.size()) tree_[above - 1] -= tree_[k - 1];
  }
}

void RankedValues::sizes_to_tree() {
  for (std::size_t k = 1; k <= tree_.size(); ++k) {
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
  const Key* const key = &own.leaf(leaf).keys[place - own.before(leaf)];
  const Key* next = key + 1;
  if (place + 1 == own.upto[leaf]) {  // the next leaf's first, or the next node's
    const bool is_last = leaf + 1 == own.leaves;
    if (is_last && n + 1 == order_.size()) return {value_of(*key), value_of(*key)};
    next = is_last ? node(n + 1).leaf(0).keys.data() : own.leaf(leaf + 1).keys.data();
  }
  return {value_of(*key), value_of(*next)};
}

std::vector<double> RankedValues::all() const {
  std::vector<double> values;
  values.reserve(size_);
  for (const std::uint32_t index : order_) {
    const Node& own = nodes_[index];
    for (std::size_t leaf = 0; leaf < own.leaves; ++leaf) {
      const Key* const first = own.leaf(leaf).keys.data();
      std::transform(first, first + own.size(leaf), std::back_inserter(values), value_of);
    }
  }
  return values;
}

}  // namespace tune
