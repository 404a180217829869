#include "schedulers/scheduler_spec.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "schedulers/asha.h"
#include "schedulers/fifo.h"
#include "schedulers/hyperband.h"
#include "schedulers/median_stopping.h"

namespace tune {

namespace {

using Keys = std::vector<std::string>;

const Keys kSchedulers = {"fifo", "asha", "AsyncHyperBand", "hyperband", "median_stopping"};
const Keys kAshaKeys = {"max_t",  "grace_period", "reduction_factor", "brackets", "time_attr",
                        "metric", "mode",         "stop_last_trials", "rule",     "min_rung_size",
                        "type"};
const Keys kHyperBandKeys = {"max_t",  "grace_period", "reduction_factor", "time_attr",
                             "metric", "mode",         "stop_last_trials"};
const Keys kMedianKeys = {"grace_period", "min_samples_required", "rule", "time_attr", "metric",
                          "mode"};

std::string suggestion(const std::string& wrong, const Keys& known) {
  const std::string near = nearest(wrong, known);
  return near.empty() ? fmt::format("known are: {}", join(known, ", "))
                      : fmt::format("did you mean '{}'?", near);
}

// The parameters of one scheduler, as they were written.
class Parameters {
 public:
  Parameters(const char* scheduler, const Config& written, const Keys& known)
      : scheduler_(scheduler), written_(written) {
    for (const Member& member : written.map()) {
      if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
      throw Error(ErrorCode::kBadInput,
                  fmt::format("scheduler {}: there is no parameter '{}': {}", scheduler, member.key,
                              suggestion(member.key, known)));
    }
  }

  bool contains(const char* key) const { return written_.contains(key); }

  template <class T>
  void read(const char* key, T& value) const {
    value = written_.get_or(key, value);
  }
  template <class T>
  void read(const char* key, T& value, std::pair<const char*, std::type_identity_t<T>> first,
            std::pair<const char*, std::type_identity_t<T>> second) const {
    if (!contains(key)) return;
    const auto text = written_.get<std::string>(key);
    for (const auto& [name, named] : {first, second}) {
      if (text == name) return void(value = named);
    }
    throw Error(ErrorCode::kBadInput,
                fmt::format("scheduler {}: {} is '{}': it must be {} or {}", scheduler_, key, text,
                            first.first, second.first));
  }
  void read_objective(std::string& metric, std::optional<Mode>& mode) const {
    read("metric", metric);
    Mode given = mode.value_or(Mode::kMax);
    read("mode", given, {"max", Mode::kMax}, {"min", Mode::kMin});
    if (contains("mode")) mode = given;
  }

 private:
  const char* scheduler_;
  const Config& written_;
};

SchedulerSpec asha_from(const Config& written) {
  const Parameters parameters("asha", written, kAshaKeys);
  AshaOptions options;
  parameters.read("max_t", options.max_t);
  parameters.read("grace_period", options.grace_period);
  parameters.read("reduction_factor", options.reduction_factor);
  parameters.read("brackets", options.brackets);
  parameters.read("time_attr", options.time_attr);
  parameters.read("stop_last_trials", options.stop_last_trials);
  parameters.read("min_rung_size", options.min_rung_size);
  parameters.read_objective(options.metric, options.mode);
  parameters.read("rule", options.rule, {"ray", AshaRule::kRay}, {"top", AshaRule::kTop});
  parameters.read("type", options.type, {"stop", AshaType::kStop}, {"promote", AshaType::kPromote});
  if (parameters.contains("rule") && options.type == AshaType::kPromote) {
    throw Error(ErrorCode::kBadInput,
                "scheduler asha: rule is of type stop: promotion takes the best floor(n / "
                "reduction_factor); leave it out");
  }
  return asha(options);
}

SchedulerSpec hyperband_from(const Config& written) {
  const Parameters parameters("hyperband", written, kHyperBandKeys);
  HyperBandOptions options;
  parameters.read("max_t", options.max_t);
  parameters.read("grace_period", options.grace_period);
  parameters.read("reduction_factor", options.reduction_factor);
  parameters.read("time_attr", options.time_attr);
  parameters.read("stop_last_trials", options.stop_last_trials);
  parameters.read_objective(options.metric, options.mode);
  return hyperband(options);
}

SchedulerSpec median_stopping_from(const Config& written) {
  const Parameters parameters("median_stopping", written, kMedianKeys);
  MedianStoppingOptions options;
  parameters.read("grace_period", options.grace_period);
  parameters.read("min_samples_required", options.min_samples_required);
  parameters.read("rule", options.rule, {"mean", MedianRule::kMean}, {"best", MedianRule::kBest});
  parameters.read("time_attr", options.time_attr);
  parameters.read_objective(options.metric, options.mode);
  return median_stopping(options);
}

}  // namespace

SchedulerSpec::SchedulerSpec() : SchedulerSpec(fifo()) {}

SchedulerSpec fifo() {
  return SchedulerSpec("fifo", {}, [] { return std::make_unique<FifoScheduler>(); });
}

namespace {

// Ray Tune knows ASHA as asha, ASHAScheduler, AsyncHyperBand, async_hyperband and more: upper case,
// underscores and the words Scheduler and Rule at the end do not matter.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  for (const std::string_view word : {"scheduler", "rule"}) {
    if (plain.ends_with(word)) plain.resize(plain.size() - word.size());
  }
  return plain == "asynchyperband" ? "asha" : plain;
}

}  // namespace

SchedulerSpec scheduler_from_config(const std::string& name, const Config& parameters) {
  const std::string plain = plain_name(name);
  if (plain == "asha") return asha_from(parameters);
  if (plain == "hyperband") return hyperband_from(parameters);
  if (plain == "medianstopping") return median_stopping_from(parameters);
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
