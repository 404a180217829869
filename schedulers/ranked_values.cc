#include "schedulers/ranked_values.h"

#include <algorithm>

#include "schedulers/rung.h"

namespace tune {

void RankedValues::add(double value) {
  const auto is_below = [](const std::vector<double>& block, double one) {
    return is_worse(block.back(), one);
  };
  auto block = std::lower_bound(blocks_.begin(), blocks_.end(), value, is_below);
  if (block == blocks_.end()) {
    if (blocks_.empty()) blocks_.emplace_back();
    block = blocks_.end() - 1;
  }
  block->insert(std::upper_bound(block->begin(), block->end(), value, is_worse), value);
  if (block->size() <= kMost) return;
  const auto middle = block->begin() + kMost / 2;
  std::vector<double> upper(middle, block->end());
  block->erase(middle, block->end());
  blocks_.insert(block + 1, std::move(upper));
}

std::size_t RankedValues::better_than(double value) const {
  std::size_t count = 0;
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    if (is_worse(value, block->front())) {
      count += block->size();
      continue;
    }
    const auto first = std::upper_bound(block->begin(), block->end(), value, is_worse);
    return count + static_cast<std::size_t>(block->end() - first);
  }
  return count;
}

}  // namespace tune
