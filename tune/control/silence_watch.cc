#include "tune/control/silence_watch.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

namespace tune {

namespace {

constexpr Duration kOwnGap = std::chrono::seconds(10);

Duration mean_step(const Reported& report) {
  const auto steps = std::max<std::uint64_t>(1, report.iterations_since_restore);
  return report.time_since_restore / static_cast<std::int64_t>(steps);
}

}  // namespace

void SilenceWatch::record(const Record& record, ExperimentTime now) {
  if (const auto* result = std::get_if<ResultRecorded>(&record)) {
    if (result->done) {
      heard_.erase(result->trial.number);
      return;
    }
    const auto known = heard_.find(result->trial.number);
    const bool is_told = known != heard_.end() && known->second.is_told;
    heard_[result->trial.number] = {now, mean_step(result->report), is_told};
  } else if (const auto* verdict = std::get_if<VerdictGiven>(&record)) {
    heard_.erase(verdict->trial.number);
  } else if (const auto* over = std::get_if<AttemptOver>(&record)) {
    heard_.erase(over->trial.number);
  }
}

std::vector<std::string> SilenceWatch::look(ExperimentTime now, bool store_is_silent) {
  const Duration gap = now - last_look_.value_or(now);
  last_look_ = now;
  std::vector<std::string> lines;
  for (auto& [trial, heard] : heard_) {
    if (gap > kOwnGap || store_is_silent) heard.at = std::min(heard.at + gap, now);
    const Duration silence = now - heard.at;
    const Duration limit = std::max(heard.usual_step * kUsualSteps, kShortest);
    if (heard.is_told || store_is_silent || silence <= limit) continue;
    heard.is_told = true;
    lines.push_back(
        fmt::format("trial {} has reported nothing for {:.0f} s; its steps take {:.3g} s",
                    trial_id(experiment_, trial), seconds(silence), seconds(heard.usual_step)));
  }
  return lines;
}

}  // namespace tune
