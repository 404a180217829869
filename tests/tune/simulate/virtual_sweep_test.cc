// Sweeps in virtual time, with tasks whose curves follow from their configuration.
#include "tune/simulate/virtual_sweep.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "core/refusal.h"
#include "tune/search/pbt/pbt.h"
#include "tune/simulate/curve_table.h"

namespace tune {
namespace {

using testing::refusal;

// Reports x * step; a step takes a second, or as long as its configuration says.
class LineTask : public Task {
 public:
  explicit LineTask(std::uint64_t steps) : steps_(steps) {}
  const std::string& name() const override { return name_; }
  const SearchSpace& space() const override { return space_; }
  const std::vector<TaskMetric>& metrics() const override { return metrics_; }
  std::uint64_t steps() const override { return steps_; }
  Reference reference(const Objective&) const override { return {}; }
  std::unique_ptr<Curve> begin(const Config& config, Given&) const override {
    return std::make_unique<Line>(config, steps_);
  }

 private:
  struct Line : Curve {
    Line(const Config& config, std::uint64_t steps)
        : x(config.get<double>("x")), step_s(config.get_or("step_s", 1.0)), steps(steps) {}
    std::uint64_t length() const override { return steps; }
    double seconds(std::uint64_t) override { return step_s; }
    std::span<const double> values(std::uint64_t step) override {
      value = x * static_cast<double>(step);
      return {&value, 1};
    }
    double x;
    double step_s;
    std::uint64_t steps;
    double value = 0;
  };
  std::string name_ = "line";
  SearchSpace space_ = {{"x", uniform(0, 100)}};
  std::vector<TaskMetric> metrics_ = {{"m", Mode::kMax}};
  std::uint64_t steps_;
};

ExperimentSpec sweep_of(RunOptions options) {
  options.metric = "m";
  options.seed = 1;
  std::vector<Complaint> complaints;
  ExperimentSpec spec = make_spec(std::move(options), "played", true, complaints);
  REQUIRE(complaint_lines("", complaints) == "");
  return spec;
}

// Four trials with x 1, 2, 3, 4.
RunOptions grid() {
  RunOptions options;
  options.config = {{"x", grid_search({1, 2, 3, 4})}};
  return options;
}

TEST_CASE("trials share workers, one after the other, for as long as their steps take") {
  // Two workers, four trials of three seconds: two rounds.
  const VirtualRun run = play(sweep_of(grid()), LineTask(3), {.workers = 2});
  CHECK(run.seconds == 6);
  CHECK(run.trials == 4);
  CHECK(run.launches == 4);
  CHECK(run.steps == 12);
  CHECK(run.last_steps == std::map<std::uint64_t, std::uint64_t>{{3, 4}});
  CHECK(play(sweep_of(grid()), LineTask(3), {.workers = 3}).seconds == 6);
  CHECK(play(sweep_of(grid()), LineTask(3), {.workers = 4}).seconds == 3);
  CHECK(play(sweep_of(grid()), LineTask(3), {.workers = 9}).seconds == 3);
  RunOptions narrow = grid();
  narrow.max_concurrent_trials = 1;
  CHECK(play(sweep_of(narrow), LineTask(3), {.workers = 4}).seconds == 12);
  RunOptions large = grid();  // what a trial asks for on a real node
  large.resources_per_trial = {.cpu = 8, .gpu = 2, .ranks = 2};
  CHECK(play(sweep_of(large), LineTask(3), {.workers = 4}).seconds == 3);
}

TEST_CASE("gp is asked as in a real sweep, in no time, and finds better values than chance") {
  RunOptions options;
  options.config = {{"x", uniform(0, 100)}};
  options.num_samples = 24;
  options.searcher = random_search();
  const VirtualRun by_chance = play(sweep_of(options), LineTask(3), {.workers = 2});
  options.searcher = gp({.random_share = 0});
  const VirtualRun run = play(sweep_of(options), LineTask(3), {.workers = 2});
  CHECK(run.trials == 24);
  CHECK(run.seconds == 36);
  CHECK(run.best.back().value > 299);  // of 300
  CHECK(run.best.back().value > by_chance.best.back().value);
  CHECK(play(sweep_of(options), LineTask(3), {.workers = 2}).best.back().value ==
        run.best.back().value);
  options.scheduler = asha({.max_t = 3, .reduction_factor = 3, .type = AshaType::kPromote});
  options.num_samples = 60;
  CHECK(play(sweep_of(options), LineTask(9), {.workers = 4}).best.back().value > 298);
}

TEST_CASE("tpe, cma_es and auto find better values than chance, in virtual sweeps too") {
  RunOptions options;
  options.config = {{"x", uniform(0, 100)}};
  options.num_samples = 60;
  const auto best = [&](const SearcherSpec& searcher) {
    options.searcher = searcher;
    const VirtualRun run = play(sweep_of(options), LineTask(3), {.workers = 2});
    CHECK(run.trials == 60);
    CHECK(play(sweep_of(options), LineTask(3), {.workers = 2}).best.back().value ==
          run.best.back().value);
    return run.best.back().value;
  };
  const double by_chance = best(random_search());  // of 300
  for (const SearcherSpec& searcher : {tpe(), cma_es(), SearcherSpec()}) {
    CAPTURE(searcher.name());
    CHECK(best(searcher) > by_chance);
    CHECK(best(searcher) > 299);
  }
  CHECK(best(halton()) > 290);
  options.scheduler = asha({.max_t = 3, .reduction_factor = 3, .type = AshaType::kPromote});
  for (const SearcherSpec& searcher : {tpe(), cma_es(), SearcherSpec()}) {
    CAPTURE(searcher.name());
    options.searcher = searcher;
    CHECK(play(sweep_of(options), LineTask(9), {.workers = 4}).best.back().value > 297);
  }
}

TEST_CASE("a slow trial keeps its own worker only") {
  RunOptions options;
  options.config = {{"x", 1}, {"step_s", grid_search({10, 1, 1, 1})}};
  // Three seconds each for the others on the second worker; the first is busy for 30.
  CHECK(play(sweep_of(options), LineTask(3), {.workers = 2}).seconds == 30);
}

TEST_CASE("each launch costs its start") {
  // Half a step more for each of two rounds.
  CHECK(play(sweep_of(grid()), LineTask(3), {.workers = 2, .start_cost = 0.5}).seconds == 7);
}

TEST_CASE("the best value counts from when its trial ends or waits") {
  const VirtualRun run = play(sweep_of(grid()), LineTask(3), {.workers = 2});
  // Trials 1 and 2 end at second 3 with 3 and 6, trials 3 and 4 at second 6 with 9 and 12.
  REQUIRE(run.best.size() == 4);
  CHECK(run.best[1].seconds == 3);
  CHECK(run.best[1].value == 6);
  CHECK_FALSE(run.best_at(2.9));
  CHECK(run.best_at(3) == 6.0);
  CHECK(run.best_at(5.9) == 6.0);
  CHECK(run.best_at(6) == 12.0);
  RunOptions lowest = grid();
  lowest.mode = Mode::kMin;
  CHECK(play(sweep_of(lowest), LineTask(3), {.workers = 4}).best_at(3) == 1.0);
}

TEST_CASE("a budget ends the sweep, and what was not finished then does not count") {
  RunOptions options = grid();
  options.num_samples = -1;
  options.time_budget_s = 7.5;
  const VirtualRun run = play(sweep_of(options), LineTask(3), {.workers = 2});
  CHECK(run.seconds == 7.5);
  CHECK(run.trials == 6);  // the third pair has done one step
  CHECK(run.last_steps == std::map<std::uint64_t, std::uint64_t>{{1, 2}, {3, 4}});
  CHECK(run.best_at(7.5) == 12.0);
}

TEST_CASE("stop rules end trials as a worker would") {
  RunOptions options = grid();
  options.stop = {{"m", 4}};
  const VirtualRun run = play(sweep_of(options), LineTask(3), {.workers = 4});
  // x 1 never comes to 4; x 2 and x 3 do in step 2, x 4 in step 1.
  CHECK(run.last_steps == std::map<std::uint64_t, std::uint64_t>{{1, 1}, {2, 2}, {3, 1}});
  RunOptions timed = grid();
  timed.max_trial_time_s = 2;
  CHECK(play(sweep_of(timed), LineTask(3), {.workers = 4}).last_steps ==
        std::map<std::uint64_t, std::uint64_t>{{2, 4}});
}

TEST_CASE("asha stops trials at its rungs") {
  RunOptions options = grid();
  options.scheduler = asha({.max_t = 9, .reduction_factor = 3, .rule = AshaRule::kTop});
  // One worker: 1 is best of one and goes on at rungs 1 and 3, and so does each that is better than
  // all before it.
  const VirtualRun rising = play(sweep_of(options), LineTask(9), {.workers = 1});
  CHECK(rising.last_steps == std::map<std::uint64_t, std::uint64_t>{{9, 4}});
  options.config = {{"x", grid_search({4, 3, 2, 1})}};
  const VirtualRun falling = play(sweep_of(options), LineTask(9), {.workers = 1});
  CHECK(falling.last_steps == std::map<std::uint64_t, std::uint64_t>{{1, 3}, {9, 1}});
  CHECK(falling.seconds == 12);
  CHECK(falling.best_at(1) == 4.0);  // it waits at its rung
  CHECK(falling.best_at(2) == 4.0);
  CHECK(falling.best_at(9) == 36.0);
}

// Pauses each trial after every step; the one with the fewest steps goes next.
class RoundRobin : public TrialScheduler {
 public:
  void configure(const Objective& experiment) override { objective_ = experiment; }
  Objective objective() const override { return objective_; }
  Milestone add_trial(TrialNumber) override { return {"training_iteration", 1}; }
  Decision result(TrialNumber trial, const ResultView& result) override {
    steps_[trial] = result.iteration();
    return Decision::pause("it is the next one's turn");
  }
  Milestone resume_trial(TrialNumber trial) override {
    return {"training_iteration", static_cast<double>(steps_[trial] + 1)};
  }
  void end_trial(TrialNumber, TrialEnd, const Reported*) override {}
  bool pauses() const override { return true; }
  std::optional<TrialNumber> choose(const Candidates& candidates) const override {
    std::optional<TrialNumber> least;
    for (const Candidate& one : candidates.list()) {
      if (!least || steps_of(one.trial) < steps_of(*least)) least = one.trial;
    }
    return least;
  }
  std::vector<std::string> status_lines() const override { return {}; }
  std::string save() const override { return {}; }
  void restore(std::string_view) override {}

 private:
  std::uint64_t steps_of(TrialNumber trial) const {
    const auto found = steps_.find(trial);
    return found == steps_.end() ? 0 : found->second;
  }
  Objective objective_;
  std::map<TrialNumber, std::uint64_t> steps_;
};

TEST_CASE("a paused trial goes on where it stood, and pays for each start") {
  RunOptions options = grid();
  options.scheduler = SchedulerSpec("", {}, [] { return std::make_unique<RoundRobin>(); });
  const VirtualRun run = play(sweep_of(options), LineTask(3), {.workers = 1, .start_cost = 1});
  CHECK(run.steps == 12);
  CHECK(run.launches == 12);
  CHECK(run.seconds == 24);
  CHECK(run.last_steps == std::map<std::uint64_t, std::uint64_t>{{3, 4}});
  // In turns: 1, 2, 3, 4 after the first steps.
  CHECK(run.best_at(8) == 4.0);
  CHECK(run.best_at(16) == 8.0);
}

TEST_CASE("the same sweep with the same seed is the same run") {
  RunOptions options;
  options.config = {{"x", uniform(0, 100)}, {"step_s", uniform(0.5, 2)}};
  options.num_samples = 40;
  options.scheduler = asha({.max_t = 27, .reduction_factor = 3});
  ExperimentSpec spec = sweep_of(options);
  const VirtualRun one = play(spec, LineTask(27), {.workers = 4});
  const VirtualRun two = play(spec, LineTask(27), {.workers = 4});
  CHECK(one.seconds == two.seconds);
  CHECK(one.last_steps == two.last_steps);
  REQUIRE(one.best.size() == two.best.size());
  CHECK(one.best.back().value == two.best.back().value);
  spec.options.seed = 2;
  CHECK(play(spec, LineTask(27), {.workers = 4}).seconds != one.seconds);
}

TEST_CASE("CPU time of decisions is measured by the clock that is given") {
  Duration now{};
  const VirtualRun run = play(sweep_of(grid()), LineTask(3),
                              {.workers = 2, .cpu_time = [&] { return now += Duration(1); }});
  CHECK(run.deciding > Duration{});
  CHECK(play(sweep_of(grid()), LineTask(3), {.workers = 2}).deciding == Duration{});
}

// ---- Tables

// Rows with x 0 to 9 that report x at each of three steps; the last one was stopped after two.
std::unique_ptr<Task> table() {
  RecordedTask recorded{"recorded", {{"x", uniform(0, 9)}}, {{"m", Mode::kMax}}, {}};
  for (int x = 0; x < 10; ++x) {
    const std::size_t steps = x == 9 ? 2 : 3;
    const auto value = static_cast<double>(x);
    recorded.rows.push_back({"",
                             {{"x", value}},
                             std::vector<double>(steps, value),
                             std::vector<double>(steps, 1.0),
                             steps == 3});
  }
  return table_task(std::move(recorded));
}

// Four steps that report x; unless `always`, the odd ones do without it.
std::unique_ptr<Task> sparse_table(bool always) {
  RecordedTask recorded{"sparse", {{"x", uniform(0, 9)}}, {{"m", Mode::kMax}}, {}};
  for (const double x : {4.0, 3.0, 2.0, 1.0}) {
    RecordedCurve row{"", {{"x", x}}, {std::nan(""), x, std::nan(""), x}, {1.0, 1.0, 1.0, 1.0}};
    if (!always) row.absent = {true, false, true, false};
    recorded.rows.push_back(std::move(row));
  }
  return table_task(std::move(recorded));
}

TEST_CASE("a step without the metric is not judged: asha waits for the next one that has it") {
  RunOptions options;
  options.config = {{"x", grid_search({4, 3, 2, 1})}};
  options.scheduler = asha({.max_t = 4, .reduction_factor = 2, .rule = AshaRule::kTop});
  using Steps = std::map<std::uint64_t, std::uint64_t>;
  // The rungs are 1, 2 and 4. 4 is the best of one at each; the others are worse at step 2, where
  // rung 1 is made good.
  const VirtualRun sparse = play(sweep_of(options), *sparse_table(false), {.workers = 1});
  CHECK(sparse.last_steps == Steps{{2, 3}, {4, 1}});
  CHECK(sparse.best_at(sparse.seconds) == 4.0);
  // A reported NaN is judged, as the worst there is.
  CHECK(play(sweep_of(options), *sparse_table(true), {.workers = 1}).last_steps ==
        Steps{{1, 3}, {4, 1}});
}

TEST_CASE("of several objectives a step that lacks one leaves the values as they were") {
  // m is x at each step, ms is 10 x at the second of three alone.
  RecordedTask recorded{"two", {{"x", uniform(0, 9)}}, {{"m", Mode::kMax}, {"ms", Mode::kMin}}, {}};
  for (const double x : {1.0, 2.0}) {
    const double nan = std::nan("");
    RecordedCurve row{"", {{"x", x}}, {x, nan, x, 10 * x, x, nan}, {1.0, 1.0, 1.0}};
    row.absent = {false, true, false, false, false, true};
    recorded.rows.push_back(std::move(row));
  }
  const auto task = table_task(std::move(recorded));
  RunOptions options;
  options.config = {{"x", grid_search({1, 2})}};
  options.objectives = {{"m", Mode::kMax}, {"ms", Mode::kMin}};
  options.seed = 1;
  std::vector<Complaint> complaints;
  const ExperimentSpec spec = make_spec(options, "played", true, complaints);
  REQUIRE(complaint_lines("", complaints) == "");
  using Points = std::vector<std::vector<double>>;
  CHECK(play(spec, *task, {.workers = 2}).points_at(3) == Points{{1, 10}, {2, 20}});
  CHECK(task->reference({"ms", Mode::kMin}).median == 15);
}

TEST_CASE("under constraints only steps that keep them count, as does the reference") {
  // m is x at each step, ms is 10 x; of x 4 it is 90 at the last step, of x 8 it is 9 at the
  // second.
  RecordedTask recorded{"two", {{"x", uniform(0, 9)}}, {{"m", Mode::kMax}, {"ms", Mode::kMin}}, {}};
  for (int i = 0; i < 10; ++i) {
    const auto x = static_cast<double>(i);
    std::vector<double> values = {x, 10 * x, x, 10 * x, x, 10 * x};
    if (i == 4) values[5] = 90;
    if (i == 8) values[3] = 9;
    recorded.rows.push_back({"", {{"x", x}}, std::move(values), {1.0, 1.0, 1.0}, true});
  }
  const auto task = table_task(std::move(recorded));
  const auto best = [&](std::vector<Constraint> constraints) {
    RunOptions options;
    options.config = {{"x", uniform(0, 9)}};
    options.num_samples = 10;
    options.constraints = std::move(constraints);
    const VirtualRun run = play(sweep_of(options), *task, {.workers = 2});
    CHECK(run.trials == 10);
    return run.best_at(run.seconds);
  };
  CHECK(best({}) == 9.0);
  CHECK(best({{.metric = "ms", .max = 45}}) == 8.0);  // by its second step
  CHECK(best({{.metric = "ms", .max = 45}, {.metric = "m", .max = 5}}) == 4.0);
  CHECK_FALSE(best({{.metric = "ms", .min = 91}}));
  const auto reference = [&](std::vector<Constraint> constraints) {
    return task->reference({"m", Mode::kMax, 0, {}, std::move(constraints)});
  };
  CHECK(reference({}).optimum == 9);
  CHECK(reference({}).median == 4.5);
  // At their ends 0, 1, 2 and 3 keep it.
  CHECK(reference({{.metric = "ms", .max = 45}}).optimum == 3);
  CHECK(reference({{.metric = "ms", .max = 45}}).median == 1.5);
  CHECK_HAS(refusal([&] { reference({{.metric = "ms", .min = 91}}); }, ErrorCode::kBadInput),
            "two: none of 10 configurations keeps the constraints: m (max); ms >= 91");
}

TEST_CASE("of several objectives each trial's last values count, when it waits or ends") {
  // m and ms grow with every step; x 3 breaks the bound on ms at its last step alone.
  RecordedTask recorded{"two", {{"x", uniform(0, 9)}}, {{"m", Mode::kMax}, {"ms", Mode::kMin}}, {}};
  for (int i = 0; i < 4; ++i) {
    const auto x = static_cast<double>(i);
    std::vector<double> values;
    for (int step = 1; step <= 3; ++step) {
      values.push_back(step * (x + 1));
      values.push_back(i == 3 && step == 3 ? 99 : step * (9 - x));
    }
    recorded.rows.push_back({"", {{"x", x}}, std::move(values), {1.0, 1.0, 1.0}, true});
  }
  const auto task = table_task(std::move(recorded));
  RunOptions options;
  options.config = {{"x", grid_search({0, 1, 2, 3})}};
  options.objectives = {{"m", Mode::kMax}, {"ms", Mode::kMin}};
  const auto played = [&] {
    options.seed = 1;
    std::vector<Complaint> complaints;
    const ExperimentSpec spec = make_spec(options, "played", true, complaints);
    REQUIRE(complaint_lines("", complaints) == "");
    return play(spec, *task, {.workers = 4});
  };
  using Points = std::vector<std::vector<double>>;
  const VirtualRun whole = played();
  CHECK(whole.best.empty());
  CHECK(whole.points_at(2.5).empty());
  CHECK(whole.points_at(3) == Points{{3, 27}, {6, 24}, {9, 21}, {12, 99}});
  options.scheduler = asha({.max_t = 3, .reduction_factor = 2, .rule = AshaRule::kTop});
  const VirtualRun halved = played();
  // The first at the rung goes on, and what comes after it is compared.
  CHECK(halved.points_at(1) == Points{{1, 9}, {2, 8}, {3, 7}, {4, 6}});
  CHECK(halved.points.size() > 4);
  CHECK(halved.points_at(halved.seconds) != halved.points_at(1));
  CHECK(halved.points_at(halved.seconds).size() == 4);
  options.scheduler = {};
  options.constraints = {{.metric = "ms", .max = 50}};
  CHECK(played().points_at(3) == Points{{3, 27}, {6, 24}, {9, 21}});
  CHECK(played().points.size() == 4);
}

TEST_CASE("random search over a table gets each row once") {
  RunOptions options;
  options.config = {{"x", uniform(0, 9)}};
  options.num_samples = 10;
  const auto task = table();
  const VirtualRun run = play(sweep_of(options), *task, {.workers = 2});
  CHECK(run.trials == 10);
  CHECK(run.best_at(run.seconds) == 9.0);
  CHECK(run.last_steps == std::map<std::uint64_t, std::uint64_t>{{2, 1}, {3, 9}});
  CHECK(run.ends_of_record == 1);
}

TEST_CASE("a sweep without end gets all rows; one that asks for more is refused") {
  RunOptions options;
  options.config = {{"x", uniform(0, 9)}};
  options.num_samples = -1;
  options.time_budget_s = 1e6;
  const auto task = table();
  CHECK(play(sweep_of(options), *task, {.workers = 3}).trials == 10);
  options.config = {{"x", uniform(0, 9)}, {"y", grid_search({1, 2, 3})}};
  CHECK(play(sweep_of(options), *task, {.workers = 3}).trials == 9);  // three whole grids
  options.config = {{"x", uniform(0, 9)}};
  options.num_samples = 11;
  CHECK_HAS(refusal([&] { play(sweep_of(options), *task, {}); }),
            "recorded has 10 recorded trials, the sweep asks for 11");
}

TEST_CASE("a metric that the task has not is refused") {
  ExperimentSpec spec = sweep_of(grid());
  spec.options.metric = "loss";
  CHECK_HAS(refusal([&] { play(spec, LineTask(3), {}); }), "line has no metric 'loss': it has m");
}

TEST_CASE("a scheduler that gives trials the state of others is refused") {
  RunOptions options = grid();
  PbtOptions pbt_options;
  pbt_options.hyperparam_mutations = {{"x", uniform(0, 9)}};
  options.scheduler = pbt(pbt_options);
  CHECK_HAS(refusal([&] { play(sweep_of(options), LineTask(3), {}); }),
            "playing the sweep on line: the scheduler pbt gives trials the state of others");
}

}  // namespace
}  // namespace tune
