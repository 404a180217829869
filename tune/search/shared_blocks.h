// SharedBlocks: a list whose copies cost little, however long it is. It is kept in blocks, which a
// copy shares; a block is copied when one of its values is changed. A searcher gives its history to
// another thread by it, many times a second.
//
// Copying marks the original: a list may be copied in one thread at a time. Copies may be read and
// changed in other threads, also while the original is changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace tune {

template <class T>
class SharedBlocks {
 public:
  SharedBlocks() = default;
  SharedBlocks(const SharedBlocks& other) : blocks_(other.blocks_), size_(other.size_) {
    share(), other.share();
  }
  SharedBlocks(SharedBlocks&& other) noexcept
      : blocks_(std::move(other.blocks_)), size_(std::exchange(other.size_, 0)) {}
  SharedBlocks& operator=(SharedBlocks other) noexcept {
    std::swap(blocks_, other.blocks_), std::swap(size_, other.size_);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t i) const { return (*blocks_[i / kBlock].values)[i % kBlock]; }
  T& change(std::size_t i) { return own(blocks_[i / kBlock])[i % kBlock]; }
  void push_back(T value) {
    if (size_ % kBlock == 0) {
      blocks_.push_back({std::make_shared<std::vector<T>>(), true});
    }
    own(blocks_.back()).push_back(std::move(value));
    ++size_;
  }

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;
    Iterator() = default;
    Iterator(const SharedBlocks& list, std::size_t at) : list_(&list), at_(at) {}
    reference operator*() const { return (*list_)[at_]; }
    pointer operator->() const { return &(*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return {*list_, at_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const SharedBlocks* list_ = nullptr;
    std::size_t at_ = 0;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size_}; }
  friend bool operator==(const SharedBlocks& a, const SharedBlocks& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

  static constexpr std::size_t kBlock = 128;  // values

 private:
  struct Block {
    std::shared_ptr<std::vector<T>> values;
    bool is_own;  // and no copy has it
  };
  void share() const {
    for (Block& block : blocks_) block.is_own = false;
  }
  // The number of copies cannot be asked for: another thread may be about to end one of them.
  static std::vector<T>& own(Block& block) {
    if (!std::exchange(block.is_own, true)) {
      block.values = std::make_shared<std::vector<T>>(*block.values);
    }
    return *block.values;
  }

  mutable std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

}  // namespace tune
