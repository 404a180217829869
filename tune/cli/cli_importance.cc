// tune importance.
#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"
#include "tune/cli/cli_insight.h"
#include "tune/results/analysis.h"
#include "tune/results/importance_value.h"

namespace tune {

namespace {

const char* mode_name(Mode mode) {
  return mode == Mode::kMin ? "min" : "max";
}

void print(const Importance& importance) {
  fmt::print("{} ({}): what sets the best {} of {} trials apart from all\n", importance.metric,
             mode_name(importance.mode), importance.best, importance.trials);
  std::size_t width = 0;
  for (const auto& one : importance.parameters) width = std::max(width, one.path.size());
  for (const Importance::Parameter& one : importance.parameters) {
    std::string remark = one.stands_out ? "" : "  no more than chance gives";
    if (!one.when.empty()) remark += fmt::format("  when {}, {} trials", one.when, one.trials);
    fmt::print("  {:<{}}  {:>5.1f} %{}\n", one.path, width, 100 * one.share, remark);
  }
  if (importance.outside > 0) {
    fmt::print("{} trials outside the space do not count\n", importance.outside);
  }
}

}  // namespace

int importance_command(const ImportanceArguments& arguments) {
  std::optional<Mode> mode;
  if (!arguments.mode.empty()) mode = arguments.mode == "min" ? Mode::kMin : Mode::kMax;
  const Importance found = Analysis::load(arguments.directory).importance(arguments.metric, mode);
  if (arguments.json) {
    fmt::print("{}\n", to_json(to_value(found)));
  } else {
    print(found);
  }
  return 0;
}

}  // namespace tune
