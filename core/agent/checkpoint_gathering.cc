#include "core/agent/checkpoint_gathering.h"

namespace tune {

std::optional<CheckpointSaved> CheckpointGathering::begin_next(std::set<std::uint32_t> nodes) {
  if (current_ || !waiting_) return std::nullopt;
  current_ = take_waiting();
  awaited_ = std::move(nodes);
  why_not_.clear();
  return current_;
}

bool CheckpointGathering::take(std::uint32_t node, const std::string& why_not) {
  awaited_.erase(node);
  if (why_not_.empty()) why_not_ = why_not;
  return awaited_.empty();
}

CheckpointSaved CheckpointGathering::end() {
  awaited_.clear();
  return *std::exchange(current_, std::nullopt);
}

}  // namespace tune
