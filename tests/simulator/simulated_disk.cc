#include "simulator/simulated_disk.h"

#include <algorithm>

namespace tune::simulator {

void SimulatedDisk::make_fresh(TrialNumber trial, AttemptNumber attempt, std::uint64_t iteration) {
  folders_[trial].temporary[{iteration, attempt}] = {};
}

void SimulatedDisk::write_part(TrialNumber trial, AttemptNumber attempt, std::uint64_t iteration,
                               std::uint32_t rank, std::uint64_t state) {
  folders_[trial].temporary[{iteration, attempt}][rank] = state;
}

bool SimulatedDisk::promote(const CheckpointSaved& saved) {
  Folder& folder = folders_[saved.trial];
  const auto fresh = folder.temporary.find({saved.iteration, saved.attempt});
  if (fresh == folder.temporary.end()) return false;
  folder.checkpoints[{saved.iteration, saved.attempt}] = std::move(fresh->second);
  folder.temporary.erase(fresh);
  return true;
}

bool SimulatedDisk::is_on_node(const CheckpointSaved& saved) const {
  const auto folder = folders_.find(saved.trial);
  return folder != folders_.end() &&
         folder->second.temporary.contains({saved.iteration, saved.attempt});
}

const std::map<std::uint32_t, std::uint64_t>* SimulatedDisk::on_node(
    TrialNumber trial, const CheckpointId& id) const {
  const auto folder = folders_.find(trial);
  if (folder == folders_.end()) return nullptr;
  const auto found = folder->second.temporary.find({id.iteration, id.attempt});
  return found == folder->second.temporary.end() ? nullptr : &found->second;
}

bool SimulatedDisk::fetch(std::uint64_t attempt, const CheckpointOrigin& checkpoint) {
  const Parts* parts = find(checkpoint.trial, {checkpoint.iteration, checkpoint.attempt});
  if (parts == nullptr) return false;
  fetched_[attempt] = *parts;
  return true;
}

const std::map<std::uint32_t, std::uint64_t>* SimulatedDisk::fetched(std::uint64_t attempt) const {
  const auto found = fetched_.find(attempt);
  return found == fetched_.end() ? nullptr : &found->second;
}

void SimulatedDisk::remove_half_written(TrialNumber trial, AttemptNumber attempt) {
  std::erase_if(folders_[trial].temporary,
                [&](const auto& entry) { return entry.first.second == attempt; });
}

void SimulatedDisk::remove_unrecorded(TrialNumber trial,
                                      const std::vector<CheckpointRecord>& records,
                                      AttemptNumber through) {
  Folder& folder = folders_[trial];
  std::erase_if(folder.temporary, [&](const auto& entry) { return entry.first.second <= through; });
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

const std::map<std::uint32_t, std::uint64_t>* SimulatedDisk::find(TrialNumber trial,
                                                                  const CheckpointId& id) const {
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
