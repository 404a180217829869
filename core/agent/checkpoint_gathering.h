// CheckpointGathering: the checkpoints of a group whose nodes do not all write into one folder, on
// their way to the one place where each is whole: which is carried, what of it is still awaited.
// Pure; the attempt that leads does what it says (core/agent/attempt_gathering.cc).
//
// The nodes carry the parts of one checkpoint at a time, and the lead says which. If each node
// chose for itself, as a trial on one node does, the newest would take the place of another one on
// each, and where saving is faster than carrying no checkpoint would ever be there on all.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/agent_contract.h"

namespace tune {

class CheckpointGathering {
 public:
  // It is whole on all nodes. Returns the one that waited until now, whose place it takes.
  std::optional<CheckpointSaved> add(const CheckpointSaved& saved) {
    return std::exchange(waiting_, saved);
  }
  // The one whose parts these nodes are to carry now; nothing: another is on its way, or none
  // waits.
  std::optional<CheckpointSaved> begin_next(std::set<std::uint32_t> nodes);

  const std::optional<CheckpointSaved>& current() const { return current_; }
  bool awaits(std::uint32_t node) const { return current_ && awaited_.contains(node); }
  bool awaits(std::uint32_t node, const CheckpointSaved& saved) const {
    return awaits(node) && saved.iteration == current_->iteration;
  }
  // That node's part is stored, or will not be. True: no more of them is awaited.
  bool take(std::uint32_t node, const std::string& why_not);
  const std::string& why_not() const { return why_not_; }  // empty: all are stored
  bool is_joining() const { return current_ && awaited_.empty(); }
  // The current one is over.
  CheckpointSaved end();
  // Nothing more comes of the others: all that was on its way, or waited.
  std::optional<CheckpointSaved> take_waiting() { return std::exchange(waiting_, std::nullopt); }

  bool has_waiting() const { return waiting_.has_value(); }
  bool is_empty() const { return !current_ && !waiting_; }

 private:
  std::optional<CheckpointSaved> current_;
  std::set<std::uint32_t> awaited_;  // nodes
  std::string why_not_;
  std::optional<CheckpointSaved> waiting_;
};

}  // namespace tune
