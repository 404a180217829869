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
  folder.checkpoints[saved.iteration] = std::move(fresh->second);
  folder.temporary.erase(fresh);
  return true;
}

void SimulatedDisk::remove_half_written(TrialNumber trial, AttemptNumber attempt) {
  std::erase_if(folders_[trial].temporary,
                [&](const auto& entry) { return entry.first.second == attempt; });
}

void SimulatedDisk::remove_unrecorded(TrialNumber trial,
                                      const std::vector<CheckpointRecord>& records) {
  Folder& folder = folders_[trial];
  folder.temporary.clear();
  std::erase_if(folder.checkpoints, [&](const auto& entry) {
    return std::ranges::none_of(
        records, [&](const CheckpointRecord& record) { return record.iteration == entry.first; });
  });
}

void SimulatedDisk::remove(TrialNumber trial, std::uint64_t iteration) {
  folders_[trial].checkpoints.erase(iteration);
}

const std::map<std::uint32_t, std::uint64_t>* SimulatedDisk::find(TrialNumber trial,
                                                                  std::uint64_t iteration) const {
  const auto folder = folders_.find(trial);
  if (folder == folders_.end()) return nullptr;
  const auto found = folder->second.checkpoints.find(iteration);
  return found == folder->second.checkpoints.end() ? nullptr : &found->second;
}

std::vector<std::uint64_t> SimulatedDisk::checkpoints_of(TrialNumber trial) const {
  std::vector<std::uint64_t> found;
  const auto folder = folders_.find(trial);
  if (folder == folders_.end()) return found;
  for (const auto& [iteration, parts] : folder->second.checkpoints) found.push_back(iteration);
  return found;
}

}  // namespace tune::simulator
