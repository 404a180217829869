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

// As many steps for any key, so that the processor foresees them.
template <std::size_t N>
std::size_t RankedValues::at_most(const std::array<Key, N>& keys, Key key) {
  constexpr std::size_t kFew = kLine / sizeof(Key);
  std::size_t count = 0;
  for (std::size_t half = N / 2; half >= kFew; half /= 2) {
    count += keys[count + half - 1] <= key ? half : 0;
  }
  const Key* const last = &keys[count];
  for (std::size_t i = 0; i < kFew; ++i) count += static_cast<std::size_t>(last[i] <= key);
  return count;
}

// The cache lines are asked for at once: each alone is waited for as long as all together.
template <std::size_t N>
void RankedValues::ask_for(const std::array<Key, N>& keys) {
  for (std::size_t i = 0; i < N; i += kLine / sizeof(Key)) __builtin_prefetch(&keys[i], 1);
}

RankedValues::Seat RankedValues::seat(double value) const {
  return seat_of(key_of(value));
}

RankedValues::Seat RankedValues::seat_of(Key key) const {  // the last takes all above it
  if (size_ == 0) return {key};
  const std::size_t n = std::min(tune::at_most(best_, key), best_.size() - 1);
  const Node& own = node(n);
  ask_for(own.best);
  const Seat seat{key, n, std::min(at_most(own.best, key), own.leaves - 1)};
  ask_for(leaf(own, seat.leaf).keys);
  return seat;
}

std::size_t RankedValues::at_most_in(const Seat& seat) const {
  return at_most(leaf(node(seat.node), seat.leaf).keys, seat.key);
}

std::size_t RankedValues::better_than(const Seat& seat, std::size_t at) const {
  return size_ - count_of_first(seat.node) - node(seat.node).before(seat.leaf) - at;
}

std::size_t RankedValues::better_than(double value) const {
  const Seat found = seat(value);
  return size_ == 0 ? 0 : better_than(found, at_most_in(found));
}

std::size_t RankedValues::add(double value) {
  return add(seat(value));
}

std::size_t RankedValues::add(const Seat& found) {
  Seat seat = found;
  if (size_ == 0) {
    Node& first = nodes_.emplace_back();
    first.leaf[0] = make_leaf();
    first.leaves = 1;
    order_.push_back(0);
    best_.push_back(seat.key);
    tree_.push_back(0);
  }
  while (node(seat.node).size(seat.leaf) == kValues) {
    node(seat.node).leaves == kLeaves ? cut_node(seat.node) : cut_leaf(seat);
    seat = seat_of(seat.key);
  }
  const std::size_t at = at_most_in(seat);
  const std::size_t better = better_than(seat, at);
  Node& own = node(seat.node);
  auto& keys = leaf(own, seat.leaf).keys;
  const std::size_t count = own.size(seat.leaf);
  insert_at(keys, at, count, seat.key);
  own.best[seat.leaf] = keys[count];
  for (std::size_t i = 0; i < kLeaves; ++i) own.upto[i] += i >= seat.leaf ? 1 : 0;
  best_[seat.node] = own.best[own.leaves - 1];
  for (std::size_t k = seat.node + 1; k <= tree_.size(); k += k & -k) ++tree_[k - 1];
  ++size_;
  return better;
}

std::uint32_t RankedValues::make_leaf() {
  leaves_.emplace_back();
  return static_cast<std::uint32_t>(leaves_.size() - 1);
}

void RankedValues::Node::append(const Node& other, std::size_t place) {
  best[leaves] = other.best[place];
  leaf[leaves] = other.leaf[place];
  upto[leaves] = static_cast<std::uint16_t>(before(leaves) + other.size(place));
  ++leaves;
}

void RankedValues::cut_leaf(const Seat& seat) {
  constexpr std::size_t kHalf = kValues / 2;
  const std::uint32_t made = make_leaf();
  Node& own = node(seat.node);
  auto& lower = leaf(own, seat.leaf).keys;
  std::copy(lower.begin() + kHalf, lower.end(), leaves_[made].keys.begin());
  std::fill(lower.begin() + kHalf, lower.end(), kNone);
  const auto lower_upto = static_cast<std::uint16_t>(own.upto[seat.leaf] - kHalf);
  insert_at(own.leaf, seat.leaf + 1, own.leaves, made);
  insert_at(own.upto, seat.leaf, own.leaves, lower_upto);
  insert_at(own.best, seat.leaf, own.leaves, lower[kHalf - 1]);
  ++own.leaves;
}

void RankedValues::cut_node(std::size_t place) {
  const Node whole = node(place);
  Node lower, upper;
  for (std::size_t i = 0; i < kLeaves; ++i) (i < kLeaves / 2 ? lower : upper).append(whole, i);
  tree_to_sizes();
  tree_[place] = lower.size();
  insert_at(tree_, place + 1, upper.size());
  sizes_to_tree();
  insert_at(best_, place, lower.best[lower.leaves - 1]);
  node(place) = lower;
  insert_at(order_, place + 1, static_cast<std::uint32_t>(nodes_.size()));
  nodes_.push_back(upper);
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
  const auto i =
      static_cast<std::size_t>(std::upper_bound(own.upto.data(), end, place) - own.upto.data());
  const Key* const key = &leaf(own, i).keys[place - own.before(i)];
  const Key* next = key + 1;
  if (place + 1 == own.upto[i]) {  // the next leaf's first, or the next node's
    const bool is_last = i + 1 == own.leaves;
    if (is_last && n + 1 == order_.size()) return {value_of(*key), value_of(*key)};
    next = (is_last ? leaf(node(n + 1), 0) : leaf(own, i + 1)).keys.data();
  }
  return {value_of(*key), value_of(*next)};
}

std::vector<double> RankedValues::all() const {
  std::vector<double> values;
  values.reserve(size_);
  for (const std::uint32_t index : order_) {
    const Node& own = nodes_[index];
    for (std::size_t i = 0; i < own.leaves; ++i) {
      const Key* const first = leaf(own, i).keys.data();
      std::transform(first, first + own.size(i), std::back_inserter(values), value_of);
    }
  }
  return values;
}

}  // namespace tune
