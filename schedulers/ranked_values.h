// RankedValues: values in order, so that it costs little to say how many are better than another,
// and which stands at a place. Larger is better, NaN the worst. Pure.
//
// Sorted leaves of up to 128 values stand in nodes of up to 32 leaves; the number of values in the
// first nodes is the sum of a few entries of a binary indexed tree (Fenwick, "A new data structure
// for cumulative frequency tables", 1994), which is made anew when a node is cut in two. A value is
// kept as a whole number of the same order, so that a search has no branches. The sizes are those
// of the processor's cache: of 1,000,000 values each is elsewhere than the last, so that its leaf
// is waited for, and its node is when all nodes together have no room in the cache. Sorted blocks
// of 512 in one list took 0.5 us a value, 64 values in nodes of 64 leaves 0.17 us, 128 in nodes of
// 16 0.12 us. The leaves of all nodes stand in one vector, so that few pages hold them, which is
// another 0.02 us; a node that is cut hands them over by number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/huge_pages.h"

namespace tune {

class RankedValues {
 public:
  std::size_t size() const { return size_; }
  // Where a value belongs until another is added. Its memory is asked for, so that it comes while
  // other work is done before the value is added.
  struct Seat;
  Seat seat(double value) const;
  std::size_t add(const Seat& seat);  // how many are better
  std::size_t add(double value);
  std::size_t better_than(double value) const;  // how many
  // The value at a place, from 0, the worst, and the next better one, if any; place < size().
  struct Neighbours {
    double value = 0;
    double next = 0;
  };
  Neighbours at(std::size_t place) const;
  std::vector<double> all() const;  // the worst first

 private:
  using Key = std::uint64_t;                   // of a value
  static constexpr Key kNone = ~Key{0};        // in places that are free; larger than any value's
  static constexpr std::size_t kLine = 64;     // bytes of a cache line
  static constexpr std::size_t kValues = 128;  // of a leaf
  static constexpr std::size_t kLeaves = 32;   // of a node
  struct alignas(kLine) Leaf {
    std::array<Key, kValues> keys;  // sorted
    Leaf() { keys.fill(kNone); }
  };
  // All in one piece, as each piece of memory elsewhere is waited for.
  struct alignas(kLine) Node {
    std::array<Key, kLeaves> best;              // of each leaf, the worst leaf first; none is empty
    std::array<std::uint32_t, kLeaves> leaf{};  // of each, its place in leaves_
    std::array<std::uint16_t, kLeaves> upto{};  // values in the leaves up to each
    std::size_t leaves = 0;
    Node() { best.fill(kNone); }
    std::size_t before(std::size_t place) const { return place == 0 ? 0 : upto[place - 1]; }
    std::size_t size() const { return before(leaves); }
    std::size_t size(std::size_t place) const { return upto[place] - before(place); }
    void append(const Node& other, std::size_t place);  // its leaf, behind all others
  };

  template <std::size_t N>
  static std::size_t at_most(const std::array<Key, N>& keys, Key key);  // how many are
  template <std::size_t N>
  static void ask_for(const std::array<Key, N>& keys);
  static Key key_of(double value);
  static double value_of(Key key);
  Node& node(std::size_t place) { return nodes_[order_[place]]; }
  const Node& node(std::size_t place) const { return nodes_[order_[place]]; }
  std::uint32_t make_leaf();
  Leaf& leaf(const Node& own, std::size_t place) { return leaves_[own.leaf[place]]; }
  const Leaf& leaf(const Node& own, std::size_t place) const { return leaves_[own.leaf[place]]; }
  Seat seat_of(Key key) const;
  std::size_t at_most_in(const Seat& seat) const;  // values of its leaf, which are not better
  std::size_t better_than(const Seat& seat, std::size_t at) const;
  void cut_leaf(const Seat& seat);
  void cut_node(std::size_t place);
  void tree_to_sizes();  // entry k: the size of the k-th node; and back
  void sizes_to_tree();
  std::size_t count_of_first(std::size_t nodes) const;

  std::vector<Leaf, HugePages<Leaf>> leaves_;  // in the order in which they were made
  std::vector<Node> nodes_;           // none is empty; in the order in which they were made
  std::vector<std::uint32_t> order_;  // of the nodes, the worst first
  std::vector<Key> best_;             // of each node, in that order
  std::vector<std::size_t> tree_;     // entry k - 1: the sizes of (k & -k) nodes up to the k-th
  std::size_t size_ = 0;
};

struct RankedValues::Seat {
  Key key = 0;
  std::size_t node = 0;  // its place in the order
  std::size_t leaf = 0;
};

}  // namespace tune
