// tune ls.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/system_clock.h"
#include "tune/cli/cli_orders.h"
#include "tune/results/analysis.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/experiment_head.h"
#include "tune/spec/objectives.h"
#include "tune/spec/searcher_setup.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

struct Listed {
  ExperimentHead head;
  std::string state;
  std::size_t trials = 0;
  std::optional<std::uint64_t> total;  // that there will be; nothing: no end, or not known
  std::size_t over = 0;
  std::size_t errors = 0;
  std::optional<double> best;
  std::string best_trial;
};

std::vector<ExperimentHead> heads_in(const fs::path& storage) {
  if (is_experiment(storage)) return {read_head(fs::canonical(storage))};
  std::vector<ExperimentHead> heads;
  std::error_code error;
  for (fs::directory_iterator entry(storage, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreadable;  // "latest" is a link
    if (entry->is_symlink(unreadable) || !is_experiment(entry->path())) continue;
    heads.push_back(read_head(entry->path()));
  }
  if (error) {
    throw Error(ErrorCode::kBadInput, fmt::format("listing the experiments of {}: {}",
                                                  storage.string(), error.message()));
  }
  std::ranges::sort(heads, [](const auto& a, const auto& b) {
    return a.changed != b.changed ? a.changed < b.changed : a.folder < b.folder;
  });
  return heads;
}

// Without a best trial where none is eligible, or its objectives are several.
void find_best_trial(const Analysis& analysis, Listed& listed) try {
  if (analysis.metric().empty()) return;
  const TrialSummary best = analysis.best_trial();
  listed.best = best.newest(analysis.metric());
  listed.best_trial = best.id;
} catch (const Error&) {
}

// As `tune status`. Nothing for a searcher that only the experiment's program has.
std::optional<std::uint64_t> total_of(const fs::path& directory) try {
  const ExperimentSpec spec = read_spec(directory);
  const auto searcher = spec.options.searcher.make();
  searcher->configure(searcher_setup(spec, objective_of(spec.options)));
  return searcher->total();
} catch (const Error&) {
  return std::nullopt;
}

Listed listed_of(ExperimentHead head) {
  Listed listed;
  listed.head = std::move(head);
  if (!listed.head.problem.empty()) return listed;
  listed.state = state_of(listed.head.directory);
  try {
    const Analysis analysis = Analysis::load(listed.head.directory);
    listed.trials = analysis.trials().size();
    listed.total = total_of(listed.head.directory);
    for (const TrialSummary& trial : analysis.trials()) {
      listed.over += is_over(trial.status) ? 1 : 0;
      listed.errors += trial.status == TrialStatus::kError ? 1 : 0;
    }
    find_best_trial(analysis, listed);
  } catch (const Error& error) {
    listed.head.problem = error.what();
  }
  return listed;
}

// "3 min", of the time since something changed.
std::string age_in_words(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", seconds);
  if (seconds < 3600) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} d", seconds / (24 * 3600));
}

double age_of(const ExperimentHead& head) {
  const double now = std::chrono::duration<double>(SystemClock().wall()).count();
  return std::max(0.0, now - head.changed);
}

std::string json_line(const Listed& one) {
  Value line{{"name", one.head.name}, {"directory", one.head.directory.string()}};
  if (!one.head.problem.empty()) {
    line.set("problem", one.head.problem);
    return to_json(line);
  }
  line.set("state", one.state);
  line.set("trials", static_cast<std::uint64_t>(one.trials));
  line.set("total", one.total ? Value(*one.total) : Value());
  line.set("over", static_cast<std::uint64_t>(one.over));
  line.set("errors", static_cast<std::uint64_t>(one.errors));
  line.set("num_samples", one.head.num_samples);
  line.set("metric", one.head.metric);
  line.set("best", one.best ? Value(*one.best) : Value());
  if (one.best) line.set("best_trial", one.best_trial);
  line.set("age_s", age_of(one.head));
  return to_json(line);
}

void print_row(const Listed& one, std::size_t width) {
  if (!one.head.problem.empty()) {
    return fmt::print("{:<{}}  {}\n", one.head.folder, width, one.head.problem);
  }
  const std::uint64_t all = std::max<std::uint64_t>(one.trials, one.total.value_or(0));
  std::string trials = fmt::format("{}/{}", one.over, all);
  if (one.errors > 0) trials += fmt::format(" ({} failed)", one.errors);
  const std::string best =
      one.best ? fmt::format("{}={:.6g}", one.head.metric, *one.best) : std::string("-");
  fmt::print("{:<{}}  {:<11}  {:<20}  {:<30}  {}\n", one.head.folder, width, one.state, trials,
             best, age_in_words(age_of(one.head)));
}

}  // namespace

int list_command(const ListArguments& arguments) {
  std::vector<ExperimentHead> heads = heads_in(arguments.storage);
  std::size_t width = 4;
  for (const ExperimentHead& head : heads) width = std::max(width, head.folder.size());
  if (!arguments.json) {
    fmt::print("{:<{}}  {:<11}  {:<20}  {:<30}  {}\n", "name", width, "state", "trials over/all",
               "best", "last change");
  }
  for (ExperimentHead& head : heads) {
    const Listed one = listed_of(std::move(head));
    if (arguments.json) {
      fmt::print("{}\n", json_line(one));
    } else {
      print_row(one, width);
    }
  }
  return 0;
}

}  // namespace tune
