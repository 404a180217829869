// `tune export --optuna`, on folders as a driver writes them. tests/export has Optuna itself.
#include "tune/export/optuna.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/refusal.h"
#include "tune/cli/shell.h"
#include "tune/export/optuna_space.h"
#include "view/folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::add_trial;
using testing::event;
using testing::trial_name;
using testing::write_text;

std::string distribution(const OptunaParams& params, const std::string& name) {
  const Value all = parse_json(params.distributions, "distributions");
  return all.get_or(name, "none");
}

TEST_CASE("domains are Optuna's distributions, in its own words") {
  const OptunaSpace space({{"u", uniform(0, 1)},
                           {"l", loguniform(0.5, 2.0)},
                           {"q", quniform(0.25, 1, 0.25)},
                           {"i", randint(2, 10)},
                           {"k", qrandint(3, 10, 4)},
                           {"c", choice({"a", 1, 2.5})},
                           {"constant", 3}});
  const OptunaParams told = space.describe(
      Config{{"u", 0.5}, {"l", 1.0}, {"q", 0.25}, {"i", 9}, {"k", 8}, {"c", 2.5}, {"constant", 3}});
  CHECK(told.params == R"({"u":0.5,"l":1.0,"q":0.25,"i":9,"k":8,"c":2})");
  CHECK(told.attributes.empty());
  CHECK(
      distribution(told, "u") ==
      R"({"name":"FloatDistribution","attributes":{"log":false,"step":null,"low":0.0,"high":1.0}})");
  CHECK_HAS(distribution(told, "l"), R"("log":true,"step":null,"low":0.5,"high":2.0)");
  CHECK_HAS(distribution(told, "q"), R"("step":0.25,"low":0.25,"high":1.0)");
  CHECK(distribution(told, "i") ==
        R"({"name":"IntDistribution","attributes":{"log":false,"step":1,"low":2,"high":9}})");
  CHECK_HAS(distribution(told, "k"), R"("step":4,"low":4,"high":8)");
  CHECK(distribution(told, "c") ==
        R"({"name":"CategoricalDistribution","attributes":{"choices":["a",1,2.5]}})");
}

TEST_CASE("what Optuna has no distribution for, and what lies outside, is an attribute") {
  const OptunaSpace space({{"n", randn(0, 1)},
                           {"u", uniform(0, 1)},
                           {"c", choice({"a", "b"})},
                           {"f", sample_from([](const Config&) { return Value(1); })}});
  const OptunaParams told = space.describe(Config{{"n", 0.5}, {"u", 1.5}, {"c", "z"}, {"f", 1}});
  CHECK(told.params == "{}");
  CHECK(told.attributes == std::vector<std::string>{R"("config/n":0.5)", R"("config/u":1.5)",
                                                    R"("config/c":"z")", R"("config/f":1)"});
}

TEST_CASE("parameters of an option are those of the trials that have it") {
  const OptunaSpace space({{"optimiser", choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}},
                                                 {{"kind", "adam"}, {"momentum", uniform(0, 0.5)}},
                                                 "none"})}});
  const auto params = [&](Config config) { return space.describe(config).params; };
  CHECK(params(Config{{"optimiser", {{"kind", "sgd"}, {"momentum", 0.25}}}}) ==
        R"({"optimiser":0,"optimiser/momentum":0.25})");
  CHECK(params(Config{{"optimiser", {{"kind", "adam"}, {"momentum", 0.25}}}}) ==
        R"~({"optimiser":1,"optimiser/momentum (2)":0.25})~");
  CHECK(params(Config{{"optimiser", "none"}}) == R"({"optimiser":2})");
}

struct Study {
  Shell shell;
  fs::path folder = shell.path() / "s";

  Study() { testing::begin_experiment(folder); }
  Ended run(const char* file = "study.journal") const {
    return shell.tune({"export", "--optuna", file, "s"});
  }
  std::vector<Value> lines() const {
    std::vector<Value> all;
    std::string text = testing::read_text(shell.path() / "study.journal");
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      all.push_back(parse_json(text.substr(at, end - at), "a line"));
      at = end + 1;
    }
    return all;
  }
};

std::string result(int iteration, const std::string& loss) {
  return R"({"loss":)" + loss + R"(,"training_iteration":)" + std::to_string(iteration) +
         R"(,"timestamp":1795000000})" + "\n";
}

TEST_CASE("trials of every outcome have their state, value and intermediate values") {
  const Study study;
  const std::string config = R"({"lr":0.1,"act":"a"})";
  std::string events;
  const auto add = [&](int trial, const std::string& results, const std::string& end) {
    add_trial(study.folder, trial, config, results);
    if (!end.empty()) events += event("attempt_started", trial) + end;
  };
  const auto ended = [](int trial, const std::string& outcome, const std::string& status) {
    return event("attempt_ended", trial, R"(,"outcome":")" + outcome + "\"") +
           (status.empty() ? "" : event("trial_ended", trial, R"(,"status":")" + status + "\""));
  };
  add(0, result(1, "2") + result(2, "1.5"), ended(0, "completed", "TERMINATED"));
  add(1, result(1, "3"), ended(1, "stopped", "TERMINATED"));
  add(2, result(1, "4"), ended(2, "exception", "ERROR"));
  add(3, result(1, "1") + result(2, "null"), ended(3, "completed", "TERMINATED"));
  add(4, result(1, "5"), ended(4, "paused", ""));
  add(5, "", ended(5, "completed", "TERMINATED"));
  add(6, "", "");
  add(7, result(1, "\"-inf\""), ended(7, "completed", "TERMINATED"));
  write_text(study.folder / "events.jsonl", events);
  REQUIRE(study.run().code == 0);
  std::string text = testing::read_text(study.shell.path() / "study.journal");
  CHECK_HAS(text, R"("value":-Infinity)");
  CHECK_HAS(text, R"("2":NaN)");
  // Python's words for them are not JSON's.
  for (const char* word : {"-Infinity", "NaN"}) {
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word)) {
      text.replace(at, std::string(word).size(), "null");
    }
  }
  write_text(study.shell.path() / "study.journal", text);
  const std::vector<Value> lines = study.lines();
  REQUIRE(lines.size() == 10);
  CHECK(lines[0].get<std::string>("study_name") == "s");
  CHECK(lines[0].at("directions") == list({1}));  // min
  const std::vector<int> states = {1, 2, 3, 3, 0, 3, 4, 1};
  for (std::size_t i = 0; i < states.size(); ++i) {
    CAPTURE(i);
    CHECK(lines[i + 2].get<int>("state") == states[i]);
    CHECK(lines[i + 2].get<std::string>("user_attrs/trial_id") == trial_name(static_cast<int>(i)));
    CHECK(lines[i + 2].contains("datetime_complete") == (states[i] != 0 && states[i] != 4));
  }
  CHECK(lines[2].at("value") == Value(1.5));
  CHECK(lines[2].at("intermediate_values") == Value{{"1", 2.0}, {"2", 1.5}});
  CHECK(lines[2].get<std::string>("datetime_start") == "1970-01-01T00:01:40.500000+00:00");
  CHECK(lines[3].at("value") == Value(3.0));
  CHECK(lines[4].at("value").is_null());
  CHECK(lines[5].get<std::string>("user_attrs/last_value") == "nan");
}

TEST_CASE("several objectives are directions of the study, and values of each trial") {
  const Study study;
  std::string spec = testing::spec_text("loss");
  const std::string metric = R"("mode": "min", "metric": "loss",)";
  REQUIRE(spec.find(metric) != spec.npos);
  spec.replace(spec.find(metric), metric.size(),
               R"("objectives": [{"metric": "loss", "mode": "min"}, {"metric": "score"}],)");
  write_text(study.folder / "experiment.json", spec);
  const auto both = [](const std::string& loss, const std::string& score) {
    return R"({"loss":)" + loss + R"(,"score":)" + score + "}\n";
  };
  std::string events;
  for (const auto& [trial, results] :
       {std::pair(0, both("2", "1") + both("1.5", "7")), std::pair(1, both("2", "null")),
        std::pair(2, std::string("{\"loss\":1}\n"))}) {
    add_trial(study.folder, trial, R"({"lr":0.1,"act":"a"})", results);
    events += event("attempt_started", trial) +
              event("attempt_ended", trial, R"(,"outcome":"completed")") +
              event("trial_ended", trial, R"(,"status":"TERMINATED")");
  }
  write_text(study.folder / "events.jsonl", events);
  REQUIRE(study.run().code == 0);
  const std::vector<Value> lines = study.lines();
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].at("directions") == list({1, 2}));
  CHECK(lines[1].at("system_attr").at("study:metric_names") == list({"loss", "score"}));
  CHECK(lines[2].at("values") == list({1.5, 7.0}));
  CHECK(lines[2].at("value").is_null());
  CHECK(lines[2].get<int>("state") == 1);
  CHECK(lines[2].at("intermediate_values") == Value::make_map());
  for (const std::size_t line : {3, 4}) {  // without a value of each
    CHECK(lines[line].get<int>("state") == 3);
    CHECK(lines[line].at("values").is_null());
  }
}

TEST_CASE("an export that is run again replaces its own file and no other") {
  const Study study;
  add_trial(study.folder, 0, R"({"lr":0.1,"act":"a"})", result(1, "2"));
  REQUIRE(study.run().code == 0);
  const std::string first = testing::read_text(study.shell.path() / "study.journal");
  REQUIRE(study.run().code == 0);
  CHECK(testing::read_text(study.shell.path() / "study.journal") == first);
  write_text(study.shell.path() / "mine", R"({"op_code":0,"worker_id":"x"})");
  const Ended refused = study.run("mine");
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "name another file");
  CHECK(testing::read_text(study.shell.path() / "mine") == R"({"op_code":0,"worker_id":"x"})");
  CHECK(study.run("no/such/folder").code != 0);
  CHECK(study.run("s").code == 2);  // a folder
}

TEST_CASE("an experiment without a metric, none at all, or a newer one is refused") {
  const Study study;
  write_text(study.folder / "experiment.json", testing::spec_text(""));
  CHECK_HAS(study.run().err, "it has no metric");
  write_text(study.folder / "experiment.json", testing::spec_text("loss", 9));
  CHECK_HAS(study.run().err, "use the newer one");
  fs::remove(study.folder / "experiment.json");
  const Ended ended = study.run();
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "holds no experiment");
  CHECK_FALSE(fs::exists(study.shell.path() / "study.journal"));
}

TEST_CASE("tune export --json tells what was written, and what was not") {
  const Study study;
  testing::add_trial(study.folder, 0, R"({"lr":0.1,"act":"a"})", result(1, "3") + "{oops\n");
  const Ended ended =
      study.shell.tune({"export", "--json", "--optuna", "study.journal", "--tensorboard", "s"});
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
  const std::size_t end = ended.out.find('\n');
  const Value first = parse_json(ended.out.substr(0, end), "the first line");
  const Value second = parse_json(ended.out.substr(end + 1), "the second line");
  CHECK(first.at("tool").string() == "tensorboard");
  CHECK(first.at("folder").string() == "s/tensorboard");
  CHECK(second.at("tool").string() == "optuna");
  CHECK(second.at("file").string() == "study.journal");
  CHECK(second.at("trials").integer() == 1);
  for (const Value* told : {&first, &second}) {
    REQUIRE(told->at("warnings").list().size() == 1);
    CHECK_HAS(told->at("warnings").list()[0].string(), "result.json");
  }
}

TEST_CASE("a damaged trial is a warning, and the others are whole") {
  const Study study;
  add_trial(study.folder, 0, R"({"lr":0.1,"act":"a"})", "{oops\n");
  add_trial(study.folder, 1, R"({"lr":0.2,"act":"a"})", result(1, "2"));
  const Ended ended = study.run();
  CHECK(ended.code == 0);
  CHECK_HAS(ended.err, "warning: ");
  CHECK(study.lines().size() == 4);
}

}  // namespace
}  // namespace tune
