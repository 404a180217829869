#include "schedulers/metric_scheduler.h"

#include <cmath>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"

namespace tune {

void MetricScheduler::configure(const Objective& experiment) {
  if (!own_.metric.empty() && !experiment.metric.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("scheduler {}: metric is '{}', and the experiment's is '{}': give it "
                            "in one place",
                            name_, own_.metric, experiment.metric));
  }
  objective_ = experiment;
  if (!own_.metric.empty()) objective_.metric = own_.metric;
  if (own_.mode) objective_.mode = *own_.mode;
  if (objective_.metric.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("scheduler {}: it compares trials by a metric, and none is given: set "
                            "metric",
                            name_));
  }
}

std::variant<Decision, MetricScheduler::Judged> MetricScheduler::read(
    const ResultView& result, const std::string& time_attr, Milestone next,
    std::optional<double> end) const {
  const std::optional<double> time = result.number(time_attr);
  const bool is_asked = time && !next.attribute.empty() && *time >= next.value;  // false for NaN
  if (!is_asked) return Decision::go_on(std::move(next));
  const std::optional<double> value = result.number(objective_.metric);
  if (!value) return Decision::go_on({time_attr, *time});
  if (end && *time >= *end) {
    return Decision::stop(fmt::format("reached max_t {:.10g} at {} {:.10g}", *end,
                                      short_time_name(time_attr), *time));
  }
  return Judged{*time, *value};
}

double MetricScheduler::signed_value(double value) const {
  return (objective_.mode == Mode::kMax ? value : -value) + 0.0;  // -0 would be shown as "-0"
}

std::string MetricScheduler::full_text(double value) const {
  std::string text;
  append_number(text, signed_value(value));
  return text;
}

std::string MetricScheduler::short_text(std::optional<double> value) const {
  if (!value) return "None";
  return std::isnan(*value) ? "nan" : fmt::format("{:.6g}", signed_value(*value));
}

// ---- State

void refuse_scheduler_state(const char* name, const std::string& why) {
  throw Error(ErrorCode::kProtocol, fmt::format("restoring scheduler {}: {}", name, why));
}

void MetricScheduler::refuse_state(const std::string& why) const {
  refuse_scheduler_state(name_, why);
}

namespace {

struct SavedObjective {
  std::string metric;
  Mode mode = Mode::kMax;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.metric, s.mode);
  }
};

}  // namespace

void MetricScheduler::save_objective(PackWriter& out) const {
  encode(out, SavedObjective{objective_.metric, objective_.mode});
}

// Values under mode min are kept negated: read under mode max they would turn it around.
void MetricScheduler::check_objective(PackReader& in) const {
  SavedObjective saved;
  decode(in, saved);
  if (saved.mode != objective_.mode) {
    const char* names[] = {"max", "min"};
    refuse_state(fmt::format("it was saved under mode {}, and the experiment's is {}",
                             names[static_cast<int>(saved.mode)],
                             names[static_cast<int>(objective_.mode)]));
  }
  if (saved.metric != objective_.metric) {
    refuse_state(fmt::format("it has values of the metric '{}', and the experiment's is '{}'",
                             saved.metric, objective_.metric));
  }
}

std::string_view short_time_name(std::string_view time_attr) {
  return time_attr == "training_iteration" ? "iteration" : time_attr;
}

}  // namespace tune
