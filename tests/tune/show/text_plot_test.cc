#include "tune/show/text_plot.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "tune/cli/shell.h"
#include "tune/show/status_block.h"
#include "view/folder.h"

namespace tune {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE("points stand where their values are, between the least and the greatest") {
  const TextSeries rising{.points = {{0, 1}, {1, 2}, {2, 3}, {3, std::nan("")}}};
  const TextPlot plot{
      .title = "loss", .below = "trial", .width = 24, .height = 6, .has_braille = false};
  // 13 columns and 3 rows: 1 of 0..2 is in the middle of both.
  CHECK(text_plot(plot, {rising}) == Lines{"loss",                      //
                                           "        3 |            *",  //
                                           "          |      *      ",  //
                                           "        1 |*            ",  //
                                           "          +-------------",  //
                                           "           0   trial   2"});
}

TEST_CASE("a line fills the way between its points") {
  const TextSeries line{.points = {{0, 0}, {12, 0}}, .is_line = true};
  const TextPlot plot{.title = "x", .width = 24, .height = 6, .has_braille = false};
  CHECK(text_plot(plot, {line})[2] == "          |*************");
}

TEST_CASE("dots of Braille have eight places in a letter") {
  const TextPlot plot{.title = "x", .width = 24, .height = 6};
  const Lines lines = text_plot(plot, {{.points = {{0, 0}, {1, 1}}}});
  CHECK(lines[3].starts_with("        0 |\xe2\xa1\x80"));  // U+2840: the lowest at the left
  CHECK(lines[1].ends_with("\xe2\xa0\x88"));               // U+2808: the highest at the right
  for (const std::string& line : lines) CHECK(text_width(line) <= 24);
}

TEST_CASE("values far outside do not press all others flat, equal ones have room, none says so") {
  TextSeries series;
  for (int i = 0; i < 100; ++i) series.points.emplace_back(i, i % 10);
  series.points.emplace_back(100, 1e9);
  const TextPlot plot{.title = "x", .width = 40, .height = 8};
  CHECK(text_plot(plot, {series})[1].starts_with("        9 |"));
  CHECK(text_plot(plot, {{.points = {{1, 7}}}})[1].starts_with("      7.5 |"));
  CHECK(text_plot(plot, {{.points = {{1, std::nan("")}}}}) == Lines{"x", "  nothing yet"});
}

TEST_CASE("tune view --terminal draws an experiment's history and curves") {
  const Shell shell;
  const auto folder = shell.path() / "s";
  testing::begin_experiment(folder);
  testing::add_trial(folder, 0, R"({"lr":0.1})", "{\"loss\":3}\n{\"loss\":2,\"done\":true}\n");
  testing::add_trial(folder, 1, R"({"lr":0.2})", "{\"loss\":1,\"done\":true}\n");
  const Ended ended = shell.tune({"view", "--terminal", "s"});
  CHECK(ended.code == 0);
  CHECK_HAS(ended.out, "s: 2 trials, 2 TERMINATED");
  CHECK_HAS(ended.out, "loss (min): the last value of each trial, and the best so far");
  CHECK_HAS(ended.out, "loss: curves of the best 2 trials");
  CHECK_HAS(ended.out, testing::trial_name(1) + "  1  {\"lr\":0.2}");
  CHECK(shell.tune({"view", "--terminal", "none"}).code == 2);
}

}  // namespace
}  // namespace tune
