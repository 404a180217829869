#include "tune/results/analysis.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/checkpoint_name.h"
#include "core/ids.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/strings.h"
#include "schedulers/fronts.h"
#include "schedulers/merit.h"
#include "tune/results/csv.h"
#include "tune/results/event_lines.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/experiment_head.h"
#include "tune/results/object_checkpoints.h"
#include "tune/results/result_lines.h"
#include "tune/results/result_text.h"
#include "tune/results/results_csv.h"
#include "tune/results/trial_stories.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/objectives.h"
#include "tune/spec/option_reader.h"

namespace tune {

struct AnalysisQuestion {
  std::string metric;
  Mode mode = Mode::kMax;
  Scope scope = Scope::kLast;
};

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 5> kScopeNames = {"last", "all", "avg", "last-5-avg",
                                                    "last-10-avg"};
constexpr std::size_t kNamedTrials = 3;  // in the message of a TrialError

[[noreturn]] void bad_input(std::string message) {
  throw Error(ErrorCode::kBadInput, std::move(message));
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// ---- The folder ---------------------------------------------------------------------------------

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) throw file_error("reading the folder", directory, error.value());
  return entries;
}

// The number of a trial's folder, "2f1e0_00003"; nothing for any other name.
std::optional<std::uint64_t> trial_number(std::string_view folder) {
  constexpr std::size_t kHash = 5;
  constexpr std::size_t kDigits = 5;
  if (folder.size() < kHash + 1 + kDigits || folder[kHash] != '_') return std::nullopt;
  if (folder.substr(0, kHash).find_first_not_of("0123456789abcdef") != folder.npos) {
    return std::nullopt;
  }
  return whole_number(folder.substr(kHash + 1));
}

std::vector<TrialSummary> find_trials(const fs::path& directory) {
  std::vector<std::pair<std::uint64_t, TrialSummary>> found;
  for (fs::path& entry : entries_of(directory)) {
    TrialSummary trial;
    trial.id = entry.filename().string();
    const auto number = trial_number(trial.id);
    if (!number || !fs::exists(entry / "params.json")) continue;
    trial.directory = std::move(entry);
    found.emplace_back(*number, std::move(trial));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.id) < std::tie(b.first, b.second.id);
  });
  std::vector<TrialSummary> trials;
  for (auto& [number, trial] : found) trials.push_back(std::move(trial));
  return trials;
}

std::map<std::string, TrialStatus> read_statuses(const fs::path& file) {
  std::map<std::string, TrialStatus> statuses;
  if (!fs::exists(file)) return statuses;
  const std::string all = read_file(file);
  std::string_view text = all;
  std::vector<std::string> row;
  for (next_csv_row(text, row); next_csv_row(text, row);) {  // the first is the header
    if (row.size() < 2) continue;
    if (const auto status = status_from_name(row[1])) statuses[row[0]] = *status;
  }
  return statuses;
}

// The status of a trial whose end was never written down.
TrialStatus status_from_files(const TrialSummary& trial) {
  const Result last = trial.last_result();
  const Value* done = last.find("done");
  if (done != nullptr && *done == Value(true)) return TrialStatus::kTerminated;
  const fs::path error = trial.directory / "error.txt";
  if (fs::exists(error)) {
    const std::string text = read_file(error);
    const std::size_t newest = text.rfind("--- attempt ");
    const std::string headline =
        newest == text.npos ? "" : text.substr(newest, text.find('\n', newest));
    if (headline.find("in ERROR") != headline.npos) return TrialStatus::kError;
  }
  return last.map().empty() ? TrialStatus::kPending : TrialStatus::kRunning;
}

// Whether results.csv tells the status of the trials: not while a driver runs, or was killed.
bool is_settled(const fs::path& directory) {
  const fs::path file = directory / "run.json";
  if (!fs::exists(file)) return true;
  return parse_json(read_file(file), file.string()).get_or("state", "") != "running";
}

// The numbers of the trials that are paused, by its events: their files look like those of a trial
// that runs. Events that cannot be read say nothing of them.
std::set<std::uint32_t> paused_trials(const fs::path& directory) try {
  TrialStories stories;
  std::set<std::uint32_t> named, paused;
  for_each_event(directory,
                 {"driver_started", "experiment_ended", "attempt_started", "attempt_ended",
                  "trial_ended", "order"},
                 [&](const Value& fields) {
                   const EventLine event = event_of_fields(fields);
                   stories.add(event);
                   if (event.trial) named.insert(*event.trial);
                 });
  for (const std::uint32_t trial : named) {
    if (stories.find(trial)->status == TrialStatus::kPaused) paused.insert(trial);
  }
  return paused;
} catch (const Error& error) {
  if (error.code() != ErrorCode::kBadInput) throw;
  return {};
}

void fill_statuses(const fs::path& directory, std::vector<TrialSummary>& trials) {
  const auto statuses = read_statuses(directory / "results.csv");
  const bool settled = is_settled(directory);
  const auto paused = settled ? std::set<std::uint32_t>() : paused_trials(directory);
  for (TrialSummary& trial : trials) {
    const auto found = statuses.find(trial.id);
    const bool known = found != statuses.end() && (settled || is_over(found->second));
    trial.status = known ? found->second : status_from_files(trial);
    const auto number = number_of_id(trial.id);
    if (!known && number && paused.contains(*number)) trial.status = TrialStatus::kPaused;
  }
}

// ---- Values of a trial --------------------------------------------------------------------------

bool is_better(double value, double than, Mode mode) {
  return mode == Mode::kMax ? value > than : value < than;
}

std::optional<double> average_of_last(const std::vector<double>& values, std::size_t count) {
  if (values.empty()) return std::nullopt;
  const std::size_t used = std::min(count, values.size());
  return std::accumulate(values.end() - static_cast<std::ptrdiff_t>(used), values.end(), 0.0) /
         static_cast<double>(used);
}

std::optional<double> best_of(const std::vector<double>& values, Mode mode) {
  std::optional<double> best;
  for (double value : values) {
    if (std::isfinite(value) && (!best || is_better(value, *best, mode))) best = value;
  }
  return best;
}

using Question = AnalysisQuestion;

std::optional<double> value_of(const TrialSummary& trial, const Question& question) {
  if (question.scope == Scope::kLast) return trial.newest(question.metric);
  std::vector<double> values;
  const std::vector<Result> results = trial.results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto value = number_at(results[i], i + 1, question.metric);
    if (value) values.push_back(*value);
  }
  switch (question.scope) {
    case Scope::kLast:
      break;
    case Scope::kAll:
      return best_of(values, question.mode);
    case Scope::kAvg:
      return average_of_last(values, values.size());
    case Scope::kLast5Avg:
      return average_of_last(values, 5);
    case Scope::kLast10Avg:
      return average_of_last(values, 10);
  }
  return std::nullopt;
}

// The reason why there is no best trial; `seen` values were there, none of them finite.
[[noreturn]] void nothing_eligible(const Analysis& analysis, const std::string& metric,
                                   std::size_t seen) {
  const std::string what = fmt::format("looking for the best trial of {} by '{}'",
                                       analysis.directory().string(), metric);
  if (analysis.trials().empty()) bad_input(what + ": the experiment has no trials yet");
  if (seen > 0) {
    bad_input(fmt::format("{}: none is eligible, all {} values are NaN or infinite", what, seen));
  }
  for (const TrialSummary& trial : analysis.trials()) {
    const Result last = trial.last_result();
    const Value* value = last.find(metric);
    if (value == nullptr) continue;
    bad_input(fmt::format("{}: it is {} in trial {}, expected a number", what,
                          describe_value(*value), trial.id));
  }
  std::vector<std::string> keys, fields;  // the user's first
  for (const TrialSummary& trial : analysis.trials()) {
    const Result last = trial.last_result();
    for (const auto& [path, value] : last.leaves()) {
      const bool added = result_field_index(path) < kResultFieldNames.size();
      if (!added || value->is_number()) (added ? fields : keys).push_back(path);
    }
    if (!keys.empty() || !fields.empty()) break;
  }
  keys.insert(keys.end(), fields.begin(), fields.end());
  if (keys.empty()) bad_input(what + ": no trial has reported a result");
  bad_input(fmt::format("{}: it is in no result{}; results have: {}", what,
                        did_you_mean(metric, keys), join(keys, ", ")));
}

// The same for several metrics: by the first that no trial has reported as a finite number, or that
// not all of them are in one result.
[[noreturn]] void nothing_eligible(const Analysis& analysis,
                                   const std::vector<std::string>& metrics) {
  for (const std::string& metric : metrics) {
    std::size_t seen = 0;
    bool is_known = false;
    for (const TrialSummary& trial : analysis.trials()) {
      const auto value = last_result_line(trial.directory).number(metric);
      seen += value ? 1 : 0;
      is_known = is_known || (value && std::isfinite(*value));
    }
    if (!is_known) nothing_eligible(analysis, metric, seen);
  }
  bad_input(
      fmt::format("looking for the best trials of {}: no trial has finite numbers for all of "
                  "{} in its last result",
                  analysis.directory().string(), join(metrics, ", ")));
}

std::string describe_failures(const Analysis& analysis, std::uint64_t errored) {
  std::string named;
  std::size_t count = 0;
  for (const TrialSummary& trial : analysis.trials()) {
    if (trial.status != TrialStatus::kError) continue;
    if (++count > kNamedTrials) break;
    named += fmt::format("{}{}", named.empty() ? ": see " : ", ",
                         (trial.directory / "error.txt").string());
  }
  return fmt::format("{} of {} trials ended in ERROR{}{}", errored, analysis.trials().size(), named,
                     count > kNamedTrials ? ", ..." : "");
}

}  // namespace

std::optional<Scope> scope_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kScopeNames.size(); ++i) {
    if (name == kScopeNames[i]) return static_cast<Scope>(i);
  }
  return std::nullopt;
}

const char* scope_name(Scope scope) {
  return kScopeNames[static_cast<std::size_t>(scope)];
}

// ---- TrialSummary -------------------------------------------------------------------------------

// Unlike in results, a null here was written by the user.
Config TrialSummary::config() const {
  const fs::path file = directory / "params.json";
  return config_from_json(read_file(file), file.string());
}

Result TrialSummary::last_result() const {
  return last_result_line(directory).result;
}

std::vector<Result> TrialSummary::results() const {
  const fs::path file = directory / "result.json";
  std::vector<Result> results;
  for_each_line(file, [&](std::string_view line, std::size_t number) {
    results.push_back(result_from_line(line, fmt::format("{}:{}", file.string(), number)));
  });
  return results;
}

std::optional<double> TrialSummary::newest(std::string_view metric) const {
  // Mostly the last line has the metric; some trials report it only now and then.
  if (const auto last = last_result_line(directory).number(metric)) return last;
  const std::vector<Result> all = results();
  for (std::size_t i = all.size(); i > 0; --i) {
    if (const auto value = number_at(all[i - 1], i, metric)) return value;
  }
  return std::nullopt;
}

std::vector<ScheduleEntry> TrialSummary::schedule() const {
  return read_schedule(directory.parent_path(), id);
}

// ---- ResultRows ---------------------------------------------------------------------------------

ResultRows::Iterator::Iterator(const std::vector<TrialSummary>& trials) : trials_(&trials) {
  if (!trials.empty()) results_ = trials.front().results();
  ++*this;
}

ResultRows::Iterator& ResultRows::Iterator::operator++() {
  while (next_ == results_.size() && trial_ + 1 < trials_->size()) {
    results_ = (*trials_)[++trial_].results();
    next_ = 0;
  }
  if (next_ == results_.size()) {
    row_ = {};
  } else {
    row_ = {&(*trials_)[trial_], std::move(results_[next_++])};
  }
  return *this;
}

// ---- Analysis -----------------------------------------------------------------------------------

namespace {

// The objective of an experiment.json.
Objective objective_in(const Value& spec) {
  RunOptions options;
  std::vector<Complaint> ignored;  // a folder that an experiment wrote
  OptionReader reader(spec, "", ignored);
  read_objectives(reader, options.objectives);
  read_constraints(reader, options.constraints);
  options.metric = spec.get_or("metric", "");
  options.mode = spec.get_or("mode", "max") == "min" ? Mode::kMin : Mode::kMax;
  return objective_of(options);
}

}  // namespace

Analysis Analysis::load(const fs::path& directory) {
  const fs::path file = directory / kSpecFile;
  if (!fs::exists(file)) refuse_no_experiment(directory);
  const Value spec = parse_json(read_file(file), file.string());
  Analysis analysis;
  analysis.directory_ = directory;
  analysis.name_ = spec.get_or("name", "");
  analysis.object_address_ =
      object_address(spec.get_or("checkpoint_storage", ""), spec.get_or("store_prefix", ""));
  analysis.objective_ = objective_in(spec);
  std::vector<TrialSummary> trials = find_trials(directory);
  fill_statuses(directory, trials);
  analysis.trials_ = std::make_shared<const std::vector<TrialSummary>>(std::move(trials));
  return analysis;
}

struct Analysis::Best {
  const TrialSummary* trial;
  Question question;
  double value;
  double violation;  // of the constraints
};

Analysis::Best Analysis::find_best(std::string_view metric, std::optional<Mode> mode,
                                   Scope scope) const {
  const Question question = question_of(metric, mode, scope);
  if (question.metric.empty() && !objective_.goals.empty()) {
    bad_input(
        fmt::format("looking for the best trial of {}: it has {} objectives, of which none "
                    "is the best alone: take pareto(), or say which one, as in "
                    "best_trial(\"{}\")",
                    directory_.string(), objective_.goals.size(), objective_.goals.front().metric));
  }
  if (question.metric.empty()) {
    bad_input(
        fmt::format("looking for the best trial of {}: the experiment has no metric: say which "
                    "one, as in best_trial(\"loss\", tune::Mode::kMin)",
                    directory_.string()));
  }
  Best best{nullptr, question, 0, 0};
  std::size_t seen = 0;
  for (const TrialSummary& trial : *trials_) {
    const std::optional<double> value = value_of(trial, question);
    if (!value) continue;
    ++seen;
    if (!std::isfinite(*value)) continue;
    const double violation =
        objective_.constraints.empty() ? 0 : violation_of(last_result_line(trial.directory));
    const bool wins = violation < best.violation ||
                      (violation == best.violation && is_better(*value, best.value, question.mode));
    if (best.trial != nullptr && !wins) continue;
    best.trial = &trial;
    best.value = *value;
    best.violation = violation;
  }
  if (best.trial == nullptr) nothing_eligible(*this, question.metric, seen);
  return best;
}

// Of several objectives one that is named has its own mode.
Mode Analysis::mode_for(std::string_view metric) const {
  for (const Goal& goal : objective_.goals) {
    if (goal.metric == metric) return goal.mode;
  }
  return objective_.mode;
}

Question Analysis::question_of(std::string_view metric, std::optional<Mode> mode,
                               Scope scope) const {
  const std::string asked = metric.empty() ? objective_.metric : std::string(metric);
  return {asked, mode.value_or(mode_for(asked)), scope};
}

double Analysis::violation_of(const ResultLine& line) const {
  Objective constraints;
  constraints.constraints = objective_.constraints;
  const auto margins =
      numbers_of(constraints, [&](std::string_view path) { return line.number(path); });
  return margins ? merit_of(*margins, 0).violation : std::numeric_limits<double>::infinity();
}

bool Analysis::keeps_constraints(const TrialSummary& trial) const {
  const ResultLine last = last_result_line(trial.directory);
  return !last.result.map().empty() && violation_of(last) == 0;
}

std::vector<TrialSummary> Analysis::pareto() const {
  const std::vector<Goal> goals = goals_of(objective_);
  if (goals.empty()) {
    bad_input(
        fmt::format("looking for the best trials of {}: the experiment has neither a metric "
                    "nor objectives",
                    directory_.string()));
  }
  std::vector<const TrialSummary*> trials;
  std::vector<Merit> merits;
  for (const TrialSummary& trial : *trials_) {
    const ResultLine last = last_result_line(trial.directory);
    const auto numbers =
        numbers_of(objective_, [&](std::string_view path) { return last.number(path); });
    Merit merit = merit_of(numbers.value_or(MeritNumbers{}), goals.size());
    if (std::isinf(merit.violation)) continue;
    trials.push_back(&trial);
    merits.push_back(std::move(merit));
  }
  if (trials.empty()) nothing_eligible(*this, metrics_of(objective_));
  std::vector<std::size_t> front = pareto_front(merits);
  std::ranges::stable_sort(front, [&](std::size_t a, std::size_t b) {
    return merits[a].values.front() > merits[b].values.front();
  });
  std::vector<TrialSummary> best;
  for (const std::size_t i : front) best.push_back(*trials[i]);
  return best;
}

TrialSummary Analysis::best_trial(std::string_view metric, std::optional<Mode> mode,
                                  Scope scope) const {
  return *find_best(metric, mode, scope).trial;
}

Config Analysis::best_config(std::string_view metric, std::optional<Mode> mode, Scope scope) const {
  return find_best(metric, mode, scope).trial->config();
}

Result Analysis::best_result(std::string_view metric, std::optional<Mode> mode, Scope scope) const {
  const Best best = find_best(metric, mode, scope);
  if (scope == Scope::kAll) {
    std::vector<Result> results = best.trial->results();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto value = number_at(results[i], i + 1, best.question.metric);
      if (value == best.value) return std::move(results[i]);
    }
  }
  return best.trial->last_result();
}

BestCheckpoint Analysis::best_checkpoint(std::string_view metric, std::optional<Mode> mode,
                                         Scope scope) const {
  const Best best = find_best(metric, mode, scope);
  std::map<std::uint64_t, BestCheckpoint> saved;  // by iteration
  std::map<CheckpointId, fs::path> folders;  // where two attempts saved one, the later one counts
  for (const fs::path& entry : entries_of(best.trial->directory)) {
    const auto id = checkpoint_of_name(entry.filename().string());
    if (id && fs::is_directory(entry)) folders[*id] = entry;
  }
  std::optional<ObjectCheckpoints> objects;
  if (!object_address_.empty()) {
    objects.emplace(object_address_);
    for (const std::string& name : objects->names(best.trial->id)) {
      if (const auto id = checkpoint_of_name(name)) {
        folders.try_emplace(*id, best.trial->directory / name);
      }
    }
  }
  for (const auto& [id, folder] : folders) {
    saved[id.iteration] = {folder, id.iteration, std::nullopt};
  }
  if (saved.empty()) {
    bad_input(
        fmt::format("looking for a checkpoint of {}: none was saved: set checkpoint frequency or "
                    "at_end, and give the trainable save and load",
                    best.trial->directory.string()));
  }
  const BestCheckpoint* chosen = nullptr;
  double least = 0;  // violation of constraints
  std::vector<Result> results = best.trial->results();
  for (auto& [iteration, checkpoint] : saved) {
    if (iteration == 0 || iteration > results.size()) continue;
    const ResultLine line{std::move(results[iteration - 1]), iteration};
    checkpoint.value = line.number(best.question.metric);
    if (!checkpoint.value || !std::isfinite(*checkpoint.value)) continue;
    const double violation = violation_of(line);
    const bool wins =
        violation < least || (violation == least && chosen != nullptr &&
                              is_better(*checkpoint.value, *chosen->value, best.question.mode));
    if (chosen != nullptr && !wins) continue;
    chosen = &checkpoint;
    least = violation;
  }
  const BestCheckpoint found = chosen != nullptr ? *chosen : saved.rbegin()->second;
  if (objects && !fs::exists(found.path)) {
    objects->fetch(best.trial->id, found.path.filename().string(), best.trial->directory);
  }
  return found;
}

std::string Analysis::to_csv() const {
  ResultsTable table;
  for (const TrialSummary& trial : *trials_) {
    const fs::path params = trial.directory / "params.json";
    const auto make = [&trial](ResultText& text) {
      const auto line = last_line(trial.directory / "result.json");
      ResultsTable::read_line(text, line.value_or(""), "the last result of " + trial.id);
    };
    table.add(trial.id, trial.status, make, pack(parse_json(read_file(params), params.string())));
  }
  return table.to_csv();
}

void Analysis::write_csv(const fs::path& file) const {
  write_file_atomically(file, to_csv());
}

TrialError::TrialError(Analysis analysis, std::uint64_t errored)
    : Error(ErrorCode::kTrialFailed, describe_failures(analysis, errored)),
      analysis_(std::move(analysis)) {}

}  // namespace tune
