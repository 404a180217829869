#include "tune/cli/cli_view_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/results/analysis.h"
#include "tune/results/result_lines.h"
#include "tune/show/status_block.h"
#include "tune/show/text_plot.h"

namespace tune {

namespace {

constexpr std::size_t kCurves = 5;
constexpr std::size_t kWidest = 120;

std::size_t columns_of_terminal() {
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::min<std::size_t>(size.ws_col, kWidest) : 80;
}

// Dots of Braille need a terminal of UTF-8.
bool shows_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

void print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
  fmt::print("\n");
}

struct Standings {
  TextSeries last, best_so_far{.points = {}, .is_line = true};
  std::vector<std::pair<double, const TrialSummary*>> best;  // a value each, the best first
};

Standings standings_of(const Analysis& analysis, const std::string& metric, Mode mode) {
  Standings found;
  double best = std::nan("");
  double number = 0;
  for (const TrialSummary& trial : analysis.trials()) {
    const double value = trial.newest(metric).value_or(std::nan(""));
    const double at = number++;
    if (!std::isfinite(value)) continue;
    found.last.points.emplace_back(at, value);
    const bool is_better = mode == Mode::kMax ? value > best : value < best;
    if (std::isnan(best) || is_better) best = value;
    found.best_so_far.points.emplace_back(at, best);
    found.best.emplace_back(value, &trial);
  }
  std::ranges::stable_sort(found.best, [mode](const auto& a, const auto& b) {
    return mode == Mode::kMax ? a.first > b.first : a.first < b.first;
  });
  return found;
}

std::string counts_of(const std::vector<TrialSummary>& trials) {
  std::array<std::size_t, 5> counts{};
  for (const TrialSummary& trial : trials) ++counts.at(static_cast<std::size_t>(trial.status));
  std::string text = fmt::format("{} trials", trials.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    text += fmt::format(", {} {}", counts[i], status_name(static_cast<TrialStatus>(i)));
  }
  return text;
}

}  // namespace

int view_in_terminal(const std::string& directory) {
  const Analysis analysis = Analysis::load(directory);
  const auto& goals = analysis.objectives();  // of several the first one is drawn
  const std::string metric = goals.empty() ? analysis.metric() : goals.front().metric;
  const Mode mode = goals.empty() ? analysis.mode() : goals.front().mode;
  fmt::print("{}: {}\n\n", one_line(analysis.name()), counts_of(analysis.trials()));
  if (metric.empty()) {
    throw Error(ErrorCode::kBadInput,
                "view --terminal: the experiment has no metric, so there is nothing to draw");
  }
  const Standings found = standings_of(analysis, metric, mode);
  TextPlot plot{.width = columns_of_terminal(), .has_braille = shows_utf8()};
  plot.title = fmt::format("{} ({}): the last value of each trial, and the best so far", metric,
                           mode == Mode::kMax ? "max" : "min");
  plot.below = "trial";
  print(text_plot(plot, {found.last, found.best_so_far}));

  std::vector<TextSeries> curves;
  for (std::size_t i = 0; i < std::min(kCurves, found.best.size()); ++i) {
    TextSeries& curve = curves.emplace_back(TextSeries{.points = {}, .is_line = true});
    const std::vector<Result> results = found.best[i].second->results();
    for (std::size_t at = 0; at < results.size(); ++at) {
      const auto value = number_at(results[at], at + 1, metric);
      if (value) curve.points.emplace_back(static_cast<double>(at + 1), *value);
    }
  }
  plot.title = fmt::format("{}: curves of the best {} trials", metric, curves.size());
  plot.below = "iteration";
  print(text_plot(plot, curves));
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const auto& [value, trial] = found.best[i];
    fmt::print("{}  {:.6g}  {}\n", trial->id, value,
               fitted(one_line(trial->config().dump()), plot.width));
  }
  return 0;
}

}  // namespace tune
