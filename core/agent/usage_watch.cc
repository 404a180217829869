#include "core/agent/usage_watch.h"

#include <algorithm>

#include "core/platform/system_clock.h"

namespace tune {

void UsageWatch::add(WorkerId worker, const StartWorker& start, pid_t pid, Duration now) {
  if (attempts_.empty()) next_ = std::max(next_, now + UsageLog::kEvery);
  const std::uint64_t key = attempt_key(start.launch.trial, start.launch.attempt);
  ranks_[worker] = {key, pid};
  const auto [at, is_new] = attempts_.try_emplace(key);
  UsedBy& one = at->second;
  if (is_new) {
    one.attempt = start.launch.attempt;
    one.begun = now;
    one.folder = start.trial_directory;
  }
  one.groups.insert(pid);
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    const auto& shown = start.gpu_devices;
    const bool is_shown = std::find(shown.begin(), shown.end(), gpus_[i].device) != shown.end();
    if (is_shown && !gpus_[i].uuid.empty()) one.gpus.emplace(i, gpus_[i].uuid);
  }
}

void UsageWatch::remove(WorkerId worker) {
  const auto rank = ranks_.find(worker);
  if (rank == ranks_.end()) return;
  const auto [key, pid] = rank->second;
  ranks_.erase(rank);
  const auto attempt = attempts_.find(key);
  attempt->second.groups.erase(pid);
  if (attempt->second.groups.empty()) attempts_.erase(attempt);
}

void UsageWatch::look(Duration now, FileWorker& files) {
  if (attempts_.empty() || looks_ || now < next_) return;
  looks_ = true;
  files.give([this, log = log_, attempts = attempts_]() -> FileWorker::Outcome {
    const SystemClock clock;
    const Duration begun = clock.monotonic();
    log->look(begun, clock.wall(), attempts);
    const Duration took = clock.monotonic() - begun;
    return [this, begun, took] {
      looks_ = false;
      next_ = begun + std::max(UsageLog::kEvery, took * 100);
    };
  });
}

}  // namespace tune
