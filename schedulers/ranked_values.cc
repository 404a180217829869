#include "schedulers/ranked_values.h"

#include <algorithm>

#include "schedulers/rung.h"

namespace tune {

void RankedValues::add(double value) {
  if (blocks_.empty()) {
    blocks_.emplace_back();
    best_.push_back(value);
    tree_.push_back(0);
  }
  const auto found = std::lower_bound(best_.begin(), best_.end(), value, is_worse);
  const auto at = static_cast<std::size_t>(std::min(found, best_.end() - 1) - best_.begin());
  std::vector<double>& block = blocks_[at];
  block.insert(std::upper_bound(block.begin(), block.end(), value, is_worse), value);
  best_[at] = block.back();
  ++size_;
  for (std::size_t k = at + 1; k <= tree_.size(); k += k & -k) ++tree_[k - 1];
  if (block.size() > kMost) cut(at);
}

void RankedValues::cut(std::size_t at) {
  std::vector<double>& block = blocks_[at];
  const auto middle = block.begin() + kMost / 2;
  std::vector<double> upper(middle, block.end());
  block.erase(middle, block.end());
  const auto place = static_cast<std::ptrdiff_t>(at);
  best_.insert(best_.begin() + place, block.back());
  blocks_.insert(blocks_.begin() + place + 1, std::move(upper));
  count();
}

void RankedValues::count() {
  tree_.assign(blocks_.size(), 0);
  for (std::size_t k = 1; k <= tree_.size(); ++k) {
    tree_[k - 1] += blocks_[k - 1].size();
    const std::size_t above = k + (k & -k);
    if (above <= tree_.size()) tree_[above - 1] += tree_[k - 1];
  }
}

std::size_t RankedValues::count_of_first(std::size_t blocks) const {
  std::size_t sum = 0;
  for (std::size_t k = blocks; k > 0; k -= k & -k) sum += tree_[k - 1];
  return sum;
}

std::size_t RankedValues::better_than(double value) const {
  const auto found = std::upper_bound(best_.begin(), best_.end(), value, is_worse);
  if (found == best_.end()) return 0;
  const auto at = static_cast<std::size_t>(found - best_.begin());
  const std::vector<double>& block = blocks_[at];
  const auto first = std::upper_bound(block.begin(), block.end(), value, is_worse);
  return size_ - count_of_first(at + 1) + static_cast<std::size_t>(block.end() - first);
}

}  // namespace tune
