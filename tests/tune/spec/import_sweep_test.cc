// Sweeps of other tools, in the shapes that their documentations show: mapped, or refused by key
// and line.
#include "tune/spec/import/import_sweep.h"

#include <doctest/doctest.h>

#include <fstream>
#include <optional>

#include "core/refusal.h"
#include "trainables/temporary_folder.h"
#include "tune/spec/yaml_spec.h"

namespace tune {
namespace {

using testing::refusal;

// Files that a sweep may name.
std::optional<std::string> beside(const std::string& file) {
  if (file == "space.json") return R"({"lr": {"_type": "loguniform", "_value": [0.001, 1]}})";
  if (file == "bad.json") return "{\"lr\": {\"_type\": \"uniform\",\n  \"_value\": [1]}}";
  return std::nullopt;
}

Value imported(const std::string& text) {
  const ImportedSweep sweep = import_sweep(text, "theirs.yaml", beside);
  // The written text is a sweep that tune reads, but for programs that are not here.
  testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "s.yaml") << sweep_text(sweep);
  if (sweep.sweep.contains("command") || sweep.sweep.contains("program")) {
    CAPTURE(sweep_text(sweep));
    CHECK(spec_from_yaml_file(folder.path() / "s.yaml").command.is_given());
  }
  return sweep.sweep;
}

std::string notes(const std::string& text) {
  std::string all;
  for (const std::string& note : import_sweep(text, "theirs.yaml", beside).notes) all += note + "\n";
  return all;
}

std::string error(const std::string& text) {
  return refusal([&] { import_sweep(text, "theirs.yaml", beside); });
}

// ---- W&B ----------------------------------------------------------------------------------------

const std::string kWandb = "program: train.py\nmethod: random\nmetric: {name: val_loss, goal: minimize}\n"
                           "run_cap: 20\n";

TEST_CASE("a sweep of W&B keeps its bounds, scales and constants") {
  const Value sweep = imported(kWandb +
                               "parameters:\n"
                               "  epochs: {value: 27}\n"
                               "  hidden: {values: [96, 128]}\n"
                               "  layers: {min: 1, max: 4}\n"
                               "  dropout: {min: 0.1, max: 0.5}\n"
                               "  lr: {distribution: log_uniform_values, min: 1e-5, max: 0.1}\n"
                               "  decay: {distribution: log_uniform, min: -2, max: 0}\n"
                               "  batch: {distribution: q_uniform, q: 8, min: 32, max: 256}\n"
                               "  noise: {distribution: normal, mu: 1, sigma: 0.5}\n"
                               "  optimizer: {parameters: {name: {values: [sgd, adam]}}}\n");
  CHECK(sweep.at("config").dump() ==
        R"({"epochs":27,"hidden":{"choice":[96,128]},"layers":{"randint":[1,5]},)"
        R"("dropout":{"uniform":[0.1,0.5]},"lr":{"loguniform":[1e-05,0.1]},)"
        R"("decay":{"loguniform":[0.1353352832366127,1.0]},"batch":{"quniform":[32.0,256.0,8.0]},)"
        R"("noise":{"randn":[1.0,0.5]},"optimizer":{"name":{"choice":["sgd","adam"]}}})");
  CHECK(sweep.get<std::string>("metric") == "val_loss");
  CHECK(sweep.get<std::string>("mode") == "min");
  CHECK(sweep.get<int>("num_samples") == 20);
  CHECK(sweep.get<std::string>("searcher") == "random");
  CHECK(sweep.get<std::string>("program") == "train.py");
}

TEST_CASE("a grid of W&B, its command and its early end are ours") {
  const Value sweep = imported(
      "program: main.py\nmethod: grid\nmetric: {name: acc, goal: maximize, target: 0.9}\n"
      "parameters: {a: {values: [1, 2]}, b: {values: [false, true]}, c: {value: x}}\n"
      "early_terminate: {type: hyperband, s: 2, eta: 3, max_iter: 27}\n"
      "command: [\"${env}\", \"${interpreter}\", \"${program}\", \"${args_no_hyphens}\", 7]\n");
  CHECK(sweep.at("config").dump() ==
        R"({"a":{"grid_search":[1,2]},"b":{"grid_search":[false,true]},"c":"x"})");
  CHECK(sweep.at("scheduler/asha").dump() ==  // 27 / 3^2
        R"({"grace_period":3,"reduction_factor":3,"max_t":27,"stop_last_trials":false})");
  CHECK(sweep.at("stop").dump() == R"({"acc":0.9})");
  CHECK(sweep.at("command").dump() ==
        R"(["${env}","${interpreter}","${program}","${args_no_hyphens}","7"])");
  CHECK_FALSE(sweep.contains("num_samples"));
}

TEST_CASE("differences to W&B are noted") {
  const std::string text = notes("program: t.py\nmethod: bayes\nname: mine\nproject: p\n"
                                 "parameters: {lr: {distribution: log_uniform, min: -1, max: 0}}\n"
                                 "early_terminate: {type: hyperband, min_iter: 2}\n");
  CHECK_HAS(text, "line 2: method: bayes becomes gp");
  CHECK_HAS(text, "num_samples is chosen here: 16");
  CHECK_HAS(text, "line 4: project: left out");
  CHECK_HAS(text, "line 5: parameters/lr: its bounds were exponents of e");
  CHECK_HAS(text, "line 6: early_terminate: becomes asha");
  CHECK_HAS(text, "wandb.log is not seen here");
}

TEST_CASE("what W&B's sweeps have and tune has not is refused by line and key") {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"parameters: {x: {values: [1, 2], probabilities: [0.1, 0.9]}}\n",
       "theirs.yaml:5: parameters/x/probabilities: unknown key"},
      {"parameters: {x: {distribution: inv_log_uniform_values, min: 1, max: 2}}\n",
       "theirs.yaml:5: parameters/x: the distribution inv_log_uniform_values has no counterpart"},
      {"parameters: {x: {distribution: log_normal, mu: 1, sigma: 2}}\n", "log_normal has no"},
      {"parameters: {x: {distribution: beta, a: 1, b: 2}}\n", "theirs.yaml:5: parameters/x/a"},
      {"parameters: {x: {distribution: q_uniform, q: 8, min: 30, max: 64}}\n",
       "not multiples of 8, to which draws are rounded here: the nearest are 32 and 64"},
      {"parameters: {x: 3}\n", "parameters/x: expected value, values or a distribution, found 3"},
      {"parameters: {x: {}}\n", "has neither value, values, a distribution nor min and max"},
      {"parameters: {x: {value: 1}}\ncommand: [\"${envvar:HOME}\"]\n",
       "theirs.yaml:6: command/0: ${envvar:HOME} has no counterpart"},
      {"parameters: {x: {value: 1}}\nearly_terminate: {type: other}\n",
       "theirs.yaml:6: early_terminate/type: 'other' has no counterpart"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.text);
    CHECK_HAS(error(kWandb + one.text), one.error);
  }
  CHECK_HAS(error("method: grid\nprogram: x\nparameters: {x: {min: 0.1, max: 2}}\n"),
            "method grid has no grid of a range");
  CHECK_HAS(error("method: random\nparameters: {x: {value: 1}}\n"), "neither program nor command");
}

// ---- Determined ---------------------------------------------------------------------------------

TEST_CASE("an experiment of Determined keeps inclusive bounds and exponents") {
  const Value sweep = imported(
      "name: mnist\nrecords_per_epoch: 60000\nmax_restarts: 1\n"
      "hyperparameters:\n"
      "  global_batch_size: 64\n"
      "  lr: {type: log, base: 10, minval: -4, maxval: 0}\n"
      "  filters: {type: int, minval: 8, maxval: 64}\n"
      "  dropout: {type: double, minval: 0.2, maxval: 0.8}\n"
      "  optim: {name: {type: categorical, vals: [sgd, adam]}, nesterov: {type: const, val: true}}\n"
      "searcher: {name: adaptive_asha, metric: test_loss, smaller_is_better: true,\n"
      "  max_trials: 50, time_metric: epochs, max_time: 64, max_rungs: 3}\n"
      "entrypoint: python3 model_def.py --epochs 20\nresources: {slots_per_trial: 0}\n");
  CHECK(sweep.at("config").dump() ==
        R"({"global_batch_size":64,"lr":{"loguniform":[1e-04,1.0]},"filters":{"randint":[8,65]},)"
        R"("dropout":{"uniform":[0.2,0.8]},"optim":{"name":{"choice":["sgd","adam"]},"nesterov":true}})");
  CHECK(sweep.at("scheduler/asha").dump() ==  // 64 / 4^2
        R"({"max_t":64,"grace_period":4,"reduction_factor":4.0,"time_attr":"epochs"})");
  CHECK(sweep.at("command").dump() == R"(["sh","-c","python3 model_def.py --epochs 20"])");
  CHECK(sweep.get<std::string>("mode") == "min");
  CHECK(sweep.get<int>("num_samples") == 50);
  CHECK(sweep.get<std::string>("searcher") == "random");
  CHECK(sweep.get<int>("max_failures") == 1);
}

TEST_CASE("a grid of Determined lists evenly spaced values") {
  const Value sweep = imported(
      "hyperparameters:\n  a: {type: int, minval: 1, maxval: 9, count: 3}\n"
      "  b: {type: double, minval: 0, maxval: 1, count: 5}\n"
      "  c: {type: log, minval: -2, maxval: 0, count: 3}\n"
      "searcher: {name: grid, metric: acc, smaller_is_better: false}\nentrypoint: [sh, x.sh]\n");
  CHECK(sweep.at("config").dump() ==
        R"({"a":{"grid_search":[1,5,9]},"b":{"grid_search":[0.0,0.25,0.5,0.75,1.0]},)"
        R"("c":{"grid_search":[0.01,0.1,1.0]}})");
  CHECK(sweep.get<std::string>("mode") == "max");
}

TEST_CASE("what only Determined has is refused") {
  const std::string head = "hyperparameters: {x: 1}\nsearcher: {name: single, metric: m}\n";
  CHECK_HAS(error(head + "entrypoint: model_def:MNistTrial\n"),
            "theirs.yaml:3: entrypoint: model_def:MNistTrial is a Trial class");
  CHECK_HAS(error(head + "entrypoint: sh x\nbind_mounts: [{host_path: /a, container_path: /b}]\n"),
            "theirs.yaml:4: bind_mounts: trials here run in no container");
  CHECK_HAS(error("hyperparameters: {x: 1}\nsearcher: {name: custom, metric: m}\nentrypoint: a b\n"),
            "theirs.yaml:2: searcher/name: 'custom' has no counterpart");
}

// ---- NNI ----------------------------------------------------------------------------------------

const std::string kNni = "trialCommand: python3 mnist.py\ntrialConcurrency: 4\nmaxTrialNumber: 10\n"
                         "maxExperimentDuration: 1h\ntuner: {name: TPE, classArgs: {optimize_mode: maximize}}\n"
                         "trainingService: {platform: local}\n";

TEST_CASE("an experiment of NNI") {
  const Value sweep = imported(kNni +
                               "searchSpace:\n"
                               "  batch: {_type: choice, _value: [16, 32]}\n"
                               "  layers: {_type: randint, _value: [1, 4]}\n"
                               "  lr: {_type: loguniform, _value: [0.0001, 0.1]}\n"
                               "  momentum: {_type: quniform, _value: [0, 1, 0.25]}\n"
                               "  z: {_type: normal, _value: [0, 2]}\n"
                               "assessor: {name: Medianstop, classArgs: {start_step: 3}}\n");
  CHECK(sweep.at("config").dump() ==
        R"({"batch":{"choice":[16,32]},"layers":{"randint":[1,4]},"lr":{"loguniform":[1e-04,0.1]},)"
        R"("momentum":{"quniform":[0.0,1.0,0.25]},"z":{"randn":[0,2]}})");
  CHECK(sweep.get<double>("time_budget_s") == 3600);
  CHECK(sweep.get<int>("max_concurrent_trials") == 4);
  CHECK(sweep.get<std::string>("searcher") == "tpe");
  CHECK(sweep.get<std::string>("metric") == "default");
  CHECK(sweep.at("scheduler").dump() == R"({"median_stopping":{"grace_period":3}})");
}

TEST_CASE("what only NNI has is refused, and its space may stand alone") {
  CHECK_HAS(error(kNni + "searchSpace: {x: {_type: lognormal, _value: [0, 1]}}\n"),
            "theirs.yaml:7: searchSpace/x: _type lognormal has no counterpart");
  CHECK_HAS(error(kNni + "searchSpace: {x: {_type: choice, _value: [{_name: a}]}}\n"),
            "nested choices have no counterpart");
  CHECK(imported(kNni + "searchSpaceFile: space.json\n").at("config").dump() ==
        R"({"lr":{"loguniform":[0.001,1]}})");
  CHECK_HAS(error(kNni + "searchSpaceFile: none.json\n"),
            "theirs.yaml:7: searchSpaceFile: none.json cannot be read");
  CHECK_HAS(error(kNni + "searchSpaceFile: bad.json\n"),
            "theirs.yaml:7: searchSpaceFile: bad.json:1: lr: uniform has 2 values in _value");
  CHECK_HAS(error(kNni + "searchSpace: {x: {_type: uniform, _value: [0, 1]}}\n"
                         "assessor: {name: Curvefitting}\n"),
            "theirs.yaml:8: assessor/name: the assessor 'Curvefitting' has no counterpart");
  const Value space = imported(R"({"lr": {"_type": "uniform", "_value": [0, 1]}})");
  CHECK(space.at("config").dump() == R"({"lr":{"uniform":[0,1]}})");
}

// ---- Katib --------------------------------------------------------------------------------------

std::string katib(const std::string& parameters, const std::string& more = "") {
  return "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: random}\nspec:\n"
         "  objective: {type: maximize, goal: 0.99, objectiveMetricName: Validation-accuracy}\n"
         "  algorithm: {algorithmName: random}\n  parallelTrialCount: 3\n  maxTrialCount: 12\n"
         "  parameters:\n" +
         parameters + more +
         "  trialTemplate:\n    primaryContainerName: main\n    trialParameters:\n"
         "      - {name: rate, reference: lr}\n"
         "    trialSpec: {kind: Job, spec: {template: {spec: {containers: [{name: main, image: x,\n"
         "      command: [sh, train.sh, \"--lr=${trialParameters.rate}\"]}]}}}}\n";
}

TEST_CASE("an experiment of Katib keeps inclusive bounds, and its output is read") {
  const Value sweep = imported(
      katib("    - {name: lr, parameterType: double, feasibleSpace: {min: \"0.01\", max: \"0.03\"}}\n"
            "    - {name: n-layers, parameterType: int, feasibleSpace: {min: \"2\", max: \"5\"}}\n"
            "    - {name: b, parameterType: int, feasibleSpace: {min: \"32\", max: \"64\", distribution: logUniform}}\n"
            "    - {name: m, parameterType: double, feasibleSpace: {min: \"0.5\", max: \"1\", step: \"0.1\"}}\n"
            "    - {name: d, parameterType: discrete, feasibleSpace: {list: [\"1\", \"2.5\"]}}\n"
            "    - {name: o, parameterType: categorical, feasibleSpace: {list: [sgd, adam]}}\n"));
  CHECK(sweep.at("config").dump() ==
        R"({"lr":{"uniform":[0.01,0.03]},"n-layers":{"randint":[2,6]},"b":{"lograndint":[32,65]},)"
        R"("m":{"quniform":[0.5,1.0,0.1]},"d":{"choice":[1,2.5]},"o":{"choice":["sgd","adam"]}})");
  CHECK(sweep.at("command").dump() == R"(["sh","train.sh","--lr=${lr}"])");
  CHECK(sweep.get<std::string>("metric") == "Validation_accuracy");
  CHECK(sweep.at("stop").dump() == R"({"Validation_accuracy":0.99})");
  CHECK(sweep.get<std::string>("report/stdout") ==
        R"((^|[^\w-])Validation\-accuracy\s*=\s*(?P<Validation_accuracy>[-+]?\d*\.?\d+([eE][-+]?\d+)?))");
}

TEST_CASE("what only Katib has is refused") {
  const std::string lr =
      "    - {name: lr, parameterType: double, feasibleSpace: {min: \"0\", max: \"1\"}}\n";
  CHECK_HAS(error(katib("    - {name: lr, parameterType: double, feasibleSpace: "
                        "{min: \"0\", max: \"1\", distribution: normal}}\n")),
            "theirs.yaml:10: spec/parameters/0/feasibleSpace: the distribution normal");
  CHECK_HAS(error(katib("    - {name: lr, parameterType: double, feasibleSpace: "
                        "{min: \"0.001\", max: \"1\", step: \"0.1\"}}\n")),
            "are not multiples of 0.1");
  CHECK_HAS(error(katib(lr, "  nasConfig: {}\n")), "theirs.yaml:11: spec/nasConfig: the search for");
  CHECK_HAS(error(katib(lr, "  earlyStopping: {algorithmName: other}\n")), "use medianstop");
  CHECK_HAS(error(katib(lr, "  metricsCollectorSpec: {collector: {kind: TensorFlowEvent}}\n")),
            "TensorFlowEvent has no counterpart");
}

TEST_CASE("a file of none of these is refused") {
  CHECK_HAS(error("x: 1\n"), "theirs.yaml: is not a sweep of W&B");
  CHECK_HAS(error("[1]\n"), "is not a sweep of W&B");
  CHECK_HAS(error("a: [\n"), "theirs.yaml:");
}

}  // namespace
}  // namespace tune
