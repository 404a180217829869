#include "tune/spec/experiment_spec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/json.h"
#include "core/refusal.h"
#include "tune/search/pb2/pb2.h"
#include "tune/search/pbt/pbt.h"
#include "tune/spec/experiment_identity.h"

namespace tune {
namespace {

using testing::refusal;

RunOptions good() {
  RunOptions options;
  options.config = {{"lr", loguniform(1e-3, 1.0)}, {"batch_size", 64}};
  options.metric = "accuracy";
  options.stop = {{"training_iteration", 3}};
  return options;
}

struct Made {
  ExperimentSpec spec;
  std::vector<Complaint> complaints;
};

Made make(RunOptions options, bool is_function = false) {
  Made made;
  made.spec = make_spec(std::move(options), "Mnist", is_function, made.complaints);
  return made;
}

std::string told(const std::vector<Complaint>& complaints) {
  std::string text;
  for (const Complaint& one : complaints) text += one.path + ": " + one.message + "\n";
  return text;
}

TEST_CASE("good options make a spec with the defaults filled in") {
  const Made made = make(good());
  INFO(told(made.complaints));
  REQUIRE(made.complaints.empty());
  CHECK(made.spec.options.mode == Mode::kMax);
  CHECK(made.spec.trainable == "Mnist");
  CHECK_FALSE(made.spec.name_given);
  CHECK(made.spec.request == ResourceRequest{});
  REQUIRE(made.spec.stop.size() == 1);
  CHECK(made.spec.stop[0] == StopRule{"training_iteration", 3, false});
}

TEST_CASE("what is wrong with options is told with its path and what to write") {
  struct Case {
    const char* what;
    void (*change)(RunOptions&);
    const char* path;
    const char* part;
  };
  const Case cases[] = {
      {"no samples", [](RunOptions& o) { o.num_samples = 0; }, "num_samples", "at least 1, or -1"},
      {"negative samples", [](RunOptions& o) { o.num_samples = -2; }, "num_samples", "-2"},
      {"endless without an end",
       [](RunOptions& o) {
         o.num_samples = -1;
         o.stop.clear();
         o.max_trial_time_s = 5;
       },
       "num_samples", "give time_budget_s or a stop rule"},
      {"failures", [](RunOptions& o) { o.max_failures = -1; }, "max_failures", "at least 0"},
      {"concurrency", [](RunOptions& o) { o.max_concurrent_trials = -1; }, "max_concurrent_trials",
       "at least 0"},
      {"budget", [](RunOptions& o) { o.time_budget_s = -1; }, "time_budget_s", "-1"},
      {"budget nan", [](RunOptions& o) { o.time_budget_s = std::nan(""); }, "time_budget_s", "nan"},
      {"budget too long", [](RunOptions& o) { o.time_budget_s = 1e12; }, "time_budget_s", "1e+09"},
      {"trial time", [](RunOptions& o) { o.max_trial_time_s = -3; }, "max_trial_time_s", "-3"},
      {"hang", [](RunOptions& o) { o.hang_timeout_s = -0.5; }, "hang_timeout_s", "-0.5"},
      {"group", [](RunOptions& o) { o.group_timeout_s = -1; }, "group_timeout_s", "-1"},
      {"store", [](RunOptions& o) { o.store_patience_s = -1; }, "store_patience_s", "-1"},
      {"grace", [](RunOptions& o) { o.save_grace_s = -2; }, "save_grace_s", "-2"},
      {"no group time", [](RunOptions& o) { o.group_timeout_s = 0; }, "group_timeout_s", "above 0"},
      {"lease", [](RunOptions& o) { o.lease_s = -1; }, "lease_s", "-1"},
      {"logger", [](RunOptions& o) { o.loggers = {"tensorbord"}; }, "loggers", "'tensorboard'"},
      {"loggers",
       [](RunOptions& o) {
         o.loggers = {"tensorboard", "tensorboard"};
       },
       "loggers", "twice"},
      {"webhook", [](RunOptions& o) { o.on_end.webhook = "file:///x"; }, "on_end/webhook",
       "https://"},
      {"end", [](RunOptions& o) { o.on_end.command = {""}; }, "on_end/command", "empty"},
      {"no lease", [](RunOptions& o) { o.lease_s = 0; }, "lease_s", "above 0"},
      {"patience", [](RunOptions& o) { o.patience_s = -1; }, "patience_s", "-1"},
      {"no patience", [](RunOptions& o) { o.patience_s = 0; }, "patience_s", "above 0"},
      {"alone", [](RunOptions& o) { o.alone_timeout_s = -1; }, "alone_timeout_s", "-1"},
      {"frequency", [](RunOptions& o) { o.checkpoint.frequency = -1; }, "checkpoint/frequency",
       "at least 0"},
      {"keep", [](RunOptions& o) { o.checkpoint.keep = 0; }, "checkpoint/keep", "at least 1"},
      {"rows", [](RunOptions& o) { o.reporter.max_rows = 0; }, "reporter/max_rows", "at least 1"},
      {"gpu share", [](RunOptions& o) { o.resources_per_trial.gpu = 1.5; }, "resources_per_trial",
       "1.5"},
      {"cpu", [](RunOptions& o) { o.resources_per_trial.cpu = -1; }, "resources_per_trial/cpu",
       "-1"},
      {"ranks", [](RunOptions& o) { o.resources_per_trial.ranks = 0; }, "resources_per_trial/ranks",
       "0"},
      {"cpus", [](RunOptions& o) { o.cpus = 0; }, "cpus", "above 0"},
      {"name", [](RunOptions& o) { o.name = "a/b"; }, "name", "holds a '/'"},
      {"name", [](RunOptions& o) { o.name = ".."; }, "name", "'..' is taken"},
      {"name", [](RunOptions& o) { o.name = "latest"; }, "name", "is taken"},
      {"name", [](RunOptions& o) { o.name = "-x"; }, "name", "begins with '-'"},
      {"name", [](RunOptions& o) { o.name = "a\nb"; }, "name", "control character"},
      {"name", [](RunOptions& o) { o.name = std::string(300, 'a'); }, "name", "longer than 200"},
      {"storage", [](RunOptions& o) { o.storage = ""; }, "storage", "./results"},
      {"s3", [](RunOptions& o) { o.storage = "s3://b"; }, "storage", "s3://BUCKET/PREFIX"},
      {"s3 folder", [](RunOptions& o) { o.checkpoint_storage = "/a"; }, "checkpoint_storage",
       "does not begin with s3://"},
      {"s3 twice",
       [](RunOptions& o) { o.storage = "s3://bucket", o.checkpoint_storage = "s3://bucket"; },
       "checkpoint_storage", "names an object store already"},
      {"store", [](RunOptions& o) { o.store = "localhost"; }, "store",
       "redis://[:password@]host:6379"},
      {"env", [](RunOptions& o) { o.env["A-B"] = "x"; }, "env/A-B", "'A-B' is not a name"},
      {"env", [](RunOptions& o) { o.env["CUDA_VISIBLE_DEVICES"] = "0"; },
       "env/CUDA_VISIBLE_DEVICES", "for each trial"},
      {"stop nan", [](RunOptions& o) { o.stop.emplace("x", std::nan("")); }, "stop/x", "nan"},
      {"stop path", [](RunOptions& o) { o.stop.emplace("a//b", 1); }, "stop/a//b",
       "is not a key path"},
      {"stop number and map",
       [](RunOptions& o) {
         o.stop.emplace("loss", 1);
         o.stop.emplace("loss-x", 1);
         o.stop.emplace("loss/test", 1);
       },
       "stop/loss/test", "loss cannot be a number and hold"},
      {"stop at or above for min",
       [](RunOptions& o) {
         o.metric = "loss";
         o.mode = Mode::kMin;
         o.stop = {{"loss", 0.1}};
       },
       "stop/loss", "write loss: {\"<=\": 0.1} (in C++ {\"loss\", tune::at_most(0.1)})"},
      {"no end", [](RunOptions& o) { o.stop.clear(); }, "stop", "training_iteration: 100"},
      {"asha without metric",
       [](RunOptions& o) {
         o.metric.clear();
         o.scheduler = asha();
       },
       "scheduler", "metric"},
      {"metric twice", [](RunOptions& o) { o.scheduler = asha({.metric = "loss"}); }, "metric",
       "keep one"},
      {"mode twice",
       [](RunOptions& o) {
         o.mode = Mode::kMin;
         o.scheduler = asha({.mode = Mode::kMin});
       },
       "mode", "keep one"},
      {"config", [](RunOptions& o) { o.config = 3; }, "config", "a map of parameters"},
      {"resume without name", [](RunOptions& o) { o.if_exists = IfExists::kResume; }, "name",
       "give one"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    RunOptions options = good();
    one.change(options);
    const Made made = make(options);
    INFO(told(made.complaints));
    REQUIRE(made.complaints.size() == 1);
    CHECK(made.complaints[0].path == one.path);
    CHECK_HAS(made.complaints[0].message, one.part);
  }
}

TEST_CASE("all mistakes are told at once, in one error") {
  RunOptions options = good();
  options.num_samples = 0;
  options.name = "a/b";
  options.checkpoint.keep = 0;
  options.resources_per_trial.gpu = -1;
  const Made made = make(options);
  CHECK(made.complaints.size() == 4);
  const std::string text = refusal([&] { throw_complaints("tune::run", made.complaints); });
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK_HAS(text, "tune::run: num_samples: 0 is out of range");
}

TEST_CASE("complaints are told in the order of their lines, each once, with their option") {
  const std::string text = refusal([] {
    throw_complaints("s.yaml", {{.path = "b", .line = 7, .message = "second"},
                                {.path = "a", .line = 2, .message = "first"},
                                {.path = "a", .line = 2, .message = "first"},
                                {.path = "c", .message = "no line", .option = "--set c=1"}});
  });
  CHECK(text == "s.yaml:2: a: first\ns.yaml:7: b: second\n--set c=1: c: no line");
}

TEST_CASE("any end is enough for a class and none is needed for a function") {
  const auto ends = [](void (*change)(RunOptions&), bool is_function) {
    RunOptions options = good();
    options.stop.clear();
    change(options);
    return make(options, is_function).complaints.empty();
  };
  CHECK_FALSE(ends([](RunOptions&) {}, false));
  CHECK(ends([](RunOptions&) {}, true));
  CHECK(ends([](RunOptions& o) { o.time_budget_s = 5; }, false));
  CHECK(ends([](RunOptions& o) { o.max_trial_time_s = 5; }, false));
  CHECK(ends([](RunOptions& o) { o.scheduler = asha({.max_t = 9}); }, false));
  CHECK(ends([](RunOptions& o) { o.scheduler = asha({.max_t = 9, .time_attr = "epoch"}); }, false));
  CHECK_FALSE(ends(
      [](RunOptions& o) { o.scheduler = asha({.max_t = 9, .stop_last_trials = false}); }, false));
}

TEST_CASE("metric and mode that only the scheduler has become the experiment's") {
  RunOptions options = good();
  options.metric.clear();
  options.scheduler = asha({.max_t = 9, .metric = "loss", .mode = Mode::kMin});
  const Made made = make(options);
  INFO(told(made.complaints));
  REQUIRE(made.complaints.empty());
  CHECK(made.spec.options.metric == "loss");
  CHECK(made.spec.options.mode == Mode::kMin);
  // The driver configures the scheduler with the experiment's: it must not find them twice.
  const auto scheduler = made.spec.options.scheduler.make();
  scheduler->configure({"loss", Mode::kMin, 1});
  CHECK(scheduler->objective().metric == "loss");
  CHECK(scheduler->objective().mode == Mode::kMin);
}

TEST_CASE("min is obeyed by bare stop numbers of other metrics and by at_most") {
  RunOptions options = good();
  options.metric = "loss";
  options.mode = Mode::kMin;
  options.stop = {{"loss", at_most(0.1)}, {"training_iteration", 9}};
  const Made made = make(options);
  INFO(told(made.complaints));
  CHECK(made.complaints.empty());
  CHECK(made.spec.stop[0] == StopRule{"loss", 0.1, true});
}

// ---- experiment.json ----

RunOptions everything() {
  RunOptions options;
  options.name = "full";
  options.config = {
      {"lr", loguniform(1e-4, 0.1)},
      {"model", {{"act", choice({"relu", 2, 1.0, true})}, {"layers", grid_search({1, 2})}}},
      {"units", qrandint(16, 256, 16)},
      {"noise", qrandn(0, 1, 0.5)},
      {"whole", 1.0},
      {"text", "010"},
      {"nothing", nullptr},
      {"infinite", std::numeric_limits<double>::infinity()},
      {"not_a_number", std::nan("")},
      {"one_key", Value{{"key", list({1, 2})}}}};
  options.num_samples = 16;
  options.metric = "loss/test";
  options.mode = Mode::kMin;
  options.scheduler = asha({.max_t = 27, .reduction_factor = 3, .rule = AshaRule::kTop});
  options.stop = {{"loss/test", at_most(0.1)}, {"loss/train", at_most(0.05)}, {"epoch", 50}};
  options.resources_per_trial = {.cpu = 2, .gpu = 0.5, .memory = "8GiB"};
  options.seed = 18446744073709551615ULL;
  options.storage = "elsewhere";
  options.checkpoint = {.frequency = 2, .at_end = false, .keep = 3};
  options.max_failures = 2;
  options.max_concurrent_trials = 3;
  options.time_budget_s = 1.5;
  options.max_trial_time_s = 2.5;
  options.hang_timeout_s = 3.5;
  options.points_to_evaluate = {{{"lr", 0.01}, {"model", {{"layers", 2}}}}};
  options.searcher = basic_variant({.constant_grid_search = true});
  options.store = "redis://host:6379";
  options.env = {{"TOKEN", "secret"}};
  options.reporter = {.metrics = {"a"}, .parameters = {"lr"}, .max_rows = 5, .every_s = 2};
  options.raise_on_failed_trial = false;
  options.fail_fast = true;
  options.if_exists = IfExists::kFresh;
  options.quiet = true;
  options.store_unsafe = true;
  options.cpus = 4;
  options.gpus = 2;
  options.group_timeout_s = 4.5;
  options.store_patience_s = 7.5;
  options.save_grace_s = 8.5;
  options.gpu_visibility = GpuVisibility::kRotated;
  options.wait_gpus = true;
  options.alone_timeout_s = 7.5;
  options.where = {"lr < 2"};
  options.listen = "eth0:7000";
  options.lease_s = 9.5;
  options.patience_s = 10.5;
  options.loggers = {"tensorboard"};
  options.checkpoint_storage = "s3://bucket/prefix";
  return options;
}

ExperimentSpec spec_round_trip(const ExperimentSpec& spec) {
  return spec_from_value(parse_json(to_json(to_value(spec), 2), "experiment.json"));
}

TEST_CASE("a patience that nobody asked for, as older builds stored it, keeps no agent alone") {
  RunOptions options;
  options.stop = {{"training_iteration", 3}};
  CHECK_FALSE(spec_round_trip(make(options).spec).options.patience_s.has_value());
  options.patience_s = 1800;
  const ExperimentSpec asked = make(options).spec;
  CHECK(spec_round_trip(asked).options.patience_s == 1800);
  Value stored = to_value(asked);
  stored.erase("patience_given");
  CHECK_FALSE(spec_from_value(stored).options.patience_s.has_value());
  stored.set("listen", "lo");
  CHECK(spec_from_value(stored).options.patience_s == 1800);
}

TEST_CASE("a storage in S3 keeps the checkpoints alone, each experiment's in a place of its own") {
  RunOptions options = everything();
  options.storage = "s3://bucket/prefix";
  options.checkpoint_storage = "";
  const Made made = make(options);
  REQUIRE(made.complaints.empty());
  CHECK(made.spec.options.storage == "results");
  CHECK(made.spec.options.checkpoint_storage == "s3://bucket/prefix");
  CHECK(object_address("s3://bucket/a/", "tune:n:0123") == "s3://bucket/a/n-0123");
  CHECK(object_address("s3://bucket", "tune:n:0123") == "s3://bucket/n-0123");
  CHECK(object_address("", "tune:n:0123").empty());
}

TEST_CASE("what is done at the end is never stored, and never read from what is stored") {
  RunOptions options = everything();
  options.on_end = {.command = {"rm", "x"}, .webhook = "https://h/secret", .terminal = true};
  Made made = make(options);
  REQUIRE(made.complaints.empty());
  Value stored = to_value(made.spec);
  CHECK_FALSE(stored.contains("on_end"));
  CHECK(to_json(stored).find("secret") == std::string::npos);
  Value on_end = Value::make_map();
  on_end.set("command", Value(std::vector<std::string>{"rm", "x"}));
  stored.set("on_end", on_end);  // somebody wrote it into the file
  CHECK(spec_from_value(stored).options.on_end.command.empty());
}

TEST_CASE("a spec with every option comes back from its JSON as it was") {
  Made made = make(everything());
  INFO(told(made.complaints));
  REQUIRE(made.complaints.empty());
  made.spec.plugin = "/p/libx.so";
  made.spec.sweep = "/p/sweep.yaml";
  made.spec.sweep_hash = "12";
  made.spec.plugin_hash = "34";
  made.spec.store_prefix = "tune:s:56";
  const ExperimentSpec back = spec_round_trip(made.spec);
  CHECK(to_json(to_value(back)) == to_json(to_value(made.spec)));

  const RunOptions& options = back.options;
  CHECK(back.name == "full");
  CHECK(back.name_given);
  CHECK(back.trainable == "Mnist");
  CHECK(back.plugin == "/p/libx.so");
  CHECK(back.sweep_hash == "12");
  CHECK(back.plugin_hash == "34");
  CHECK(back.store_prefix == "tune:s:56");
  CHECK(back.stop == made.spec.stop);
  CHECK(back.request == made.spec.request);
  CHECK(options.seed == 18446744073709551615ULL);
  CHECK(options.mode == Mode::kMin);
  CHECK(options.scheduler.name() == "asha");
  CHECK(options.scheduler.parameters() == made.spec.options.scheduler.parameters());
  CHECK(options.searcher.name() == made.spec.options.searcher.name());
  CHECK(options.searcher.parameters() == made.spec.options.searcher.parameters());
  CHECK(options.resources_per_trial == made.spec.options.resources_per_trial);
  CHECK(options.points_to_evaluate == made.spec.options.points_to_evaluate);
  CHECK(options.if_exists == IfExists::kFresh);
  CHECK(options.cpus == 4.0);
  CHECK(options.group_timeout_s == 4.5);
  CHECK(options.store_patience_s == 7.5);
  CHECK(options.save_grace_s == 8.5);
  CHECK(options.gpu_visibility == GpuVisibility::kRotated);
  CHECK(options.wait_gpus);
  CHECK(options.alone_timeout_s == 7.5);
  CHECK(options.where == std::vector<std::string>{"lr < 2"});
  CHECK(options.listen == "eth0:7000");
  CHECK(options.lease_s == 9.5);
  CHECK(options.patience_s == 10.5);
  CHECK(options.loggers == std::vector<std::string>{"tensorboard"});
  CHECK(options.checkpoint_storage == "s3://bucket/prefix");
  CHECK(options.config.find("infinite")->constant().number() > 1e308);
  CHECK(std::isnan(options.config.find("not_a_number")->constant().number()));
  CHECK(options.config.find("whole")->constant() == Value(1.0));
  CHECK(options.config.find("text")->constant() == Value("010"));
  CHECK(options.config.find("one_key/key")->constant() == list({1, 2}));
  CHECK(options.config.domains().size() == 5);
}

TEST_CASE("values of env are not stored, their names are") {
  Made made = make(everything());
  const std::string text = to_json(to_value(made.spec));
  CHECK_FALSE(testing::has(text, "secret"));
  const ExperimentSpec back = spec_round_trip(made.spec);
  REQUIRE(back.options.env.contains("TOKEN"));
  CHECK(back.options.env.at("TOKEN").empty());
  CHECK_FALSE(to_value(make(good()).spec).contains("env"));
}

TEST_CASE("a dated experiment keeps its folder's name without having been given one") {
  Made made = make(good());
  made.spec.name = "Mnist_2026-11-21_11-38-00";
  const ExperimentSpec back = spec_round_trip(made.spec);
  CHECK(back.name == made.spec.name);
  CHECK_FALSE(back.name_given);
  CHECK(back.options.name.empty());
}

TEST_CASE("a program's call comes back as it was") {
  Made made = make(good());
  made.spec.program = ProgramCall{"/bin/x", {"--a", "b c"}, "/tmp", 2, {"/tmp/first"}};
  const ExperimentSpec back = spec_round_trip(made.spec);
  REQUIRE(back.program);
  CHECK(back.program->executable == "/bin/x");
  CHECK(back.program->arguments == std::vector<std::string>{"--a", "b c"});
  CHECK(back.program->working_directory == "/tmp");
  CHECK(back.program->call == 2);
  CHECK(back.program->earlier == std::vector<std::string>{"/tmp/first"});
}

TEST_CASE("where no searcher is named, one is chosen, told and stored") {
  RunOptions options = good();
  options.num_samples = 40;
  Made learning = make(options);
  REQUIRE(learning.complaints.empty());
  CHECK(learning.spec.searcher_choice ==
        "gp, as 1 parameter is few enough for a model of accuracy");
  CHECK(spec_round_trip(learning.spec).options.searcher.name() == "auto");
  CHECK(spec_round_trip(learning.spec).searcher_choice.empty());
  // Resumed with more trials, a search that was chosen to be random goes on as it is.
  options.num_samples = 4;
  Made few = make(options);
  REQUIRE(few.complaints.empty());
  CHECK(few.spec.options.searcher.name() == "basic_variant");
  CHECK_HAS(few.spec.searcher_choice, "random search, as 4 trials are too few");
  ExperimentSpec resumed = spec_round_trip(few.spec);
  resumed.options.num_samples = 400;
  CHECK(spec_round_trip(resumed).options.searcher.name() == "basic_variant");
  // Earlier trials are enough to learn from.
  options.warm_start = {"/tmp/first"};
  Made warm = make(options);
  REQUIRE(warm.complaints.empty());
  CHECK(warm.spec.options.searcher.name() == "auto");
  CHECK(warm.spec.searcher_choice ==
        "gp, as 1 parameter is few enough for a model of accuracy, after a warm start");
  options.searcher = gp();
  CHECK(make(options).spec.options.searcher.name() == "gp");
  CHECK(make(options).spec.searcher_choice.empty());
}

TEST_CASE("an experiment that names no searcher is of a version that had random search alone") {
  Value stored = to_value(make(good()).spec);
  REQUIRE(stored.erase("searcher"));
  CHECK(spec_from_value(stored).options.searcher.name() == "basic_variant");
}

TEST_CASE("a stored ASHA that says nothing of silent rungs opens none") {
  RunOptions options = good();
  options.scheduler = asha({.type = AshaType::kPromote, .open_after = 12});
  Value stored = to_value(make(options).spec);
  const auto opens = [&] {
    return spec_from_value(stored).options.scheduler.parameters().get<bool>("open_silent");
  };
  CHECK(opens());
  REQUIRE(stored.erase("scheduler/asha/open_silent"));
  CHECK_FALSE(opens());
}

TEST_CASE("own schedulers, searchers and functions are stored by a note that says who has them") {
  Made made = make(good());
  made.spec.options.scheduler = SchedulerSpec("", {}, [] { return fifo().make(); });
  made.spec.options.searcher = SearcherSpec("", {}, [] { return basic_variant().make(); });
  made.spec.options.config = {{"a", 1},
                              {"b", {{"c", sample_from([](const Config&) { return Value(2); })}}}};
  const ExperimentSpec back = spec_round_trip(made.spec);
  CHECK(back.options.scheduler.name().empty());
  CHECK_THROWS_WITH_AS(
      back.options.scheduler.make(),
      "this experiment uses a scheduler of its own program: run it again from that "
      "program",
      Error);
  CHECK_THROWS_AS(back.options.searcher.make(), Error);
  REQUIRE(back.options.config.find("b/c") != nullptr);
  CHECK(back.options.config.find("b/c")->domain().is_function());
}

TEST_CASE("a stored spec that is damaged is refused with the place") {
  const Value good_value = to_value(make(good()).spec);
  struct Case {
    const char* path;
    Value value;
    const char* part;
  };
  const Case cases[] = {{"version", 3, "version is 3"},
                        {"num_samples", "many", "num_samples: expected a whole number"},
                        {"surprise", 1, "unknown key 'surprise'"},
                        {"mode", "big", "mode: expected max or min"},
                        {"name_given", nullptr, "name_given"},
                        {"trainable", 3, "trainable"}};
  for (const Case& one : cases) {
    Value value = good_value;
    value.set(one.path, one.value);
    CAPTURE(one.path);
    CHECK_HAS(refusal([&] { spec_from_value(value); }, ErrorCode::kProtocol), one.part);
  }
  CHECK_THROWS_AS(spec_from_value(Value(3)), Error);
}

TEST_CASE("pbt changes parameters that the configuration has, of a population of a known size") {
  PbtOptions pbt_options;
  pbt_options.hyperparam_mutations = {{"lr", loguniform(1e-3, 1.0)},
                                      {"batch_size", list({32, 64})}};
  RunOptions options = good();
  options.scheduler = pbt(pbt_options);
  CHECK(told(make(options).complaints) == "");
  const Value stored = to_value(make(options).spec);
  const ExperimentSpec again = spec_from_value(stored);
  CHECK(again.options.scheduler.parameters().dump() == options.scheduler.parameters().dump());

  pbt_options.hyperparam_mutations = {{"lrr", uniform(0, 1)}, {"model", {{"act", list({"a"})}}}};
  options.scheduler = pbt(pbt_options);
  CHECK(told(make(options).complaints) ==
        "scheduler/pbt/hyperparam_mutations: lrr is not in config (did you mean 'lr'?): name "
        "parameters of the configuration\n"
        "scheduler/pbt/hyperparam_mutations: model/act is not in config: name parameters of the "
        "configuration\n");

  options.scheduler = pb2({.hyperparam_bounds = {{"lrr", uniform(0, 1)}}});
  CHECK(told(make(options).complaints) ==
        "scheduler/pb2/hyperparam_bounds: lrr is not in config (did you mean 'lr'?): name "
        "parameters of the configuration\n");

  pbt_options.hyperparam_mutations = {{"lr", uniform(0, 1)}};
  options.scheduler = pbt(pbt_options);
  options.num_samples = -1;
  CHECK(told(make(options).complaints) ==
        "num_samples: -1 has no end, and this scheduler trains all trials at the same time: give "
        "the size of the population\n");

  options = good();
  options.metric.clear();
  pbt_options.metric = "accuracy";
  options.scheduler = pbt(pbt_options);
  const Made made = make(options);
  CHECK(told(made.complaints) == "");
  CHECK(made.spec.options.metric == "accuracy");
  CHECK(made.spec.options.scheduler.changed_parameters() == std::vector<std::string>{"lr"});
}

}  // namespace
}  // namespace tune
