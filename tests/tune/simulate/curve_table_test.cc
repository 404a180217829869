#include "tune/simulate/curve_table.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

const char* const kTable =
    "lr,momentum,loss_0,loss_1,loss_2\n"
    "0.001,0.5,3,2,1\n"
    "0.1,0.5,3,nan,inf\n"
    "1,0.9,3,2.5,0.5\r\n";

TEST_CASE("a table's parameters range over its rows, its metric is that of its columns") {
  const auto task = table_task(parse_curve_csv(kTable, "set/one"));
  CHECK(task->name() == "set/one");
  CHECK(task->space().describe().dump() ==
        R"({"lr":{"loguniform":[0.001,1.0]},"momentum":{"uniform":[0.5,0.9]}})");
  REQUIRE(task->metrics().size() == 1);
  CHECK(task->metrics()[0].name == "loss");
  CHECK(task->metrics()[0].mode == Mode::kMin);
  CHECK(task->steps() == 3);
  CHECK(task->most_trials() == 3u);
  // Of 1, inf and 0.5 at the end.
  const Reference reference = task->reference({"loss", Mode::kMin});
  CHECK(reference.optimum == 0.5);
  CHECK(reference.median == 1);
}

TEST_CASE("a proposal gets the nearest row that no other trial got") {
  const auto task = table_task(parse_curve_csv(kTable, "one"));
  Task::Given given;
  const Config proposal = {{"lr", 0.2}, {"momentum", 0.5}};
  const auto nearest = task->begin(proposal, given);  // 0.1
  CHECK(std::isnan(nearest->values(2)[0]));
  CHECK(std::isinf(nearest->values(3)[0]));
  // By the logarithm 0.2 is .77 of the way from 0.001 to 1: 0.001 is .77 away, 1 with momentum 0.9
  // is .23 and 1 away.
  CHECK(task->begin(proposal, given)->values(3)[0] == 1);
  CHECK(task->begin(proposal, given)->values(3)[0] == 0.5);
  CHECK_HAS(refusal([&] { task->begin(proposal, given); }),
            "all of its 3 recorded trials are given");
  Task::Given other;
  CHECK(std::isnan(task->begin(proposal, other)->values(2)[0]));
}

TEST_CASE("rows of another option are further than any of the same") {
  const SearchSpace space = {
      {"x", uniform(0, 1)},
      {"o",
       choice({{{"k", "a"}, {"y", uniform(0, 1)}}, {{"k", "b"}, {"y", uniform(0, 10)}}, "none"})}};
  const auto row = [](const Config& config, double value) {
    return RecordedCurve{.label = "t", .config = config, .values = {value}, .seconds = {1}};
  };
  const auto task = table_task({"one",
                                space,
                                {{"loss", Mode::kMin}},
                                {row({{"x", 0.5}, {"o", {{"k", "a"}, {"y", 0.1}}}}, 1),
                                 row({{"x", 0.5}, {"o", {{"k", "a"}, {"y", 0.9}}}}, 2),
                                 row({{"x", 0.5}, {"o", {{"k", "b"}, {"y", 0.8}}}}, 3),
                                 row({{"x", 0.5}, {"o", "none"}}, 4)}});
  const auto nearest = [&](const Value& o) {
    Task::Given given;
    return task->begin({{"x", 0.5}, {"o", o}}, given)->values(1)[0];
  };
  CHECK(nearest({{"k", "a"}, {"y", 0.8}}) == 2);
  CHECK(nearest({{"k", "a"}, {"y", 0.3}}) == 1);
  CHECK(nearest({{"k", "b"}, {"y", 0.1}}) == 3);
  CHECK(nearest("none") == 4);
  CHECK(misfits(space, *task).empty());
  // Options that only their domains tell apart.
  const SearchSpace alike = {{"o", choice({{{"y", uniform(0, 1)}}, {{"y", uniform(5, 6)}}})}};
  const auto other =
      table_task({"two", alike, {{"loss", Mode::kMin}}, {row({{"o", {{"y", 5.5}}}}, 1)}});
  CHECK(misfits(alike, *other).empty());
  CHECK(misfits({{"o", choice({{{"y", uniform(5, 7)}}})}}, *other).size() == 1);
}

TEST_CASE("each row has a pace of its own, the same each time") {
  const auto task = table_task(parse_curve_csv(kTable, "one"));
  const auto again = table_task(parse_curve_csv(kTable, "one"));
  Task::Given given;
  Task::Given given_again;
  double last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto curve = task->begin({{"lr", 0.1}, {"momentum", 0.5}}, given);
    CHECK(curve->seconds(1) > 0);
    CHECK(curve->seconds(1) == curve->seconds(3));
    CHECK(curve->seconds(1) != last);
    last = curve->seconds(1);
    CHECK(again->begin({{"lr", 0.1}, {"momentum", 0.5}}, given_again)->seconds(1) == last);
  }
}

TEST_CASE("what is not a table of curves is told from one, and broken ones are refused") {
  CHECK(is_curve_csv("lr,loss_0,loss_1"));
  CHECK(is_curve_csv("lr,loss_0\r"));
  CHECK_FALSE(is_curve_csv("loss_0,loss_1"));
  CHECK_FALSE(is_curve_csv("lr,loss_0,loss_2"));
  CHECK_FALSE(is_curve_csv("lr,loss_0,acc"));
  CHECK_FALSE(is_curve_csv("trial_id,status,loss"));
  const auto why = [](const std::string& text) {
    return refusal([&] { table_task(parse_curve_csv(text, "t")); });
  };
  CHECK_HAS(why(""), "reading t: it has no row");
  CHECK_HAS(why("lr,loss_0\n"), "it has no row");
  CHECK_HAS(why("lr,loss\n1,2\n"), "its first line is not");
  CHECK_HAS(why("lr,loss_0\n1\n"), "line 2 has 1 cells instead of 2");
  CHECK_HAS(why("lr,loss_0\n1,high\n"), "line 2: 'high' is not a number");
  CHECK_HAS(why("lr,loss_0\nnan,1\n"), "line 2: lr is not finite");
}

TEST_CASE("what has no order is near when it is the same") {
  RecordedTask recorded{
      "r", {{"act", choice({"relu", "tanh"})}, {"lr", uniform(0, 1)}}, {{"m", {}}}, {}};
  recorded.rows = {{"a", {{"act", "relu"}, {"lr", 0.9}}, {1}, {1}, true},
                   {"b", {{"act", "tanh"}, {"lr", 0.1}}, {2}, {1}, true},
                   {"c", {{"act", "tanh"}, {"lr", 0.2}}, {}, {}, true}};  // it never reported
  const auto task = table_task(std::move(recorded));
  CHECK(task->most_trials() == 2u);
  Task::Given given;
  CHECK(task->begin({{"act", "tanh"}, {"lr", 0.9}}, given)->values(1)[0] == 2);
  CHECK_HAS(refusal([] {
              table_task({"r", {}, {{"m", {}}}, {}});
            }),
            "r: there is no recorded trial with a result");
}

}  // namespace
}  // namespace tune
