// RankedValues: values in order, so that it costs little to say how many are better than another,
// and which stands at a place. Larger is better, NaN the worst. Pure.
//
// Sorted leaves of up to 64 values stand in nodes of up to 64 leaves; the number of values in the
// first nodes is the sum of a few entries of a binary indexed tree (Fenwick, "A new data structure
// for cumulative frequency tables", 1994), which is made anew when a node is cut in two. A value is
// kept as a whole number of the same order, so that a search has no branches. Leaves are that small
// because of the processor's cache: of 1,000,000 values each is elsewhere than the last, and with
// sorted blocks of 512 in one list a value took 0.5 us.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tune {

class RankedValues {
 public:
  std::size_t size() const { return size_; }
  std::size_t add(double value);                // how many are better
  // Asks for the memory that add() of this value will need: it comes while other work is done.
  void expect(double value) const;
  std::size_t better_than(double value) const;  // how many
  // The value at a place, from 0, the worst, and the next better one, if any; place < size().
  struct Neighbours {
    double value = 0;
    double next = 0;
  };
  Neighbours at(std::size_t place) const;
  std::vector<double> all() const;              // the worst first

 private:
  using Key = std::uint64_t;                // of a value
  static constexpr std::size_t kMost = 64;  // values of a leaf, leaves of a node
  // All in one piece but the keys, as each piece of memory elsewhere is waited for. Leaves lie in
  // blocks of kMost keys; the last block ends where its leaf does.
  struct Node {
    std::array<Key, kMost> best;            // of each leaf, the worst leaf first; none is empty
    std::array<std::uint32_t, kMost> upto;  // values in the leaves up to each
    std::array<std::uint8_t, kMost> block;  // of each leaf
    std::size_t leaves = 0;
    std::vector<Key> keys;  // of all blocks
    std::size_t before(std::size_t leaf) const { return leaf == 0 ? 0 : upto[leaf - 1]; }
    std::size_t size(std::size_t leaf) const { return upto[leaf] - before(leaf); }
    const Key* first(std::size_t leaf) const { return keys.data() + kMost * block[leaf]; }
    Key* first(std::size_t leaf) { return keys.data() + kMost * block[leaf]; }
    void insert(std::size_t leaf, std::size_t at, Key key);
    void append(const Key* sorted, std::size_t count);  // a leaf behind all others
    void cut(std::size_t leaf);
  };
  struct Position {
    std::size_t node = 0;
    std::size_t leaf = 0;
    std::size_t at = 0;  // of the first better value in the leaf, or its end
  };

  static Key key_of(double value);
  static double value_of(Key key);
  std::pair<std::size_t, std::size_t> leaf_of(Key key) const;
  Position find(Key key) const;
  std::size_t better_than(const Position& position) const;
  void cut(std::size_t node);
  void count();
  std::size_t count_of_first(std::size_t nodes) const;

  std::vector<Node> nodes_;        // the worst first; none is empty
  std::vector<Key> best_;          // of each node
  std::vector<std::size_t> tree_;  // entry k - 1: the sizes of (k & -k) nodes up to the k-th
  std::size_t size_ = 0;
};

}  // namespace tune
