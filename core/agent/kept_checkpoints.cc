#include "core/agent/kept_checkpoints.h"

namespace tune {

void KeptCheckpoints::keep(const CheckpointOrigin& checkpoint) {
  const auto [kept, is_first] = kept_.try_emplace(checkpoint.trial, checkpoint);
  if (is_first || kept->second == checkpoint) return;
  files_.remove(folder_of(kept->second));
  kept->second = checkpoint;
}

void KeptCheckpoints::on_ended(TrialNumber trial, bool is_kept) {
  if (!is_kept) return drop(trial);
  if (!kept_.contains(trial)) return;
  std::erase(waiting_, trial);
  waiting_.push_back(trial);
  if (waiting_.size() > kMostWaiting) drop(waiting_.front());
}

bool KeptCheckpoints::give(TrialNumber trial, const CheckpointOrigin& checkpoint,
                           const RelayPlace& place) {
  const auto kept = kept_.find(trial);
  if (kept == kept_.end() || kept->second != checkpoint) return drop(trial), false;
  try {
    files_.move(folder_of(checkpoint), place.place);
  } catch (const Error&) {  // it is fetched
    return drop(trial), false;
  }
  std::erase(waiting_, trial);
  kept_.erase(kept);
  return true;
}

void KeptCheckpoints::drop(TrialNumber trial) {
  std::erase(waiting_, trial);
  const auto kept = kept_.find(trial);
  if (kept == kept_.end()) return;
  files_.remove(folder_of(kept->second));
  kept_.erase(kept);
}

}  // namespace tune
