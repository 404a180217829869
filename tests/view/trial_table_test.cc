#include "tune/view/trial_table.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/json.h"

namespace tune::view {
namespace {

Value config_of(const char* text) {
  return parse_json(text, "config");
}

TEST_CASE("parameters are columns, of numbers until a value is none") {
  TrialTable table("loss");
  for (std::uint32_t number : {0u, 1u, 2u, 3u}) table.add(number, 1);
  table.set_config(0, config_of(R"({"lr": 0.1, "model": {"layers": 2}})"), 1);
  table.set_config(1, config_of(R"({"lr": 1, "model": {"layers": 3}})"), 1);
  const auto layout = table.layout();
  table.set_config(2, config_of(R"({"lr": "auto", "model": {"layers": 2}})"), 1);
  CHECK(table.layout() > layout);
  REQUIRE(table.parameters().size() == 2);
  const ParameterColumn& lr = table.parameters()[0];
  CHECK(lr.is_words);
  CHECK(lr.words == std::vector<std::string>{"0.1", "1", "auto"});
  CHECK(lr.codes == std::vector<std::uint32_t>{0, 1, 2, kNoWord});
  const ParameterColumn& layers = table.parameters()[1];
  CHECK(layers.name == "model/layers");
  CHECK_FALSE(layers.is_words);
  CHECK(layers.numbers[1] == 3);
  CHECK(std::isnan(layers.numbers[3]));
}

TEST_CASE("a configuration in the place of another leaves nothing of it") {
  TrialTable table("loss");
  table.add(0, 1);
  table.set_config(0, config_of(R"({"a": 1, "b": "x"})"), 1);
  table.set_config(0, config_of(R"({"b": "y"})"), 2);
  CHECK(std::isnan(table.parameters()[0].numbers[0]));
  CHECK(table.parameters()[1].words[table.parameters()[1].codes[0]] == "y");
  CHECK(table.row(0).change == 2);
}

TEST_CASE("a metric has its last, least and greatest finite value") {
  TrialTable table("loss");
  table.add(7, 1);
  for (const char* line : {R"({"loss":3,"acc":0.5})", R"({"loss":1})", R"({"loss":"inf"})",
                           R"({"loss":2})", R"({"loss":null})"}) {
    table.add_result(0, line, "it", 2);
  }
  const MetricColumn* loss = table.metric();
  REQUIRE(loss != nullptr);
  CHECK(std::isnan(loss->last[0]));
  CHECK(loss->least[0] == 1);
  CHECK(loss->greatest[0] == 3);
  CHECK(table.metrics()[1].last[0] == 0.5);
  CHECK(table.row(0).iterations == 5);
  CHECK(table.results() == 5);
  table.clear_results(0, 3);
  CHECK(table.results() == 0);
  CHECK(std::isnan(loss->least[0]));
  CHECK(table.curve(0).size() == 0);
}

TEST_CASE("fields that every result has are not metrics") {
  TrialTable table("loss");
  table.add(0, 1);
  table.add_result(
      0, R"({"training_iteration":1,"done":false,"time_this_iter_s":1,"pid":3,"loss":1})", "it", 1);
  REQUIRE(table.metrics().size() == 1);
  CHECK(table.metrics()[0].name == "loss");
}

TEST_CASE("more metrics than are held are left out, and that is told") {
  TrialTable table("loss");
  table.add(0, 1);
  std::string line = "{\"loss\":1";
  for (int i = 0; i < 10'000; ++i) line += ",\"m" + std::to_string(i) + "\":1";
  table.add_result(0, line + "}", "it", 1);
  CHECK(table.metrics().size() == kMaxColumns);
  CHECK(table.left_columns_out());
  CHECK(table.metric()->last[0] == 1);
}

TEST_CASE("a curve keeps every point while it is short, then every second, every fourth") {
  Curve curve;
  for (int i = 1; i <= 5000; ++i) curve.add(static_cast<float>(i));
  CHECK(curve.size() <= kMaxCurvePoints);
  CHECK(curve.size() > kMaxCurvePoints / 2 - 1);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    CHECK(curve.value(i) == static_cast<float>(curve.iteration(i)));  // it is of that iteration
  }
  CHECK(curve.at(4096) == 4096.0f);
  CHECK(curve.at(1) == std::nullopt);
  CHECK(curve.at(6000) == std::nullopt);  // it has not come so far
  Curve brief;
  brief.add(5);
  brief.add(6);
  CHECK(brief.at(1) == 5.0f);
  CHECK(brief.at(2) == 6.0f);
  CHECK(brief.at(3) == std::nullopt);
}

}  // namespace
}  // namespace tune::view
