// The checkpoints in the experiment's folder, on a disk that keeps its content when processes die.
// Follows core/agent/checkpoint_files.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/agent_contract.h"
#include "core/checkpoint_name.h"
#include "core/trial.h"

namespace tune::simulator {

class SimulatedDisk {
 public:
  // The part of rank 0 before any rank writes: an empty temporary folder.
  void make_fresh(TrialNumber trial, AttemptNumber attempt, std::uint64_t iteration);
  // One rank's complete part; `state` is that of the trainable.
  void write_part(TrialNumber trial, AttemptNumber attempt, std::uint64_t iteration,
                  std::uint32_t rank, std::uint64_t state);
  // False: there is no such temporary folder.
  bool promote(const CheckpointSaved& saved);
  // Whether a complete temporary folder stands there, on a node that relays.
  bool is_on_node(const CheckpointSaved& saved) const;
  // The states of all ranks in it; null: there is none.
  const std::map<std::uint32_t, std::uint64_t>* on_node(TrialNumber trial,
                                                        const CheckpointId& id) const;
  void keep_fetched(std::uint64_t attempt, std::map<std::uint32_t, std::uint64_t> parts) {
    fetched_[attempt] = std::move(parts);
  }
  // A node that relays fetches a checkpoint for this attempt. False: there is none.
  bool fetch(std::uint64_t attempt, const CheckpointOrigin& checkpoint);
  void remove_half_written(TrialNumber trial, AttemptNumber attempt);
  void remove_unrecorded(TrialNumber trial, const std::vector<CheckpointRecord>& records,
                         AttemptNumber through);
  void remove(TrialNumber trial, const CheckpointId& id);

  // The states of all ranks; null: there is no such checkpoint.
  const std::map<std::uint32_t, std::uint64_t>* find(TrialNumber trial,
                                                     const CheckpointId& id) const;
  const std::map<std::uint32_t, std::uint64_t>* fetched(std::uint64_t attempt) const;
  std::set<CheckpointId> checkpoints_of(TrialNumber trial) const;  // whole ones
  std::uint64_t removals() const { return removals_; }             // of whole ones, up to now

 private:
  using Parts = std::map<std::uint32_t, std::uint64_t>;  // by rank
  struct Folder {
    std::map<CheckpointId, Parts> checkpoints;
    std::map<std::pair<std::uint64_t, AttemptNumber>, Parts> temporary;
  };
  std::map<TrialNumber, Folder> folders_;
  std::map<std::uint64_t, Parts> fetched_;  // by attempt_key
  std::uint64_t removals_ = 0;
};

}  // namespace tune::simulator
