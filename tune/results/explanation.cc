#include "tune/results/explanation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/result_view.h"
#include "core/strings.h"
#include "tune/results/event_lines.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/recorded_trials.h"
#include "tune/results/result_lines.h"
#include "tune/results/warm_start.h"
#include "tune/search/basic_variant.h"
#include "tune/search/learning.h"
#include "tune/spec/experiment_spec.h"
#include "tune/spec/objectives.h"
#include "tune/spec/searcher_setup.h"

namespace tune {

namespace {

constexpr std::size_t kNearest = 5;

// Older builds do not name the model that auto asked. There it is told by what the model expects:
// gp a value, tpe none.
std::string model_of(const Value& event, const std::string& searcher,
                     const Explanation::Proposed& proposed) {
  const bool is_named = searcher != "auto" || event.contains("model") || !proposed.acquisition;
  if (is_named) return event.get_or("model", searcher);
  return proposed.mean ? "gp" : "tpe";
}

std::optional<double> number_in(const Value& event, std::string_view key) {
  const Value* value = event.find(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->number();
}

// The number of a trial by its id, "2f1e0_00003".
std::uint64_t number_of(const std::string& trial) {
  std::uint64_t number = 0;
  const std::size_t begin = trial.find('_') + 1;
  std::from_chars(trial.data() + begin, trial.data() + trial.size(), number);
  return number;
}

// ---- events.jsonl -------------------------------------------------------------------------------

// One trial's events.
class Reading {
 public:
  explicit Reading(Explanation& found) : found_(found) {}

  void take(const Value& event) {
    const std::string name = event.get_or("event", "");
    const std::string trial = event.get_or("trial", "");
    if (name == "notice") take_notice(event.get_or("text", ""));
    if (trial.empty()) return;
    if (name == "replaced") first_.try_emplace(trial, event.at("old"));
    if (trial != found_.trial) return take_other(event, name, trial);
    if (!has_begun_ && (name == "proposed" || name == "attempt_started")) {
      has_begun_ = true;
      found_.beside.assign(running_.begin(), running_.end());
    }
    if (name == "proposed") take_proposed(event);
    if (name == "rung") take_rung(event);
    if (name == "verdict") take_verdict(event);
    if (name == "replaced") {
      found_.steps.push_back(
          {event.get<std::uint64_t>("iteration"), "replace", event.get_or("reason", ""), {}});
    }
    if (name == "order") take_order(event);
    if (name == "failure") failure = event;
    if (name == "attempt_ended") outcome = event.get_or("outcome", "");
  }
  const std::vector<std::string>& named() const { return named_; }
  std::optional<ValueAt> then(const std::string& trial) const {
    const auto found = then_.find(trial);
    if (found == then_.end()) return std::nullopt;
    return found->second;
  }

  // The one that the trial began with, when a scheduler gave it others.
  Config first_config(const TrialSummary& trial) const {
    const auto found = first_.find(trial.id);
    return found == first_.end() ? trial.config() : found->second;
  }

  std::uint64_t added_before = 0;  // trials that users added before it
  std::string outcome;             // of its newest attempt that ended
  std::string last_notice;         // that ended all early, before its end
  Value failure;                   // the newest; null: none

 private:
  void take_notice(const std::string& text) {
    const bool ends_all =
        text.find("time budget") != text.npos || text.find("fail_fast") != text.npos;
    if (ends_all) last_notice = text;
  }
  void take_other(const Value& event, const std::string& name, const std::string& trial) {
    const bool is_added = name == "order" && event.get_or("order", "") == "add";
    if (is_added && number_of(trial) < number_of(found_.trial)) ++added_before;
    if (name == "attempt_started") running_.insert(trial);
    if (name == "attempt_ended") running_.erase(trial);
  }
  void take_proposed(const Value& event) {
    Explanation::Proposed& proposed = found_.proposed.emplace();
    proposed.origin = event.get_or("origin", "");
    proposed.results_known = event.get_or("results_known", std::uint64_t{0});
    proposed.pending_known = event.get_or("pending_known", std::uint64_t{0});
    // A deviation of 0, of older builds: the model expects no value.
    if (number_in(event, "sd").value_or(0) > 0) {
      proposed.mean = number_in(event, "mean");
      proposed.standard_deviation = number_in(event, "sd");
    }
    proposed.acquisition = number_in(event, "acquisition");
    proposed.margin = number_in(event, "margin");
    proposed.note = event.get_or("note", "");
    proposed.by = model_of(event, found_.searcher, proposed);
    named_ = event.get_or("neighbours", std::vector<std::string>());
    const Value* values = event.find("neighbour_values");
    if (values == nullptr || !values->is_list()) return;
    for (std::size_t i = 0; i < std::min(named_.size(), values->list().size()); ++i) {
      const Value::List& pair = values->list()[i].list();
      if (pair.size() < 2 || !pair[1].is_number()) continue;  // it was not finite
      ValueAt& then = then_[named_[i]];
      then = {static_cast<std::uint64_t>(pair[0].number()), pair[1].number()};
      for (std::size_t j = 1; pair.size() > 2 && j < pair.size(); ++j) {
        then.numbers.push_back(pair[j].is_number() ? pair[j].number() : std::nan(""));
      }
    }
  }
  void take_rung(const Value& event) {
    Explanation::Step::Rung rung;
    rung.milestone = number_in(event, "milestone").value_or(0);
    rung.value = number_in(event, "value");
    rung.cut_off = number_in(event, "cut_off");
    rung.rank = event.get_or("rank", std::uint64_t{0});
    rung.of = event.get_or("of", std::uint64_t{0});
    found_.steps.push_back(
        {event.get<std::uint64_t>("iteration"), event.get_or("verdict", ""), {}, rung});
  }
  void take_order(const Value& event) {
    found_.orders.push_back({event.get_or("order", ""), event.get_or("iteration", std::uint64_t{0}),
                             event.get_or("user", ""),
                             event.get_or(event.contains("text") ? "text" : "reason", "")});
  }
  // It follows the line of its rung, when there is one.
  void take_verdict(const Value& event) {
    const auto iteration = event.get<std::uint64_t>("iteration");
    const std::string verdict = event.get_or("verdict", "");
    std::vector<Explanation::Step>& steps = found_.steps;
    const bool is_told = !steps.empty() && steps.back().iteration == iteration &&
                         steps.back().rung && steps.back().reason.empty();
    if (!is_told) steps.push_back({iteration, verdict, {}, {}});
    steps.back().verdict = verdict;
    steps.back().reason = event.get_or("reason", "");
  }

  Explanation& found_;
  bool has_begun_ = false;
  std::set<std::string> running_;
  std::vector<std::string> named_;
  std::map<std::string, ValueAt> then_;
  std::map<std::string, Config> first_;
};

// ---- Where it came from -------------------------------------------------------------------------

bool holds(const Config& config, const Config& point) {
  const auto leaves = point.leaves();
  return std::ranges::all_of(leaves, [&](const auto& leaf) {
    const Value* value = config.find(leaf.first);
    return value != nullptr && *value == *leaf.second;
  });
}

// A program's own searcher hands the points out as it likes.
std::optional<std::size_t> alike(const std::vector<Config>& points, const Config& first) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].leaves().empty() && holds(first, points[i])) return i;
  }
  return std::nullopt;
}

// The point that the k-th suggestion is. Searchers that learn hand the points out first, one a
// trial; random search and a grid try each in the cells that it leaves.
std::optional<std::size_t> given_to(const ExperimentSpec& spec, std::uint64_t suggestion) {
  const std::vector<Config>& points = spec.options.points_to_evaluate;
  const std::unique_ptr<Searcher> searcher = spec.options.searcher.make();
  if (auto* variant = dynamic_cast<BasicVariantSearcher*>(searcher.get())) {
    SearcherSetup setup = searcher_setup(spec, objective_of(spec.options));
    setup.num_samples = -1;  // a resume may have asked for less
    variant->configure(setup);
    return variant->given_to(TrialNumber{static_cast<std::uint32_t>(suggestion)});
  }
  return suggestion < points.size() ? std::optional<std::size_t>(suggestion) : std::nullopt;
}

void find_source(Explanation& found, const ExperimentSpec& spec, const Config& first,
                 std::uint64_t suggestion) {
  using Source = Explanation::Source;
  const RunOptions& options = spec.options;
  if (!found.orders.empty() && found.orders.front().order == "add") {
    found.source = Source::kAdded;
    return;
  }
  if (found.proposed) {
    found.source = Source::kProposed;
    return;
  }
  if (!options.points_to_evaluate.empty()) {
    const auto given = found.searcher.empty() ? alike(options.points_to_evaluate, first)
                                              : given_to(spec, suggestion);
    if (given) {
      found.source = Source::kGiven;
      found.given = *given;
      return;
    }
  }
  found.source = found.learns ? Source::kUntold : Source::kRandom;
  if (found.source == Source::kUntold) return;
  for (const auto& [path, domain] : options.config.domains()) {
    const Value* value = first.find(path);
    if (!domain->is_grid() || value == nullptr) continue;
    found.source = Source::kGrid;
    found.grid.push_back(fmt::format("{} = {}", path, value->dump()));
  }
}

// ---- Neighbours ---------------------------------------------------------------------------------

std::vector<double> features_of(const Encoding& encoding, const UnitPoint& point) {
  std::vector<double> features(encoding.feature_count());
  encoding.write_features(point, features);
  return features;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

// Nothing when none of the metrics is a finite number.
std::optional<ValueAt> newest_value(const TrialSummary& trial,
                                    const std::vector<std::string>& metrics) {
  const ResultLine last = last_result_line(trial.directory);
  std::vector<double> values;
  for (const std::string& metric : metrics) {
    const double value = last.number(metric).value_or(std::nan(""));
    values.push_back(std::isfinite(value) ? value : std::nan(""));
  }
  const auto is_known = [](double value) { return !std::isnan(value); };
  if (std::ranges::none_of(values, is_known)) return std::nullopt;
  ValueAt newest{static_cast<std::uint64_t>(last.number("training_iteration").value_or(0)),
                 values.front()};
  if (values.size() > 1) newest.numbers = std::move(values);
  return newest;
}

// Of an experiment that this one began with. What it came to was known from the beginning.
Explanation::Neighbour earlier_neighbour(const EarlierTrial& trial, std::size_t number,
                                         double distance) {
  Explanation::Neighbour one;
  one.trial = trial.name.empty() ? fmt::format("{}/{}", kWarmStartFile, number) : trial.name;
  one.distance = distance;
  one.is_earlier = true;
  if (!trial.values.empty() && std::isfinite(trial.values.back().value)) {
    one.then = one.newest = trial.values.back();
  }
  return one;
}

// Where the trial began: what a scheduler gave it later is not a proposal.
void find_neighbours(Explanation& found, const Analysis& analysis, const ExperimentSpec& spec,
                     const Config& first, const Reading& reading) {
  const Encoding encoding = encoding_of(spec.options.config);
  const Encoded place = encoding.encode(first);
  if (!place.complaint.empty() || encoding.size() == 0) return;
  const std::vector<double> own = features_of(encoding, place.point);
  const auto& named = reading.named();
  for (const TrialSummary& trial : analysis.trials()) {
    if (number_of(trial.id) >= number_of(found.trial)) continue;
    const Encoded other = encoding.encode(reading.first_config(trial));
    if (!other.complaint.empty()) continue;
    const bool is_named = std::ranges::find(named, trial.id) != named.end();
    found.neighbours.push_back({trial.id,
                                distance(own, features_of(encoding, other.point)),
                                is_named,
                                reading.then(trial.id),
                                {}});
  }
  for (std::size_t i = 0; i < spec.earlier.size(); ++i) {
    const Encoded other = encoding.encode(spec.earlier[i].config);
    if (!other.complaint.empty()) continue;
    const double apart = distance(own, features_of(encoding, other.point));
    found.neighbours.push_back(earlier_neighbour(spec.earlier[i], i, apart));
  }
  std::ranges::stable_sort(found.neighbours, {}, &Explanation::Neighbour::distance);
  std::size_t rank = 0;
  std::erase_if(found.neighbours, [&](const Explanation::Neighbour& one) {
    return rank++ >= kNearest && !one.named;
  });
  for (Explanation::Neighbour& one : found.neighbours) {
    if (one.is_earlier) continue;
    const auto trial = std::ranges::find(analysis.trials(), one.trial, &TrialSummary::id);
    one.newest = newest_value(*trial, found.goals);
  }
}

// ---- Why it ended -------------------------------------------------------------------------------

const Explanation::Step* last_of(const Explanation& found, std::string_view verdict) {
  const auto step = std::ranges::find(found.steps.rbegin(), found.steps.rend(), verdict,
                                      &Explanation::Step::verdict);
  return step == found.steps.rend() ? nullptr : &*step;
}

std::string at(const Explanation::Step& step) {
  return fmt::format("after iteration {}: {}", step.iteration, step.reason);
}

std::string why_completed(const ExperimentSpec& spec, const ResultLine& last) {
  for (const StopRule& rule : spec.stop) {
    const auto value = last.number(rule.path);
    if (!value || !is_met(rule, *value)) continue;
    return fmt::format("it met the stop rule {} {} {:g}: {:g}", rule.path,
                       rule.at_most ? "<=" : ">=", rule.bound, *value);
  }
  const double limit = spec.options.max_trial_time_s;
  const auto time = last.number("time_total_s");
  if (limit > 0 && time && *time >= limit) {
    return fmt::format("it had trained for max_trial_time_s, {:g} s", limit);
  }
  return "it came to its own end: its trainable said that it is done";
}

// The newest order for it, when it is this one; null: it is another.
const Explanation::Order* last_order(const Explanation& found, std::string_view order) {
  const auto newest = std::ranges::find_if(found.orders.rbegin(), found.orders.rend(),
                                           [](const auto& one) { return one.order != "note"; });
  const bool is_it = newest != found.orders.rend() && newest->order == order;
  return is_it ? &*newest : nullptr;
}

std::string by_user(const char* done, const Explanation::Order& order) {
  return fmt::format("{} {} it after iteration {}{}{}", order.user, done, order.iteration,
                     order.text.empty() ? "" : ": ", order.text);
}

std::string why_stopped(const Explanation& found, const Reading& reading) {
  if (const Explanation::Order* stop = last_order(found, "stop")) return by_user("stopped", *stop);
  if (const Explanation::Step* stop = last_of(found, "stop")) {
    return "the scheduler stopped it " + at(*stop);
  }
  if (!reading.last_notice.empty()) return "all trials were ended: " + reading.last_notice;
  if (const Explanation::Step* pause = last_of(found, "pause")) {
    return fmt::format(
        "the scheduler had paused it {}; it did not go on before the experiment was "
        "over",
        at(*pause));
  }
  if (reading.outcome.empty()) return "it never began: the experiment was over before";
  return "it ended with the experiment";
}

std::string why_ended(const Explanation& found, const ExperimentSpec& spec, const Reading& reading,
                      const TrialSummary& trial) {
  const Explanation::Order* pause = last_order(found, "pause");
  if (pause != nullptr && !is_over(found.status)) {
    return "it has not ended: " + by_user("paused", *pause) + "; tune unpause lets it go on";
  }
  switch (found.status) {
    case TrialStatus::kTerminated:
      return reading.outcome == "completed" ? why_completed(spec, last_result_line(trial.directory))
                                            : why_stopped(found, reading);
    case TrialStatus::kError:
      if (reading.failure.is_null()) return "it failed";
      return fmt::format(
          "it failed: {} ({} of at most {} failures)", reading.failure.get_or("cause", ""),
          reading.failure.get_or("failures", std::uint64_t{1}), spec.options.max_failures + 1);
    case TrialStatus::kPaused:
      if (const Explanation::Step* step = last_of(found, "pause")) {
        return "it has not ended: the scheduler paused it " + at(*step);
      }
      return "it has not ended: it was paused with the experiment";
    case TrialStatus::kPending:
      return "it has not ended: it waits for its place";
    case TrialStatus::kRunning:
      break;
  }
  return "it has not ended: it runs, or its driver was killed";
}

}  // namespace

Explanation explain(const Analysis& analysis, const std::string& trial) {
  const auto summary = std::ranges::find(analysis.trials(), trial, &TrialSummary::id);
  if (summary == analysis.trials().end()) {
    throw Error(ErrorCode::kBadInput, fmt::format("explaining trial '{}': {} has none of that id",
                                                  trial, analysis.directory().string()));
  }
  const ExperimentSpec spec = read_spec(analysis.directory());
  Explanation found;
  found.trial = trial;
  found.status = summary->status;
  found.config = summary->config();
  found.searcher = spec.options.searcher.name();
  found.learns = learns_from_results(found.searcher);
  found.metric = analysis.metric();
  found.mode = analysis.mode();
  for (const Goal& goal : analysis.objectives()) found.goals.push_back(goal.metric);
  if (!found.metric.empty()) found.goals = {found.metric};
  found.is_constrained = !spec.options.constraints.empty();
  Reading reading(found);
  for_each_event(analysis.directory(),
                 {"proposed", "attempt_started", "attempt_ended", "rung", "verdict", "replaced",
                  "failure", "notice", "order"},
                 [&](const Value& event) { reading.take(event); });
  const Config first = reading.first_config(*summary);
  found.proposed_config = first;
  find_source(found, spec, first, number_of(trial) - reading.added_before);
  find_neighbours(found, analysis, spec, first, reading);
  found.standing = merit_standing(analysis, *summary);
  found.end = why_ended(found, spec, reading, *summary);
  return found;
}

// ---- As a value ---------------------------------------------------------------------------------

namespace {

Value value_of(const std::optional<ValueAt>& value) {
  if (!value) return {};
  Value known{{"iteration", value->iteration}, {"value", value->value}};
  if (!value->numbers.empty()) known.set("values", Value(value->numbers));
  return known;
}

Value value_of(const Explanation::Proposed& proposed) {
  Value value{{"origin", proposed.origin},
              {"by", proposed.by},
              {"results_known", proposed.results_known},
              {"pending_known", proposed.pending_known}};
  if (proposed.mean) value.set("mean", *proposed.mean);
  if (proposed.standard_deviation) value.set("sd", *proposed.standard_deviation);
  if (proposed.acquisition) value.set("acquisition", *proposed.acquisition);
  if (proposed.margin) value.set("margin", *proposed.margin);
  if (!proposed.note.empty()) value.set("note", proposed.note);
  return value;
}

Value value_of(const Explanation::Step& step) {
  Value value{{"iteration", step.iteration}, {"verdict", step.verdict}};
  if (!step.reason.empty()) value.set("reason", step.reason);
  if (!step.rung) return value;
  value.set("milestone", step.rung->milestone);
  if (step.rung->value) value.set("value", *step.rung->value);
  if (step.rung->cut_off) value.set("cut_off", *step.rung->cut_off);
  value.set("rank", step.rung->rank);
  value.set("of", step.rung->of);
  return value;
}

}  // namespace

Value to_value(const Explanation& explanation) {
  constexpr const char* kSources[] = {"random", "grid", "given", "proposed", "untold", "added"};
  Value::List neighbours;
  for (const Explanation::Neighbour& one : explanation.neighbours) {
    Value value{{"trial_id", one.trial},
                {"distance", one.distance},
                {"named", one.named},
                {"then", value_of(one.then)},
                {"newest", value_of(one.newest)}};
    if (one.is_earlier) value.set("earlier", true);
    neighbours.push_back(std::move(value));
  }
  Value::List steps;
  for (const Explanation::Step& one : explanation.steps) steps.push_back(value_of(one));
  Value value{{"trial_id", explanation.trial},
              {"status", status_name(explanation.status)},
              {"config", explanation.config},
              {"proposed_config", explanation.proposed_config},
              {"searcher", explanation.searcher},
              {"source", kSources[static_cast<std::size_t>(explanation.source)]}};
  if (explanation.source == Explanation::Source::kGrid) value.set("grid", explanation.grid);
  if (explanation.source == Explanation::Source::kGiven) value.set("point", explanation.given);
  if (explanation.proposed) value.set("proposed", value_of(*explanation.proposed));
  value.set("beside", explanation.beside);
  value.set("neighbours", Value::make_list(std::move(neighbours)));
  value.set("steps", Value::make_list(std::move(steps)));
  Value::List orders;
  for (const Explanation::Order& one : explanation.orders) {
    orders.push_back(Value{{"order", one.order},
                           {"iteration", one.iteration},
                           {"user", one.user},
                           {"text", one.text}});
  }
  if (!orders.empty()) value.set("orders", Value::make_list(std::move(orders)));
  if (explanation.standing) value.set("standing", to_value(*explanation.standing));
  value.set("end", explanation.end);
  return value;
}

}  // namespace tune
