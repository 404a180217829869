#include "schedulers/scheduler_parameters.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"

namespace tune {

std::string SchedulerParameters::suggestion(const std::string& wrong,
                                            const std::vector<std::string>& known) {
  const std::string near = nearest(wrong, known);
  return near.empty() ? fmt::format("known are: {}", join(known, ", "))
                      : fmt::format("did you mean '{}'?", near);
}

SchedulerParameters::SchedulerParameters(const char* scheduler, const Config& written,
                                         const std::vector<std::string>& known)
    : scheduler_(scheduler), written_(written) {
  for (const tune::Member& member : written.map()) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("scheduler {}: there is no parameter '{}': {}", scheduler, member.key,
                            suggestion(member.key, known)));
  }
}

void SchedulerParameters::refuse_word(const char* key, const std::string& found, const char* first,
                                      const char* second) const {
  throw Error(ErrorCode::kBadInput, fmt::format("scheduler {}: {} is '{}': it must be {} or {}",
                                                scheduler_, key, found, first, second));
}

void SchedulerParameters::read_objective(std::string& metric, std::optional<Mode>& mode) const {
  read("metric", metric);
  Mode given = mode.value_or(Mode::kMax);
  read("mode", given, {"max", Mode::kMax}, {"min", Mode::kMin});
  if (contains("mode")) mode = given;
}

std::string plain_scheduler_name(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  for (const std::string_view word : {"scheduler", "rule"}) {
    if (plain.ends_with(word)) plain.resize(plain.size() - word.size());
  }
  constexpr std::string_view kPbt = "populationbasedtraining";
  if (plain.starts_with(kPbt)) plain.replace(0, kPbt.size(), "pbt");
  return plain == "asynchyperband" ? "asha" : plain;
}

}  // namespace tune
