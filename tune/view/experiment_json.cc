#include "tune/view/experiment_json.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"
#include "core/platform/files.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/result_lines.h"
#include "tune/view/config_forms.h"

namespace tune::view {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTrialEvents = 500;
constexpr std::size_t kMaxCheckpoints = 500;
constexpr std::size_t kMaxRanks = 4096;
constexpr std::size_t kErrorLines = 200;
constexpr std::size_t kErrorBytes = 32u << 10;
constexpr std::size_t kLogBytes = 128u << 10;

Value counts_of(const TrialTable& trials) {
  std::array<std::uint64_t, 5> counts{};
  for (std::size_t row = 0; row < trials.size(); ++row) {
    ++counts.at(static_cast<std::size_t>(trials.row(row).status));
  }
  Value value = Value::make_map();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    value.set(status_name(static_cast<TrialStatus>(i)), counts.at(i));
  }
  return value;
}

Value parameters_of(const Experiment& experiment) {
  Value::List list;
  for (const ParameterColumn& column : experiment.trials().parameters()) {
    list.push_back(Value{{"name", column.name},
                         {"words", column.is_words},
                         {"log", experiment.head().log_paths.contains(column.name)}});
  }
  return Value::make_list(std::move(list));
}

Value notices_of(const History& history) {
  Value::List list;
  for (const NoticeView& notice : history.notices()) {
    list.push_back(Value{{"time", notice.time}, {"event", notice.event}, {"text", notice.text}});
  }
  return Value::make_list(std::move(list));
}

Value set_aside_of(const History& history) {
  Value::List list;
  for (const auto& [place, since] : history.set_aside()) {
    list.push_back(Value{{"place", place}, {"since", since}});
  }
  return Value::make_list(std::move(list));
}

Value config_forms(const Experiment& experiment, std::size_t row) try {
  const fs::path file = experiment.trial_directory(row) / "params.json";
  const Config config = config_from_json(read_file(file), file.string());
  return Value{{"json", to_json(config, 2)}, {"yaml", as_yaml(config)}, {"cpp", as_cpp(config)}};
} catch (const Error& error) {
  return Value{{"problem", error.what()}};
}

Value best_of(const Experiment& experiment) {
  const auto row = experiment.best_row(Experiment::By::kBest);
  if (!row) return nullptr;
  Value best{{"number", experiment.trials().row(*row).number},
             {"id", experiment.trial_id(*row)},
             {"value", experiment.value_of(*row, Experiment::By::kBest)},
             {"last", experiment.value_of(*row, Experiment::By::kLast)}};
  best.set("config", config_forms(experiment, *row));
  return best;
}

// As they stand in experiment.json; an empty list where there are none.
Value list_in_spec(const ExperimentHead& head, std::string_view key) {
  const Value* found = head.spec.find(key);
  return found != nullptr && found->is_list() ? *found : Value::make_list({});
}

Value::List texts(const std::vector<std::string>& from) {
  return {from.begin(), from.end()};
}

}  // namespace

Value head_value(const ExperimentHead& head) {
  return Value{{"key", head.key},
               {"folder", head.folder},
               {"name", head.name},
               {"trainable", head.trainable},
               {"metric", head.metric},
               {"mode", head.mode == Mode::kMax ? "max" : "min"},
               {"objectives", list_in_spec(head, "objectives")},
               {"scheduler", head.scheduler},
               {"searcher", head.searcher},
               {"num_samples", head.num_samples},
               {"changed", head.changed},
               {"state", head.problem.empty() ? state_of(head.directory) : "unreadable"},
               {"problem", head.problem}};
}

Value meta_of(const Experiment& experiment, const std::string& boot) {
  Value meta = head_value(experiment.head());
  meta.set("boot", boot);
  meta.set("state", experiment.state());
  meta.set("loaded", experiment.loaded_share());
  meta.set("is_loaded", experiment.is_loaded());
  if (!experiment.is_loaded()) return meta;
  const TrialTable& trials = experiment.trials();
  const History& history = experiment.history();
  meta.set("change", experiment.change());
  meta.set("layout", trials.layout());
  meta.set("trials", trials.size());
  meta.set("results", trials.results());
  meta.set("counts", counts_of(trials));
  meta.set("id_prefix", experiment.id_prefix());
  meta.set("parameters", parameters_of(experiment));
  Value::List names;
  for (const MetricColumn& column : trials.metrics()) names.emplace_back(column.name);
  meta.set("metrics", Value::make_list(std::move(names)));
  meta.set("constraints", list_in_spec(experiment.head(), "constraints"));
  meta.set("descents", history.descents().size());
  meta.set("set_aside", set_aside_of(history));
  meta.set("notices", notices_of(history));
  meta.set("first", history.first());
  meta.set("last", history.last());
  meta.set("best", best_of(experiment));
  std::vector<std::string> problems = experiment.problems();
  if (trials.left_columns_out()) {
    problems.push_back("there are more columns than this page holds: the last ones are left out");
  }
  meta.set("problems", Value::make_list(texts(problems)));
  meta.set("resume", experiment.state() == "interrupted" || experiment.state() == "killed"
                         ? how_to_resume(experiment.head().directory)
                         : std::string());
  return meta;
}

Value lineage_of(const Experiment& experiment) {
  Value::List all;
  for (const Descent& one : experiment.history().descents()) {
    all.push_back(list({one.trial, one.iteration, one.from, one.from_iteration}));
  }
  return Value{{"descents", Value::make_list(std::move(all))}};
}

// ---- One trial ----------------------------------------------------------------------------------

namespace {

// The newest events that name the trial. Lines are searched before they are parsed.
Value events_of(const Experiment& experiment, const std::string& id) {
  const std::string name = "\"trial\":\"" + id + "\"";
  std::deque<std::string> lines;
  for_each_line(experiment.head().directory / "events.jsonl",
                [&](std::string_view line, std::size_t) {
                  if (line.find(name) == line.npos) return;
                  lines.emplace_back(line);
                  if (lines.size() > kMaxTrialEvents) lines.pop_front();
                });
  Value::List events;
  for (const std::string& line : lines) events.push_back(parse_json(line, "events.jsonl"));
  return Value::make_list(std::move(events));
}

Value checkpoints_of(const fs::path& directory) {
  Value::List found;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator() && found.size() < kMaxCheckpoints;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    struct stat status {};
    if (!name.starts_with("checkpoint_") || stat(entry->path().c_str(), &status) != 0) continue;
    found.push_back(
        Value{{"name", name}, {"time", static_cast<std::int64_t>(status.st_mtim.tv_sec)}});
  }
  std::sort(found.begin(), found.end(), [](const Value& a, const Value& b) {
    return a.at("name").string() < b.at("name").string();
  });
  return Value::make_list(std::move(found));
}

std::string output_name(const LogAsked& asked) {
  std::string name = asked.is_stderr ? "stderr" : "stdout";
  if (asked.rank > 0) name += fmt::format(".{}", asked.rank);
  return name;
}

std::uint64_t ranks_of(const fs::path& directory) {
  std::uint32_t ranks = 1;
  std::error_code error;
  while (ranks < kMaxRanks && fs::exists(directory / output_name({.rank = ranks}), error)) ++ranks;
  return ranks;
}

}  // namespace

Value trial_of(const Experiment& experiment, std::size_t row) {
  const TrialRow& trial = experiment.trials().row(row);
  const fs::path directory = experiment.trial_directory(row);
  const std::string id = experiment.trial_id(row);
  return Value{{"number", trial.number},
               {"id", id},
               {"status", status_name(trial.status)},
               {"iterations", trial.iterations},
               {"attempts", trial.attempts},
               {"failures", trial.failures},
               {"config", config_forms(experiment, row)},
               {"events", events_of(experiment, id)},
               {"checkpoints", checkpoints_of(directory)},
               {"error", tail_lines(directory / "error.txt", kErrorLines, kErrorBytes)},
               {"ranks", ranks_of(directory)}};
}

Value log_of(const Experiment& experiment, std::size_t row, const LogAsked& asked) {
  const fs::path file = experiment.trial_directory(row) / output_name(asked);
  const FileDescriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat status {};
  if (!opened.is_open() || fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Value{{"size", 0}, {"from", 0}, {"next", 0}, {"text", ""}, {"is_there", false}};
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  std::uint64_t from = asked.from.value_or(size > kLogBytes ? size - kLogBytes : 0);
  if (from > size) from = 0;  // it was begun anew
  std::string text(std::min<std::uint64_t>(kLogBytes, size - from), '\0');
  const ssize_t count = pread(opened.get(), text.data(), text.size(), static_cast<off_t>(from));
  text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  const std::uint64_t next = from + text.size();
  return Value{{"size", size},
               {"from", from},
               {"next", next},
               {"text", std::move(text)},
               {"is_there", true}};
}

}  // namespace tune::view
