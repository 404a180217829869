#include "core/agent/memory_limits.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace tune {
namespace {

constexpr int kLastTries = 50;  // for what ranks started to end, at the end
constexpr std::chrono::milliseconds kRetry{10};

}  // namespace

MemoryLimits::MemoryLimits(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {
  if (limit_bytes > 0) cgroups_ = MemoryCgroups::find();
}

MemoryLimits::MemoryLimits(std::int64_t limit_bytes, MemoryCgroups cgroups)
    : limit_bytes_(limit_bytes), cgroups_(std::move(cgroups)) {}

MemoryLimits::~MemoryLimits() {
  for (const auto& [attempt, limit] : live_) ended_.insert(attempt);
  remove_ended();
  for (int tries = 0; !ended_.empty() && tries < kLastTries; ++tries) {
    std::this_thread::sleep_for(kRetry);
    remove_ended();
  }
}

std::string MemoryLimits::why_not() const {
  if (!cgroups_ || limits()) return {};
  return fmt::format(
      "a trial's memory of {} is counted but not limited, one that needs more may take others with "
      "it: {}",
      memory_text(limit_bytes_), cgroups_->why_not());
}

std::string MemoryLimits::add(std::uint64_t attempt, pid_t pid, int nodes) {
  if (!limits()) return {};
  const std::string name = std::to_string(attempt);
  const std::int64_t limit = (limit_bytes_ + nodes - 1) / nodes;
  std::string failed;
  if (live_.try_emplace(attempt, limit).second) failed = cgroups_->make(name, limit);
  return failed.empty() ? cgroups_->add(name, pid) : failed;
}

std::optional<std::string> MemoryLimits::excess(std::uint64_t attempt) const {
  if (!limits() || !cgroups_->was_exceeded(std::to_string(attempt))) return std::nullopt;
  const auto own = live_.find(attempt);
  return fmt::format("needed more than its memory of {}",
                     memory_text(own == live_.end() ? limit_bytes_ : own->second));
}

void MemoryLimits::end(std::uint64_t attempt) {
  if (live_.erase(attempt) > 0) ended_.insert(attempt);
  remove_ended();
}

void MemoryLimits::remove_ended() {
  std::erase_if(ended_,
                [this](std::uint64_t one) { return cgroups_->remove(std::to_string(one)); });
}

std::string memory_text(std::int64_t bytes) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  const bool is_large = bytes >= kGiB;
  const double amount =
      static_cast<double>(bytes) / static_cast<double>(is_large ? kGiB : kGiB >> 10);
  return fmt::format("{:g} {}", amount, is_large ? "GiB" : "MiB");
}

}  // namespace tune
