#include "schedulers/metric_scheduler.h"

#include <algorithm>
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
  const bool has_own = !own_.metric.empty() || own_.mode;
  if (has_own && !experiment.goals.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("scheduler {}: it is given a metric or a mode, and the experiment has "
                            "objectives: leave them out",
                            name_));
  }
  objective_ = experiment;
  if (!own_.metric.empty()) objective_.metric = own_.metric;
  if (own_.mode) objective_.mode = *own_.mode;
  goals_ = goals_of(objective_).size();
  if (goals_ == 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("scheduler {}: it compares trials by a metric, and none is given: set "
                            "metric",
                            name_));
  }
}

namespace {

std::string end_text(double end, const std::string& time_attr, double time) {
  return fmt::format("reached max_t {:.10g} at {} {:.10g}", end, short_time_name(time_attr), time);
}

}  // namespace

// ", without latency_ms".
std::string MetricScheduler::lacks(const ResultView& result) const {
  std::vector<std::string> lacking = metrics_of(objective_);
  std::erase_if(lacking, [&](const std::string& path) { return result.number(path).has_value(); });
  return fmt::format(", without {}", join(lacking, ", "));
}

std::variant<Decision, MetricScheduler::Judged> MetricScheduler::read(
    const ResultView& result, const std::string& time_attr, std::optional<double> next,
    std::optional<double> end) const {
  const std::optional<double> time = result.number(time_attr);
  const bool is_asked = time && next && *time >= *next;  // false for NaN
  if (!is_asked) return Decision::go_on(until(time_attr, next));
  const bool is_at_end = end && *time >= *end;
  Judged judged{*time};
  if (has_merits()) {
    auto found = numbers(result);
    if (!found && is_at_end)
      return Decision::stop(end_text(*end, time_attr, *time) + lacks(result));
    if (!found) return Decision::go_on({time_attr, *time});
    judged.numbers = std::move(*found);
  } else {
    const std::optional<double> value = result.number(objective_.metric);
    if (!value) return Decision::go_on({time_attr, *time});
    judged.value = *value;
  }
  if (is_at_end) return Decision::stop(end_text(*end, time_attr, *time));
  return judged;
}

Milestone MetricScheduler::until(const std::string& time_attr, std::optional<double> next) {
  return next ? Milestone{time_attr, *next} : Milestone{};
}

std::optional<MeritNumbers> MetricScheduler::numbers(const ResultView& result) const {
  return numbers_of(objective_, [&](std::string_view path) { return result.number(path); });
}

std::string MetricScheduler::merit_text(const Merit& merit) const {
  const std::vector<Goal> goals = goals_of(objective_);
  std::string text;
  for (std::size_t i = 0; i < goals.size(); ++i) {
    text += i == 0 ? "" : ", ";
    const double sign = goals[i].mode == Mode::kMax ? 1 : -1;
    append_number(text,
                  std::isfinite(merit.values[i]) ? sign * merit.values[i] + 0.0 : std::nan(""));
  }
  if (goals.size() > 1) text = "(" + text + ")";
  if (merit.violation > 0 && std::isfinite(merit.violation)) text += ", which breaks constraints,";
  return text;
}

RungPlace MetricScheduler::front_place(const Fronts& fronts, std::size_t member,
                                       double milestone) const {
  const double first = fronts.merits()[member].values.front();
  const double sign = goals_of(objective_).front().mode == Mode::kMax ? 1 : -1;
  const double value = std::isfinite(first) ? sign * first + 0.0 : std::nan("");
  return {milestone, value, {}, fronts.place(member) + 1, fronts.size()};
}

std::string MetricScheduler::fronts_text(const Fronts& fronts) {
  if (fronts.size() == 0) return "None";
  const std::size_t count = fronts.fronts().size();
  return fmt::format("{} in {} front{}", fronts.size(), count, count == 1 ? "" : "s");
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

// A text of all that is compared, where a metric and a mode do not say it.
SavedObjective saved_of(const Objective& objective) {
  if (needs_merit(objective)) return {describe(objective), Mode::kMax};
  return {objective.metric, objective.mode};
}

}  // namespace

void MetricScheduler::save_objective(PackWriter& out) const {
  encode(out, saved_of(objective_));
}

bool MetricScheduler::is_own(const Merit& merit) const {
  if (merit.values.size() != (has_merits() ? goals_ : 0)) return false;
  if (merit.violation > 0) return true;
  return merit.violation == 0 &&
         std::ranges::all_of(merit.values, [](double one) { return std::isfinite(one); });
}

void MetricScheduler::read_merits(PackReader& in, Fronts& fronts) const {
  std::vector<Merit> merits;
  decode(in, merits);
  fronts = {};
  for (Merit& merit : merits) {
    if (!is_own(merit)) refuse_state("it has a value that is none of these objectives");
    fronts.add(std::move(merit));
  }
}

// Values under mode min are kept negated: read under mode max they would turn it around.
void MetricScheduler::check_objective(PackReader& in) const {
  SavedObjective saved;
  decode(in, saved);
  const SavedObjective own = saved_of(objective_);
  if (saved.mode != own.mode) {
    const char* names[] = {"max", "min"};
    refuse_state(fmt::format("it was saved under mode {}, and the experiment's is {}",
                             names[static_cast<int>(saved.mode)],
                             names[static_cast<int>(own.mode)]));
  }
  if (saved.metric != own.metric) {
    refuse_state(fmt::format("it has values of the metric '{}', and the experiment's is '{}'",
                             saved.metric, own.metric));
  }
}

std::string_view short_time_name(std::string_view time_attr) {
  return time_attr == "training_iteration" ? "iteration" : time_attr;
}

}  // namespace tune
