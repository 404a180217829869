#include "schedulers/trial_scheduler.h"

#include <chrono>

namespace tune {

std::optional<double> ResultView::number(std::string_view path) const {
  if (path.empty()) return std::nullopt;
  if (const auto reported = find_number(report_->result, path)) return reported;
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  if (path == "training_iteration") return static_cast<double>(report_->iteration);
  if (path == "time_total_s") return seconds(report_->time_total);
  if (path == "time_this_iter_s") return seconds(report_->time_this_iter);
  if (path == "time_since_restore") return seconds(report_->time_since_restore);
  if (path == "timesteps_total") return report_->timesteps_total;
  if (path == "iterations_since_restore") {
    return static_cast<double>(report_->iterations_since_restore);
  }
  return std::nullopt;
}

std::optional<TrialNumber> TrialScheduler::choose(const std::vector<Candidate>& candidates) const {
  return candidates.front().trial;
}

}  // namespace tune
