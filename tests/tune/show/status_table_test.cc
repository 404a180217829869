#include "tune/show/status_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <string>

#include "tune/show/status_block.h"

namespace tune {
namespace {

TEST_CASE("what is searched within options has columns, empty where it is not active") {
  const SearchSpace space = {
      {"lr", uniform(0, 1)},
      {"opt",
       choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}}, {{"kind", "adam"}}, "none"})}};
  const Config configs[] = {{{"lr", 0.5}, {"opt", {{"kind", "sgd"}, {"momentum", 0.25}}}},
                            {{"lr", 0.5}, {"opt", {{"kind", "adam"}}}},
                            {{"lr", 0.5}, {"opt", "none"}}};
  std::deque<Trial> trials(3);
  std::vector<const Trial*> rows;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    trials[i].config = pack(configs[i]);
    rows.push_back(&trials[i]);
  }
  RunOptions options;
  options.config = space;
  const std::string trainable = "T";
  const ExperimentStatus status{
      .options = options, .trainable = trainable, .experiment_id = "x", .trials = trials};
  const auto lines = render_table(status, rows, {.metrics = {"m"}}, {}, 0);
  REQUIRE(lines.size() == 5);
  const std::size_t first = lines[0].find('|', lines[0].find("loc"));
  const auto columns = [&](std::size_t line) { return lines[line].substr(first); };
  CHECK(columns(0) == "|  lr |  opt | opt/kind | opt/momentum | m |");
  CHECK(columns(2) == "| 0.5 |      |      sgd |         0.25 |   |");
  CHECK(columns(3) == "| 0.5 |      |     adam |              |   |");
  CHECK(columns(4) == "| 0.5 | none |          |              |   |");
  // A column that was asked for shows all of it.
  const auto asked = render_table(status, rows, {.metrics = {"m"}, .parameters = {"opt"}}, {}, 0);
  CHECK(asked[3].find(R"( {"kind":"adam"} |)") != std::string::npos);
}

TEST_CASE("the metric of a trial whose last result has none is the newest it reported") {
  std::deque<Trial> trials(1);
  trials[0].config = pack(Config{});
  trials[0].last = Reported();
  trials[0].last->result = pack(Value{{"loss", 0.5}});
  trials[0].metric = 0.25;
  RunOptions options;
  options.metric = "acc";
  const std::string trainable = "T";
  const ExperimentStatus status{
      .options = options, .trainable = trainable, .experiment_id = "x", .trials = trials};
  const auto lines = render_table(status, {&trials[0]}, {}, {"loss"}, 0);
  CHECK(lines[0].ends_with("| loss |  acc |"));
  CHECK(lines[2].ends_with("|  0.5 | 0.25 |"));
}

TEST_CASE("the node of a trial is shown when there are several") {
  std::deque<Trial> trials(2);
  for (Trial& trial : trials) trial.config = pack(Config{{"lr", 0.5}});
  trials[0].placement = Placement{{1}, {}};
  const std::vector<const Trial*> rows = {&trials[0], &trials[1]};
  const RunOptions options;
  const std::string trainable = "T";
  ExperimentStatus status{
      .options = options, .trainable = trainable, .experiment_id = "x", .trials = trials};
  status.nodes = {{{0}, "login"}};
  CHECK(render_table(status, rows, {}, {}, 0)[0].find("node") == std::string::npos);
  status.nodes[{1}] = "node-3";
  const auto lines = render_table(status, rows, {}, {}, 0);
  CHECK(lines[0].find("| node   |") != std::string::npos);
  CHECK(lines[2].find("| node-3 |") != std::string::npos);
  CHECK(lines[3].find("|        |") != std::string::npos);
  // Of one that has ended the address is known.
  trials[1].location = "10.0.0.3:77";
  status.hosts = {{"10.0.0.3", "node-3"}, {"10.0.0.4", ""}};
  CHECK(render_table(status, rows, {}, {}, 0)[3].find("| node-3 |") != std::string::npos);
  trials[1].location = "10.0.0.4:77";
  CHECK(render_table(status, rows, {}, {}, 0)[3].find("|        |") != std::string::npos);
}

TEST_CASE("with several objectives all of them have columns, and the front is marked") {
  std::deque<Trial> trials(2);
  std::vector<const Trial*> rows;
  for (std::uint32_t i = 0; i < trials.size(); ++i) {
    trials[i].number = {i};
    trials[i].config = pack(Config{{"lr", 0.5}});
    trials[i].last = Reported{};
    trials[i].last->result = pack(Config{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}});
    rows.push_back(&trials[i]);
  }
  RunOptions options;
  options.config = {{"lr", uniform(0, 1)}};
  options.objectives = {{"c"}, {"e"}};
  options.constraints = {{.metric = "d", .max = 4}};
  const std::string trainable = "T";
  ExperimentStatus status{
      .options = options, .trainable = trainable, .experiment_id = "x", .trials = trials};
  status.pareto = {{1}};
  const auto lines = render_table(status, rows, {}, {"a", "b", "c", "d", "e"}, 0);
  CHECK(lines[0].find("| c | d | e |") != std::string::npos);
  CHECK(lines[0].find("| a |") == std::string::npos);
  CHECK(lines[2].starts_with("| T_x_00000   |"));
  CHECK(lines[3].starts_with("| T_x_00001 * |"));
  BlockMemory memory;
  const auto block = render_status(status, {}, memory, {});
  CHECK(std::ranges::count(block, "Pareto front (*): 1 trial: x_00001") == 1);
}

TEST_CASE("a bar shows the part of the trials that is over, and that runs") {
  CHECK(progress_bar(0, 0, 32) == "[....................]");
  CHECK(progress_bar(16, 0, 32) == "[##########..........]");
  CHECK(progress_bar(16, 1, 32) ==
        "[##########>.........]");  // 10.6 cells: it is seen all the same
  CHECK(progress_bar(16, 8, 32) == "[##########>>>>>.....]");
  CHECK(progress_bar(0, 1, 1'000'000) == "[>...................]");
  CHECK(progress_bar(999'999, 1, 1'000'000) == "[###################>]");
  CHECK(progress_bar(32, 0, 32) == "[####################]");
  CHECK(progress_bar(0, 0, 0) == "[....................]");
}

}  // namespace
}  // namespace tune
