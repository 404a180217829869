#include "core/result_view.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "core/wire.h"

namespace tune {
namespace {

using std::chrono::seconds;

Reported fifth_of(const Result& result) {
  Reported report;
  report.iteration = 5;
  report.time_this_iter = seconds(2);
  report.time_total = seconds(10);
  report.time_since_restore = seconds(6);
  report.iterations_since_restore = 3;
  report.timesteps_total = 640;
  report.result = pack(result);
  return report;
}

TEST_CASE("a number is found by key path, a framework's field by its name") {
  const Reported reported = fifth_of({{"loss", {{"train", 0.25}, {"test", 2}}},
                                      {"name", "x"},
                                      {"flag", true},
                                      {"nothing", nullptr},
                                      {"items", list({1, 2})}});
  const ResultView view(reported);
  CHECK(view.iteration() == 5);
  const std::pair<const char*, std::optional<double>> table[] = {
      {"loss/train", 0.25},
      {"loss/test", 2},
      {"loss", std::nullopt},
      {"loss/valid", std::nullopt},
      {"name", std::nullopt},
      {"flag", std::nullopt},
      {"nothing", std::nullopt},
      {"items", std::nullopt},
      {"", std::nullopt},
      {"training_iteration", 5},
      {"training_iteration/x", std::nullopt},
      {"time_total_s", 10},
      {"time_this_iter_s", 2},
      {"time_since_restore", 6},
      {"iterations_since_restore", 3},
      {"timesteps_total", 640},
  };
  for (const auto& [path, value] : table) CHECK_MESSAGE(view.number(path) == value, path);
}

TEST_CASE("a number under a framework's name goes before it; other values do not hide it") {
  for (std::string_view name : kFrameworkFields) {
    CAPTURE(name);
    const double own = framework_field(fifth_of({}), name)->number();
    const auto number = [&](const Value& value) {
      return ResultView(fifth_of(Result{{std::string(name), value}})).number(name);
    };
    CHECK(number(99.5) == 99.5);
    CHECK(number(-1) == -1);
    CHECK(std::isnan(number(std::numeric_limits<double>::quiet_NaN()).value()));
    for (const Value& value : {Value("epoch 3"), Value(true), Value(nullptr), Value(list({7})),
                               Value(Config{{"count", 7}})}) {
      CHECK(number(value) == own);
    }
  }
}

TEST_CASE("what was never reported and a damaged result have only the framework's fields") {
  Reported reported = fifth_of({});
  reported.timesteps_total.reset();
  CHECK_FALSE(ResultView(reported).number("timesteps_total").has_value());
  CHECK_FALSE(framework_field(reported, "loss").has_value());
  reported.result.bytes = "\x81\xa1";
  CHECK_FALSE(ResultView(reported).number("loss").has_value());
  CHECK(ResultView(reported).number("training_iteration") == 5);
}

TEST_CASE("counts are whole numbers, times are not") {
  const Reported reported = fifth_of({});
  CHECK(framework_field(reported, "training_iteration")->dump() == "5");
  CHECK(framework_field(reported, "time_total_s")->type() == Value::Type::kFloat);
}

TEST_CASE("a trial ends at the first result that meets a stop rule, or when its time is over") {
  const Reported reported = fifth_of({{"loss", 0.25}});
  const auto ends = [&](const StopRule& rule) {
    return ends_trial(reported, std::vector{rule}, Duration::zero());
  };
  CHECK(ends({"training_iteration", 5}));
  CHECK_FALSE(ends({"training_iteration", 6}));
  CHECK(ends({"loss", 0.25, true}));
  CHECK_FALSE(ends({"loss", 0.2, true}));
  CHECK_FALSE(ends({"accuracy", 0}));  // never reported
  CHECK(ends_trial(reported, std::vector<StopRule>{{"loss", 9}, {"loss", 0.2}}, Duration::zero()));
  CHECK(ends_trial(reported, {}, seconds(10)));
  CHECK_FALSE(ends_trial(reported, {}, seconds(11)));
}

TEST_CASE("a report waits for its verdict when it has reached the milestone") {
  const Reported reported = fifth_of({{"epoch", 2}});
  CHECK(reaches(reported, {"training_iteration", 5}));
  CHECK_FALSE(reaches(reported, {"training_iteration", 6}));
  CHECK(reaches(reported, {"epoch", 2}));
  CHECK_FALSE(reaches(reported, {"step", 0}));
  CHECK_FALSE(reaches(reported, {}));
}

}  // namespace
}  // namespace tune
