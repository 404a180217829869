#include "tune/results/warm_start.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/strings.h"
#include "tune/results/analysis.h"
#include "tune/results/recorded_trials.h"
#include "tune/results/result_lines.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFormat = 1;
constexpr const char* kEnds[] = {"completed", "stopped", "error"};  // by TrialEnd

// The yield of all folders.
struct Found {
  std::vector<EarlierTrial> trials;
  std::map<std::string, std::size_t> outside;    // by what stands against them
  std::map<std::string, std::size_t> different;  // of the trials, by what is not searched here
  std::size_t without_value = 0;
  std::vector<std::string> turned;  // folders whose experiment had the other mode for the metric
  std::vector<std::string> again;   // further names of a folder
};

TrialEnd end_of(Standing standing) {
  switch (standing) {
    case Standing::kCompleted:
      return TrialEnd::kCompleted;
    case Standing::kFailed:
      return TrialEnd::kError;
    case Standing::kRunning:
    case Standing::kPaused:
    case Standing::kStopped:
      break;
  }
  return TrialEnd::kStopped;  // it might have gone on from its last value
}

Found find_trials(const Analysis& analysis, const ExperimentSpec& spec, const Encoding& encoding) {
  Found found;
  const fs::path folder = fs::weakly_canonical(analysis.directory()).filename();
  for (RecordedTrial& trial : recorded_trials(analysis, spec.options.metric)) {
    const bool failed = trial.standing == Standing::kFailed;
    if (trial.values.empty() && !failed) {
      ++found.without_value;
      continue;
    }
    Encoded encoded = encoding.encode(trial.config);
    if (encoded.complaint.empty()) {
      const WhereRule* broken = encoding.broken_by(encoded.point);
      if (broken != nullptr) encoded.complaint = fmt::format("they break '{}'", broken->text());
    }
    if (encoded.complaint.empty()) {
      const std::string difference = encoding.difference(trial.config, encoded.point);
      if (!difference.empty()) ++found.different[difference];
      found.trials.push_back({std::move(trial.config), std::move(trial.values),
                              end_of(trial.standing), folder / trial.id});
    } else {
      ++found.outside[encoded.complaint];
    }
  }
  return found;
}

std::size_t sum_of(const std::map<std::string, std::size_t>& counts) {
  std::size_t sum = 0;
  for (const auto& [what, count] : counts) sum += count;
  return sum;
}

// "'lr' is 3.0, which {...} never draws", of most of them.
std::string commonest(const std::map<std::string, std::size_t>& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
}

// The reason why nothing of an experiment with results is of any use here; empty: something is.
std::string why_useless(const Analysis& analysis, const Found& found, const std::string& metric) {
  const auto has_value = [](const EarlierTrial& trial) { return !trial.values.empty(); };
  if (std::ranges::any_of(found.trials, has_value)) return {};
  if (!found.outside.empty()) {
    return fmt::format("none of its {} trials lies in the space of this sweep: {}",
                       sum_of(found.outside), commonest(found.outside));
  }
  for (const TrialSummary& trial : analysis.trials()) {
    const Result last = trial.last_result();
    if (last.map().empty()) continue;
    try {
      analysis.best_trial(metric);
    } catch (const Error& error) {  // it names the metrics that there are
      return error.what();
    }
  }
  return {};
}

// The yield of one folder. Throws, naming it, when that is of no use.
Found read_folder(const ExperimentSpec& spec, const Encoding& encoding, std::size_t index) {
  const std::string& folder = spec.options.warm_start[index];
  try {
    const Analysis analysis = Analysis::load(folder);
    Found found = find_trials(analysis, spec, encoding);
    const std::string useless = why_useless(analysis, found, spec.options.metric);
    if (!useless.empty()) {
      throw Error(ErrorCode::kBadInput, fmt::format("{}: {}", folder, useless));
    }
    if (analysis.metric() == spec.options.metric &&
        analysis.mode() != spec.options.mode.value_or(Mode::kMax)) {
      found.turned.push_back(folder);
    }
    return found;
  } catch (const Error& error) {
    throw Error(error.code(),
                with_places(spec, fmt::format("warm_start/{}: {}", index, error.what())));
  }
}

std::string told_of(const RunOptions& options, const Found& all) {
  std::string told = fmt::format("warm start: {} knows {} trials of {}", options.searcher.name(),
                                 all.trials.size(), join(options.warm_start, ", "));
  if (!all.different.empty()) {
    told += fmt::format("; {} of them differ in what is not searched, as {}", sum_of(all.different),
                        commonest(all.different));
  }
  if (!all.outside.empty()) {
    told += fmt::format("; {} lie outside the space, as {}", sum_of(all.outside),
                        commonest(all.outside));
  }
  if (all.without_value > 0) {
    told += fmt::format("; {} have no {}", all.without_value, options.metric);
  }
  if (!all.turned.empty()) {
    told += fmt::format("; {} had the other mode for it", join(all.turned, ", "));
  }
  if (!all.again.empty()) {
    told += fmt::format("; {} named before and read once",
                        join(all.again, ", ") + (all.again.size() == 1 ? " was" : " were"));
  }
  return told;
}

}  // namespace

std::string read_warm_start(ExperimentSpec& spec) {
  if (spec.options.warm_start.empty()) return {};
  const Encoding encoding(spec.options.config, spec.options.where);
  Found all;
  std::set<fs::path> seen;
  for (std::size_t i = 0; i < spec.options.warm_start.size(); ++i) {
    const std::string& folder = spec.options.warm_start[i];
    if (!seen.insert(fs::weakly_canonical(folder)).second) {
      all.again.push_back(folder);
      continue;
    }
    Found one = read_folder(spec, encoding, i);
    std::ranges::move(one.trials, std::back_inserter(all.trials));
    std::ranges::move(one.turned, std::back_inserter(all.turned));
    for (const auto& [why, count] : one.outside) all.outside[why] += count;
    for (const auto& [what, count] : one.different) all.different[what] += count;
    all.without_value += one.without_value;
  }
  if (all.trials.size() > kMostEarlierTrials) {
    throw Error(
        ErrorCode::kBadInput,
        with_places(spec, fmt::format("warm_start: these are {} trials, at most {} are read",
                                      all.trials.size(), kMostEarlierTrials)));
  }
  std::string told = told_of(spec.options, all);
  spec.earlier = std::move(all.trials);
  return told;
}

// ---- warm_start.json ----------------------------------------------------------------------------

namespace {

Value to_value(const EarlierTrial& trial) {
  Value::List values;
  for (const ValueAt& one : trial.values) values.push_back(list({one.iteration, one.value}));
  return Value{{"trial", trial.name},
               {"config", trial.config},
               {"end", kEnds[static_cast<std::size_t>(trial.end)]},
               {"values", Value::make_list(std::move(values))}};
}

EarlierTrial trial_from_value(const Value& value, const std::string& where) {
  EarlierTrial trial;
  trial.name = value.get_or("trial", "");  // older builds wrote none
  trial.config = config_from_json(to_json(value.at("config")), where);
  const auto end = std::ranges::find(kEnds, value.get<std::string>("end"));
  if (end == std::end(kEnds)) throw Error(ErrorCode::kBadInput, where + ": how did it end?");
  trial.end = static_cast<TrialEnd>(end - std::begin(kEnds));
  for (const Value& pair : value.at("values").list()) {
    const Value& number = pair.list().at(1);
    const bool is_finite = number.is_number();  // null is NaN
    trial.values.push_back(
        {static_cast<std::uint64_t>(pair.list().at(0).integer()),
         is_finite ? number.number() : std::numeric_limits<double>::quiet_NaN()});
  }
  return trial;
}

}  // namespace

void keep_earlier(const fs::path& directory, const ExperimentSpec& spec) {
  const fs::path file = directory / kWarmStartFile;
  if (spec.options.warm_start.empty() || fs::exists(file)) return;
  Value::List trials;
  for (const EarlierTrial& trial : spec.earlier) trials.push_back(to_value(trial));
  write_file_atomically(file, to_json(Value{{"format", kFormat},
                                            {"metric", spec.options.metric},
                                            {"trials", Value::make_list(std::move(trials))}}) +
                                  "\n");
}

std::vector<EarlierTrial> kept_earlier(const fs::path& directory, const ExperimentSpec& spec) {
  std::vector<EarlierTrial> trials;
  if (spec.options.warm_start.empty()) return trials;
  const fs::path file = directory / kWarmStartFile;
  if (!fs::exists(file)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} is gone: it holds what the searcher learnt of earlier experiments, "
                            "and without it the experiment would go on otherwise: put it back",
                            file.string()));
  }
  try {
    const Value all = parse_json(read_file(file), file.string());
    if (all.get<std::int64_t>("format") > kFormat) {
      throw Error(ErrorCode::kBadInput, "a newer version of tune wrote it");
    }
    for (const Value& one : all.at("trials").list()) {
      trials.push_back(trial_from_value(one, file.string()));
    }
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kBadInput, fmt::format("reading {}: {}", file.string(), error.what()));
  }
  return trials;
}

}  // namespace tune
