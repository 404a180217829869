// The checkpoints in the experiment's folder, and in the folders of nodes that do not see it, on
// disks that keep their content when processes die. Follows core/agent/checkpoint_files.h and
// relay_folder.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/agent_contract.h"
#include "core/checkpoint_name.h"
#include "core/relay_contract.h"
#include "core/trial.h"

namespace tune::simulator {

using Where = std::size_t;  // an agent whose folder no other one sees, or
inline constexpr Where kExperimentFolder = ~Where{0};

class SimulatedDisk {
 public:
  using Parts = std::map<std::uint32_t, std::uint64_t>;  // states, by rank

  // The part of rank 0 before any rank writes: an empty temporary folder.
  void make_fresh(Where where, TrialNumber trial, const CheckpointId& id);
  // One rank's complete part; `state` is that of the trainable.
  void write_part(Where where, TrialNumber trial, const CheckpointId& id, std::uint32_t rank,
                  std::uint64_t state);
  // What stands there in the temporary folder gets its name in the experiment's. False: there is no
  // such temporary folder.
  bool promote(Where where, const CheckpointSaved& saved);
  // What stands there is complete, and has its name, where that is not the experiment's folder.
  void name(Where where, TrialNumber trial, const CheckpointId& id) {
    folders_[trial].named.insert({where, id});
  }
  // What has been written there; null: there is no such folder.
  const Parts* on_node(Where where, TrialNumber trial, const CheckpointId& id) const;
  void drop(Where where, TrialNumber trial, const CheckpointId& id);

  // The part of a node of a group comes from there. False: there is no such temporary folder.
  bool take_part(Where where, const CheckpointSaved& saved, std::uint32_t node);
  // These are put into what stands in the temporary folder, which gets its name. False: one is not
  // there.
  bool join(const CheckpointSaved& saved, const std::vector<CheckpointPart>& parts);
  // As it is in an object store.
  void keep(TrialNumber trial, const CheckpointId& id, Parts parts);

  void keep_fetched(std::uint64_t attempt, std::uint32_t node, Parts parts) {
    fetched_[{attempt, node}] = std::move(parts);
  }
  // A node fetches a checkpoint for this attempt, whose node `node` it is. False: there is none.
  bool fetch(std::uint64_t attempt, std::uint32_t node, const CheckpointOrigin& checkpoint);
  void remove_half_written(Where where, TrialNumber trial, AttemptNumber attempt);
  void remove_unrecorded(TrialNumber trial, const std::vector<CheckpointRecord>& records,
                         AttemptNumber through);
  void remove(TrialNumber trial, const CheckpointId& id);

  // The states of all ranks; null: there is no such checkpoint.
  const Parts* find(TrialNumber trial, const CheckpointId& id) const;
  const Parts* fetched(std::uint64_t attempt, std::uint32_t node) const;
  std::set<CheckpointId> checkpoints_of(TrialNumber trial) const;  // whole ones
  std::uint64_t removals() const { return removals_; }             // of whole ones, up to now

 private:
  struct Folder {
    std::map<CheckpointId, Parts> checkpoints;
    std::map<std::pair<Where, CheckpointId>, Parts> temporary;
    std::set<std::pair<Where, CheckpointId>> named;                 // of these
    std::map<std::pair<CheckpointId, std::uint32_t>, Parts> parts;  // of nodes
  };
  std::map<TrialNumber, Folder> folders_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Parts> fetched_;  // by attempt_key and node
  std::uint64_t removals_ = 0;
};

}  // namespace tune::simulator
