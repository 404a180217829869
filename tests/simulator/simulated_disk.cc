#include "simulator/simulated_disk.h"

#include <algorithm>

namespace tune::simulator {

namespace {

CheckpointId id_of(const CheckpointSaved& saved) {
  return {saved.iteration, saved.attempt};
}

}  // namespace

void SimulatedDisk::make_fresh(Where where, TrialNumber trial, const CheckpointId& id) {
  folders_[trial].temporary[{where, id}] = {};
}

void SimulatedDisk::write_part(Where where, TrialNumber trial, const CheckpointId& id,
                               std::uint32_t rank, std::uint64_t state) {
  folders_[trial].temporary[{where, id}][rank] = state;
}

bool SimulatedDisk::promote(Where where, const CheckpointSaved& saved) {
  Folder& folder = folders_[saved.trial];
  const auto fresh = folder.temporary.find({where, id_of(saved)});
  if (fresh == folder.temporary.end()) return false;
  folder.checkpoints[id_of(saved)] = std::move(fresh->second);
  folder.temporary.erase(fresh);
  return true;
}

const SimulatedDisk::Parts* SimulatedDisk::on_node(Where where, TrialNumber trial,
                                                   const CheckpointId& id) const {
  const auto folder = folders_.find(trial);
  if (folder == folders_.end()) return nullptr;
  const auto found = folder->second.temporary.find({where, id});
  return found == folder->second.temporary.end() ? nullptr : &found->second;
}

void SimulatedDisk::drop(Where where, TrialNumber trial, const CheckpointId& id) {
  folders_[trial].temporary.erase({where, id});
  folders_[trial].named.erase({where, id});
}

bool SimulatedDisk::take_part(Where where, const CheckpointSaved& saved, std::uint32_t node) {
  const Parts* found = on_node(where, saved.trial, id_of(saved));
  if (found == nullptr) return false;
  folders_[saved.trial].parts[{id_of(saved), node}] = *found;
  drop(where, saved.trial, id_of(saved));
  return true;
}

bool SimulatedDisk::join(const CheckpointSaved& saved, const std::vector<CheckpointPart>& parts) {
  Folder& folder = folders_[saved.trial];
  const CheckpointId id = id_of(saved);
  const bool all_are_there = std::ranges::all_of(parts, [&](const CheckpointPart& part) {
    return folder.parts.contains({id, part.node});
  });
  if (!all_are_there) return false;
  Parts& whole = folder.temporary[{kExperimentFolder, id}];
  for (const CheckpointPart& part : parts) whole.merge(folder.parts.at({id, part.node}));
  std::erase_if(folder.parts, [&](const auto& one) { return one.first.first == id; });
  return promote(kExperimentFolder, saved);
}

void SimulatedDisk::keep(TrialNumber trial, const CheckpointId& id, Parts parts) {
  folders_[trial].checkpoints[id] = std::move(parts);
}

bool SimulatedDisk::fetch(std::uint64_t attempt, std::uint32_t node,
                          const CheckpointOrigin& checkpoint) {
  const Parts* parts = find(checkpoint.trial, {checkpoint.iteration, checkpoint.attempt});
  if (parts == nullptr) return false;
  keep_fetched(attempt, node, *parts);
  return true;
}

const SimulatedDisk::Parts* SimulatedDisk::fetched(std::uint64_t attempt,
                                                   std::uint32_t node) const {
  const auto found = fetched_.find({attempt, node});
  return found == fetched_.end() ? nullptr : &found->second;
}

void SimulatedDisk::remove_half_written(Where where, TrialNumber trial, AttemptNumber attempt) {
  Folder& folder = folders_[trial];
  std::erase_if(folder.temporary, [&](const auto& entry) {
    return entry.first.first == where && entry.first.second.attempt == attempt &&
           !folder.named.contains(entry.first);
  });
  std::erase_if(folder.parts, [&](const auto& entry) {
    return where == kExperimentFolder && entry.first.first.attempt == attempt;
  });
}

void SimulatedDisk::remove_unrecorded(TrialNumber trial,
                                      const std::vector<CheckpointRecord>& records,
                                      AttemptNumber through) {
  Folder& folder = folders_[trial];
  std::erase_if(folder.temporary, [&](const auto& entry) {
    return entry.first.first == kExperimentFolder && entry.first.second.attempt <= through;
  });
  std::erase_if(folder.parts,
                [&](const auto& entry) { return entry.first.first.attempt <= through; });
  removals_ += std::erase_if(folder.checkpoints, [&](const auto& entry) {
    const CheckpointId& id = entry.first;
    return id.attempt <= through &&
           std::ranges::none_of(records, [&](const CheckpointRecord& record) {
             return !record.origin && CheckpointId{record.iteration, record.attempt} == id;
           });
  });
}

void SimulatedDisk::remove(TrialNumber trial, const CheckpointId& id) {
  removals_ += folders_[trial].checkpoints.erase(id);
}

const SimulatedDisk::Parts* SimulatedDisk::find(TrialNumber trial, const CheckpointId& id) const {
  const auto folder = folders_.find(trial);
  if (folder == folders_.end()) return nullptr;
  const auto found = folder->second.checkpoints.find(id);
  return found == folder->second.checkpoints.end() ? nullptr : &found->second;
}

std::set<CheckpointId> SimulatedDisk::checkpoints_of(TrialNumber trial) const {
  std::set<CheckpointId> found;
  const auto folder = folders_.find(trial);
  if (folder == folders_.end()) return found;
  for (const auto& [id, parts] : folder->second.checkpoints) found.insert(id);
  return found;
}

}  // namespace tune::simulator
