#include "process/outcome.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/json.h"
#include "core/platform/runtime_directory.h"
#include "tune/results/csv.h"
#include "tune/results/experiment_folder.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& csv) {
  Rows rows;
  std::string_view text = csv;
  for (std::vector<std::string> row; next_csv_row(text, row);) rows.push_back(row);
  return rows;
}

std::size_t column(const Rows& rows, const std::string& name) {
  REQUIRE(!rows.empty());
  const auto found = std::find(rows[0].begin(), rows[0].end(), name);
  REQUIRE_MESSAGE(found != rows[0].end(), "no column " << name);
  return static_cast<std::size_t>(found - rows[0].begin());
}

std::string read(const Sandbox& box, const fs::path& file) {
  return box.read(fs::relative(file, box.path()).string());
}

// The number of results, each checked.
std::size_t check_trial(const Sandbox& box, const fs::path& folder) {
  const auto lines = lines_of(read(box, folder / "result.json"));
  const Rows rows = rows_of(read(box, folder / "progress.csv"));
  CAPTURE(folder);
  REQUIRE(rows.size() == lines.size() + 1);
  const std::size_t in_csv = column(rows, "training_iteration");
  const std::size_t time_in_csv = column(rows, "time_total_s");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Value result = parse_json(lines[i], folder.string());
    CHECK(result.get<std::size_t>("training_iteration") == i + 1);
    CHECK(rows[i + 1][in_csv] == std::to_string(i + 1));
    CHECK(std::stod(rows[i + 1][time_in_csv]) == result.get<double>("time_total_s"));
  }
  return lines.size();
}

}  // namespace

std::vector<fs::path> trial_folders(const Sandbox& box, const std::string& experiment) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(box.path() / experiment, error)) {
    if (fs::exists(entry.path() / "params.json")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

bool has_results(const Sandbox& box, const std::string& experiment, std::size_t at_least) {
  std::size_t lines = 0;
  for (const fs::path& folder : trial_folders(box, experiment)) {
    lines += lines_of(read(box, folder / "result.json")).size();
  }
  return lines >= at_least;
}

void check_complete(const Sandbox& box, const std::string& experiment, std::size_t trials,
                    std::optional<std::size_t> iterations) {
  CHECK(trial_folders(box, experiment).size() == trials);
  const Rows table = rows_of(box.read(experiment + "/results.csv"));
  REQUIRE(table.size() == trials + 1);
  const std::size_t last = column(table, "training_iteration");
  for (std::size_t i = 1; i < table.size(); ++i) {
    CHECK(table[i][1] == "TERMINATED");
    const std::size_t found = check_trial(box, box.path() / experiment / table[i][0]);
    CHECK(found == iterations.value_or(std::stoul(table[i][last])));
    CHECK(table[i][last] == std::to_string(found));
  }
}

std::string lasting_table(const Sandbox& box, const std::string& experiment) {
  static const std::set<std::string> kFleeting = {"time_this_iter_s",
                                                  "time_total_s",
                                                  "time_since_restore",
                                                  "iterations_since_restore",
                                                  "timestamp",
                                                  "date",
                                                  "hostname",
                                                  "node_ip",
                                                  "pid"};
  const Rows rows = rows_of(box.read(experiment + "/results.csv"));
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    REQUIRE(row.size() == rows[0].size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!kFleeting.contains(rows[0][i])) text.append(row[i]).append(1, '|');
    }
    text += '\n';
  }
  return text;
}

pid_t worker_pid(const Sandbox& box, const fs::path& trial_folder) {
  const auto lines = lines_of(read(box, trial_folder / "result.json"));
  REQUIRE(!lines.empty());
  return parse_json(lines.back(), "result.json").get<int>("pid");
}

void check_nothing_left(const Sandbox& box, const std::string& experiment) {
  CHECK(box.is_quiet());
  // A driver that was killed last may leave the folder of its sockets to the next start.
  setenv("XDG_RUNTIME_DIR", (box.path() / "tmp").c_str(), 1);
  { const RuntimeDirectory next_start; }
  CHECK(fs::is_empty(box.path() / "tmp"));
  // A process stops being visible a moment before it lets go of its files.
  CHECK(Sandbox::eventually([&] { return !is_live(box.path() / experiment); }));
  for (const auto& entry : fs::recursive_directory_iterator(box.path() / experiment)) {
    CHECK_MESSAGE(entry.path().string().find(".tmp") == std::string::npos, entry.path());
  }
}

}  // namespace tune
