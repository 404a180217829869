#include "schedulers/scheduler_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "schedulers/asha.h"
#include "schedulers/fifo.h"

namespace tune {

namespace {

const std::vector<std::string> kSchedulers = {"fifo", "asha", "AsyncHyperBand"};
const std::vector<std::string> kAshaKeys = {
    "max_t",  "grace_period", "reduction_factor", "brackets", "time_attr",
    "metric", "mode",         "stop_last_trials", "rule",     "min_rung_size",
    "type"};

std::string suggestion(const std::string& wrong, const std::vector<std::string>& known) {
  const std::string near = nearest(wrong, known);
  return near.empty() ? fmt::format("known are: {}", join(known, ", "))
                      : fmt::format("did you mean '{}'?", near);
}

void check_asha_keys(const Config& parameters) {
  for (const Member& member : parameters.map()) {
    if (std::find(kAshaKeys.begin(), kAshaKeys.end(), member.key) != kAshaKeys.end()) continue;
    throw Error(ErrorCode::kBadInput, fmt::format("scheduler asha: there is no parameter '{}': {}",
                                                  member.key, suggestion(member.key, kAshaKeys)));
  }
}

template <class T>
T one_of(const Config& parameters, const char* key, std::pair<const char*, T> first,
         std::pair<const char*, T> second) {
  const auto text = parameters.get<std::string>(key);
  for (const auto& [name, value] : {first, second}) {
    if (text == name) return value;
  }
  throw Error(ErrorCode::kBadInput, fmt::format("scheduler asha: {} is '{}': it must be {} or {}",
                                                key, text, first.first, second.first));
}

SchedulerSpec asha_from(const Config& parameters) {
  check_asha_keys(parameters);
  AshaOptions options;
  options.max_t = parameters.get_or("max_t", options.max_t);
  options.grace_period = parameters.get_or("grace_period", options.grace_period);
  options.reduction_factor = parameters.get_or("reduction_factor", options.reduction_factor);
  options.brackets = parameters.get_or("brackets", options.brackets);
  options.time_attr = parameters.get_or("time_attr", options.time_attr);
  options.metric = parameters.get_or("metric", options.metric);
  options.stop_last_trials = parameters.get_or("stop_last_trials", options.stop_last_trials);
  options.min_rung_size = parameters.get_or("min_rung_size", options.min_rung_size);
  if (parameters.contains("mode")) {
    options.mode = one_of<Mode>(parameters, "mode", {"max", Mode::kMax}, {"min", Mode::kMin});
  }
  if (parameters.contains("type")) {
    options.type = one_of<AshaType>(parameters, "type", {"stop", AshaType::kStop},
                                    {"promote", AshaType::kPromote});
  }
  if (parameters.contains("rule") && options.type == AshaType::kPromote) {
    throw Error(ErrorCode::kBadInput,
                "scheduler asha: rule is of type stop: promotion takes the best floor(n / "
                "reduction_factor); leave it out");
  }
  if (parameters.contains("rule")) {
    options.rule =
        one_of<AshaRule>(parameters, "rule", {"ray", AshaRule::kRay}, {"top", AshaRule::kTop});
  }
  return asha(options);
}

}  // namespace

SchedulerSpec::SchedulerSpec() : SchedulerSpec(fifo()) {}

SchedulerSpec fifo() {
  return SchedulerSpec("fifo", {}, [] { return std::make_unique<FifoScheduler>(); });
}

namespace {

// Ray Tune knows ASHA as asha, ASHAScheduler, AsyncHyperBand, async_hyperband and more: upper case,
// underscores and the word Scheduler at the end do not matter.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const std::string_view word = "scheduler";
  if (plain.ends_with(word)) plain.resize(plain.size() - word.size());
  return plain == "asynchyperband" ? "asha" : plain;
}

}  // namespace

SchedulerSpec scheduler_from_config(const std::string& name, const Config& parameters) {
  const std::string plain = plain_name(name);
  if (plain == "asha") return asha_from(parameters);
  if (plain == "fifo") {
    if (!parameters.map().empty()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("scheduler fifo: it has no parameters, found '{}'",
                              parameters.map().front().key));
    }
    return fifo();
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("there is no scheduler '{}': {}", name, suggestion(name, kSchedulers)));
}

}  // namespace tune
