#include "tune/show/status_block.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "tune/results/result_fields.h"
#include "tune/results/result_text.h"
#include "tune/show/status_table.h"

namespace tune {

namespace {

using Counts = std::array<std::uint64_t, 5>;  // by TrialStatus

constexpr std::array<TrialStatus, 5> kRowOrder = {TrialStatus::kRunning, TrialStatus::kPaused,
                                                  TrialStatus::kPending, TrialStatus::kTerminated,
                                                  TrialStatus::kError};
constexpr std::size_t kMaxNames = 256;    // metrics kept in mind
constexpr std::size_t kTableHead = 2;     // lines
constexpr std::size_t kRoomForTime = 20;  // columns for " about 2 h 10 min to go", mostly

std::size_t index(TrialStatus status) {
  return static_cast<std::size_t>(status);
}

// One row for each status in turn, until there are no more rows or trials.
Counts share_rows(const Counts& counts, std::size_t max_rows) {
  Counts shares{};
  for (bool given = true; given;) {
    given = false;
    for (TrialStatus status : kRowOrder) {
      const std::size_t i = index(status);
      if (max_rows == 0 || shares[i] == counts[i]) continue;
      ++shares[i];
      --max_rows;
      given = true;
    }
  }
  return shares;
}

// "25 PENDING, 4 RUNNING"
std::string describe(const Counts& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i],
                        status_name(static_cast<TrialStatus>(i)));
  }
  return text;
}

std::uint64_t sum(const Counts& counts) {
  std::uint64_t total = 0;
  for (std::uint64_t count : counts) total += count;
  return total;
}

// Ten-thousandths as a decimal number; `whole` without a point when the fraction is 0.
std::string amount(std::int64_t units, bool whole) {
  if (units % kUnit == 0) return fmt::format("{}{}", units / kUnit, whole ? "" : ".0");
  std::string text = fmt::format("{}.{:04}", units / kUnit, units % kUnit);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

std::string time_line(const ExperimentStatus& status) {
  using namespace std::chrono;
  const auto wall = floor<std::chrono::seconds>(status.wall).count();
  const auto ran = duration_cast<milliseconds>(status.running_for).count() / 10;  // hundredths
  return fmt::format("Current time: {:%Y-%m-%d %H:%M:%S} (running for {:02}:{:02}:{:02}.{:02})",
                     fmt::localtime(static_cast<std::time_t>(wall)), ran / 360000, ran / 6000 % 60,
                     ran / 100 % 60, ran % 100);
}

std::string parameter_text(const Value& value) {
  if (value.type() == Value::Type::kFloat) return fmt::format("{:.4g}", value.number());
  if (value.is_string()) return fmt::format("'{}'", value.string());
  return value.dump();
}

// "{'lr': 0.00032, 'momentum': 0.3078}": the searched parameters, or all when none was searched.
std::string parameters_text(const ExperimentStatus& status, const Trial& trial) {
  const Value config = unpack(trial.config);
  std::vector<std::string> parts;
  const std::vector<std::string> searched = status.options.config.searched_paths();
  for (const std::string& path : searched) {
    const Value* value = config.find(path);
    const bool is_shown = value != nullptr && !(value->is_map() && any_below(searched, path));
    if (is_shown) parts.push_back(fmt::format("'{}': {}", path, parameter_text(*value)));
  }
  if (parts.empty()) {
    for (const auto& [path, value] : config.leaves()) {
      parts.push_back(fmt::format("'{}': {}", path, parameter_text(*value)));
    }
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::string best_line(const ExperimentStatus& status) {
  const Trial& best = status.trials[status.best->value];
  return fmt::format("Current best trial: {} with {}={:.4g} and parameters={}",
                     trial_id(status.experiment_id, best.number), status.options.metric,
                     best.metric.value_or(0), parameters_text(status, best));
}

// "Pareto front (*): 7 trials: 2f1e0_00001, 2f1e0_00004, ... and 2 more".
std::string front_line(const ExperimentStatus& status) {
  constexpr std::size_t kMaxNamed = 5;
  const std::size_t count = status.pareto.size();
  std::string text = fmt::format("Pareto front (*): {} trial{}", count, count == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(count, kMaxNamed); ++i) {
    text += (i == 0 ? ": " : ", ") + trial_id(status.experiment_id, status.pareto[i]);
  }
  if (count > kMaxNamed) text += fmt::format(" and {} more", count - kMaxNamed);
  return text;
}

// "Paused by users: 2f1e0_00003: the sweep waits for tune unpause". As many names as are told of a
// front.
std::string held_line(const ExperimentStatus& status) {
  constexpr std::size_t kMaxNamed = 5;
  std::string text = "Paused by users:";
  for (std::size_t i = 0; i < std::min(status.held.size(), kMaxNamed); ++i) {
    text += (i == 0 ? " " : ", ") + trial_id(status.experiment_id, status.held[i]);
  }
  if (status.held.size() > kMaxNamed) {
    text += fmt::format(" and {} more", status.held.size() - kMaxNamed);
  }
  return text + (status.waits_for_user ? ": the sweep waits for tune unpause" : "");
}

std::string bar(const ExperimentStatus& status) {
  const Counts& counts = status.counts;
  return progress_bar(counts[index(TrialStatus::kTerminated)] + counts[index(TrialStatus::kError)],
                      counts[index(TrialStatus::kRunning)],
                      std::max<std::uint64_t>(*status.total_trials, status.trials.size()));
}

std::vector<std::string> head_lines(const ExperimentStatus& status, std::size_t width) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  std::vector<std::string> lines = {"== Status ==", time_line(status)};
  if (status.live && status.memory_total_bytes > 0) {
    lines.push_back(fmt::format("Memory usage on this node: {:.1f}/{:.1f} GiB",
                                static_cast<double>(status.memory_used_bytes) / kGiB,
                                static_cast<double>(status.memory_total_bytes) / kGiB));
  }
  lines.insert(lines.end(), status.scheduler_lines.begin(), status.scheduler_lines.end());
  if (status.live) {
    lines.push_back(
        fmt::format("Resources requested: {}/{} CPUs, {}/{} GPUs",
                    amount(status.cpu_units_used, false), amount(status.cpu_units_total, true),
                    amount(status.gpu_units_used, false), amount(status.gpu_units_total, true)));
  }
  if (!status.set_aside.empty()) {
    lines.push_back(
        fmt::format("Set aside, as trials failed there: {}", fmt::join(status.set_aside, ", ")));
  }
  if (status.live && !status.joined.empty()) lines.push_back(status.joined);
  if (status.live && !status.waits.empty()) lines.push_back(status.waits);
  if (!status.held.empty()) lines.push_back(held_line(status));
  if (status.best) lines.push_back(best_line(status));
  if (!status.pareto.empty()) lines.push_back(front_line(status));
  lines.push_back(fmt::format("Result logdir: {}", status.directory.string()));
  std::string trials = fmt::format("Number of trials: {}", status.trials.size());
  if (status.total_trials) trials += fmt::format("/{}", *status.total_trials);
  if (!status.trials.empty()) trials += fmt::format(" ({})", describe(status.counts));
  if (status.live && status.total_trials) {
    const std::string progress = bar(status);
    const bool fits = width == 0 || text_width(trials) + progress.size() + kRoomForTime < width;
    if (!fits) lines.push_back(std::exchange(trials, {}));
    trials += (fits ? " " : "") + progress;
  }
  lines.push_back(std::move(trials));
  return lines;
}

void learn_metrics(const std::vector<const Trial*>& trials, std::vector<std::string>& names) {
  for (const Trial* trial : trials) {
    if (!trial->last || names.size() >= kMaxNames) continue;
    const Value result = last_result_of(*trial);
    for (const auto& [path, value] : result.leaves()) {
      const bool is_metric = value->is_number() && path != "timesteps_this_iter" &&
                             result_field_index(path) == kResultFieldNames.size();
      if (!is_metric || std::find(names.begin(), names.end(), path) != names.end()) continue;
      names.push_back(path);
    }
  }
}

// The better one by its last metric first; those without one stay behind, in their order.
void sort_by_metric(std::vector<const Trial*>& trials, Mode mode) {
  const auto worth = [mode](const Trial* trial) {
    const double value = trial->metric.value_or(std::nan(""));
    if (std::isnan(value)) return -std::numeric_limits<double>::infinity();
    return mode == Mode::kMax ? value : -value;
  };
  std::stable_sort(trials.begin(), trials.end(),
                   [&](const Trial* a, const Trial* b) { return worth(a) > worth(b); });
}

// Most trials are over, and the first ones first.
void skip_those_over(const ExperimentStatus& status, BlockMemory& memory) {
  const std::uint64_t errors = status.counts[index(TrialStatus::kError)];
  if (errors < memory.errors || memory.over > status.trials.size()) memory.over = 0;
  memory.errors = errors;
  while (memory.over < status.trials.size() && is_over(status.trials[memory.over].status)) {
    ++memory.over;
  }
}

}  // namespace

std::string progress_bar(std::uint64_t over, std::uint64_t running, std::uint64_t total) {
  constexpr std::uint64_t kCells = 20;
  total = std::max<std::uint64_t>(total, 1);
  const std::uint64_t full = over * kCells / total;
  const std::uint64_t begun =
      std::min(kCells, std::max((over + running) * kCells / total, full + (running > 0 ? 1 : 0)));
  return "[" + std::string(full, '#') + std::string(begun - full, '>') +
         std::string(kCells - begun, '.') + "]";
}

std::vector<const Trial*> choose_rows(const ExperimentStatus& status, std::size_t max_rows,
                                      BlockMemory& memory) {
  const Counts shares = share_rows(status.counts, max_rows);
  Counts looked_at = shares;  // all that run, as any of them may be the best
  looked_at[index(TrialStatus::kRunning)] = status.counts[index(TrialStatus::kRunning)];
  std::array<std::vector<const Trial*>, 5> chosen;
  const auto take = [&](const Trial& trial, bool over, std::uint64_t& left) {
    auto& group = chosen[index(trial.status)];
    if (is_over(trial.status) != over || group.size() == looked_at[index(trial.status)]) return;
    group.push_back(&trial);
    --left;
  };
  const auto share = [&](TrialStatus of) { return looked_at[index(of)]; };
  std::uint64_t left =
      share(TrialStatus::kRunning) + share(TrialStatus::kPaused) + share(TrialStatus::kPending);
  skip_those_over(status, memory);
  for (std::size_t i = memory.over; left > 0 && i < status.trials.size(); ++i) {
    take(status.trials[i], false, left);
  }
  auto& running = chosen[index(TrialStatus::kRunning)];
  sort_by_metric(running, status.options.mode.value_or(Mode::kMax));
  running.resize(std::min<std::size_t>(running.size(), shares[index(TrialStatus::kRunning)]));
  left = share(TrialStatus::kTerminated) + share(TrialStatus::kError);
  for (auto trial = status.trials.rbegin(); left > 0 && trial != status.trials.rend(); ++trial) {
    take(*trial, true, left);
  }
  std::vector<const Trial*> rows;
  for (TrialStatus group : kRowOrder) {
    auto& trials = chosen[index(group)];
    if (is_over(group)) std::reverse(trials.begin(), trials.end());
    rows.insert(rows.end(), trials.begin(), trials.end());
  }
  return rows;
}

std::vector<std::string> render_status(const ExperimentStatus& status,
                                       const ReporterOptions& options, BlockMemory& memory,
                                       BlockSize size) {
  std::vector<std::string> lines = head_lines(status, size.width);
  std::size_t max_rows = static_cast<std::size_t>(std::max(1, options.max_rows));
  if (size.height > 0) {
    const std::size_t taken = lines.size() + kTableHead + 1;
    max_rows = std::min(max_rows, size.height > taken + 1 ? size.height - taken : 1);
  }
  const std::vector<const Trial*> rows = choose_rows(status, max_rows, memory);
  learn_metrics(rows, memory.metrics);
  if (!rows.empty()) {
    const auto table = render_table(status, rows, options, memory.metrics, size.width);
    lines.insert(lines.end(), table.begin(), table.end());
  }
  Counts hidden = status.counts;
  for (const Trial* trial : rows) --hidden[index(trial->status)];
  if (const std::uint64_t count = sum(hidden); count > 0) {
    lines.push_back(fmt::format("... {} more trials not shown ({})", count, describe(hidden)));
  }
  if (size.height > 0) lines.resize(std::min(lines.size(), size.height));
  for (std::string& line : lines) {
    line = one_line(line);
    if (size.width > 0) line = fitted(line, size.width);
  }
  return lines;
}

std::vector<std::string> render_end(const ExperimentStatus& status) {
  std::vector<std::string> lines;
  if (status.best) {
    lines.push_back("Best config is: " + unpack(status.trials[status.best->value].config).dump());
  }
  if (!status.pareto.empty()) {
    const std::size_t count = status.pareto.size();
    lines.push_back(
        fmt::format("Best are {} trial{}, of which none is better than another: tune "
                    "best {}",
                    count, count == 1 ? "" : "s", status.directory.string()));
  }
  lines.push_back("Results: " + (status.directory / "results.csv").string());
  return lines;
}

// ---- Text ---------------------------------------------------------------------------------------

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string fitted(std::string_view text, std::size_t width) {
  if (text_width(text) <= width) return std::string(text);
  if (width < 4) return std::string(width, '.');
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) continue;
    if (seen++ == width - 3) break;
  }
  return std::string(text.substr(0, end)) + "...";
}

std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) c = '?';
  }
  return shown;
}

std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

}  // namespace tune
