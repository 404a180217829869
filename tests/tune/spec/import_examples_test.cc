// Every kind of example that W&B, Determined, NNI and Katib publish (docs.wandb.ai and
// wandb/examples, determined-ai/determined/examples, nni.readthedocs.io and microsoft/nni/examples,
// kubeflow/katib/examples), in its shape, with other values: mapped, or refused as it should be.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/refusal.h"
#include "tune/spec/import/import_sweep.h"

namespace tune {
namespace {

struct PublishedExample {
  const char* name;
  std::string text;
  // The sweep's value at a key, as JSON, by "key = JSON"; else words of the refusal.
  std::vector<std::string> expected;
};

std::optional<std::string> published_file(const std::string& file) {
  if (file != "search_space.json") return std::nullopt;
  return R"({"batch": {"_type": "choice", "_value": [8, 32]}, "lr": {"_type": "uniform", "_value": [0, 1]}})";
}

void check_examples(const std::vector<PublishedExample>& examples) {
  for (const PublishedExample& example : examples) {
    CAPTURE(example.name);
    std::optional<ImportedSweep> sweep;
    std::string refused;
    try {
      sweep = import_sweep(example.text, "theirs.yaml", published_file);
    } catch (const Error& error) {
      refused = error.what();
    }
    for (const std::string& line : example.expected) {
      CAPTURE(line);
      const std::size_t equals = line.find(" = ");
      if (equals == std::string::npos) {
        CHECK_HAS(refused, line);
        continue;
      }
      INFO(refused);
      REQUIRE(sweep);
      CHECK(sweep->sweep.at(line.substr(0, equals)).dump() == line.substr(equals + 3));
    }
  }
}

// ---- W&B ----------------------------------------------------------------------------------------

TEST_CASE("examples of W&B's guide to sweeps") {
  const std::string head =
      "program: train.py\nmethod: random\nmetric: {goal: minimize, name: loss}\n";
  check_examples({
      {"a first sweep",
       "program: train.py\nname: demo\nmethod: bayes\nmetric: {goal: minimize, name: val}\n"
       "parameters: {lr: {min: 0.001, max: 0.2}, batch: {values: [8, 16]}, o: {values: [\"a\", "
       "\"b\"]}}\n",
       {"searcher = \"gp\"", "mode = \"min\"",
        R"(config = {"lr":{"uniform":[0.001,0.2]},"batch":{"choice":[8,16]},"o":{"choice":["a","b"]}})"}},
      {"a quantised logarithmic range",
       head + "parameters: {batch: {distribution: q_log_uniform_values, q: 8, min: 16, max: 128},\n"
              "  layers: {values: [1, 2]}, epochs: {value: 1}, lr: {distribution: uniform, min: 0, "
              "max: 0.2}}\n",
       {R"(config/batch = {"qloguniform":[16.0,128.0,8.0]})", "config/epochs = 1",
        R"(config/lr = {"uniform":[0.0,0.2]})"}},
      {"nested parameters",
       head + "parameters:\n  first: {parameters: {momentum: {distribution: uniform, min: 0.0, "
              "max: 0.9},\n"
              "    decay: {values: [0.1, 0.2]}}}\n"
              "  second: {parameters: {inner: {parameters: {x: {value: 0.5}}}}}\n",
       {R"(config/first = {"momentum":{"uniform":[0.0,0.9]},"decay":{"choice":[0.1,0.2]}})",
        R"(config/second = {"inner":{"x":0.5}})"}},
      {"bayes with hyperband",
       "program: t.py\nmethod: bayes\nmetric: {goal: minimize, name: l}\n"
       "parameters: {decay: {values: [1e-5, 1e-6]}, epochs: {value: 27}}\n"
       "early_terminate: {type: hyperband, s: 2, eta: 3, max_iter: 27}\n",
       {"scheduler/asha/grace_period = 3", "scheduler/asha/max_t = 27"}},
      {"hyperband by its first bracket",  // 3, 9, 27, 81
       head + "parameters: {x: {value: 1}}\nearly_terminate: {type: hyperband, min_iter: 3}\n",
       {"scheduler/asha/grace_period = 3", "scheduler/asha/reduction_factor = 3",
        "scheduler/asha/max_t = 243"}},
      {"macros of parameters",
       head + "parameters: {batch: {values: [1, 2]}, o: {values: [x]}}\n"
              "command: [\"${env}\", \"${interpreter}\", \"${program}\", \"--batch=${batch}\", "
              "\"--o=${o}\", \"--test=True\"]\n",
       {R"(command = ["${env}","${interpreter}","${program}","--batch=${batch}","--o=${o}","--test=True"])"}},
      {"macros of what is not a parameter",
       head + "parameters: {lr: {min: 0.1, max: 0.2}}\ncommand: [\"${program}\", "
              "\"--batch=${batch}\"]\n",
       {"theirs.yaml:5: command/1: ${batch} has no counterpart and is not a parameter"}},
      {"the template that is to be filled in",
       "program: [INSERT]\nmethod: [INSERT]\nparameters: {a: {distribution: [INSERT], min: "
       "[INSERT]}}\n",
       {"theirs.yaml:1: program: expected a text", "theirs.yaml:2: method: expected a text"}},
      {"a sweep of a function in Python",
       "method: random\nmetric: {goal: minimize, name: score}\nparameters: {x: {max: 0.1, min: "
       "0.01}}\n",
       {"neither program nor command is there"}},
      {"a sweep with a controller of its own",
       head + "controller: {type: local}\nparameters: {x: {values: [1, 3]}}\n",
       {R"(config/x = {"choice":[1,3]})"}},
  });
}

TEST_CASE("examples of W&B's repository") {
  check_examples({
      {"a grid with hyperband",
       "program: t.py\nmethod: grid\nmetric: {goal: minimize, name: loss}\n"
       "parameters: {d: {values: [0.1, 0.2]}, epochs: {value: 9}}\n"
       "early_terminate: {type: hyperband, s: 1, eta: 3, max_iter: 9}\n",
       {R"(config/d = {"grid_search":[0.1,0.2]})", "scheduler/asha/grace_period = 3"}},
      {"booleans",
       "program: t.py\nmethod: grid\nparameters: {flag: {values: [false, true]}, o: {values: "
       "[\"a\"]}}\n",
       {R"(config/flag = {"grid_search":[false,true]})"}},
      {"distributions by name",
       "program: t.py\nmethod: random\nmetric: {goal: maximize, name: acc}\nparameters:\n"
       "  batch: {distribution: int_uniform, max: 128, min: 32}\n"
       "  epochs: {distribution: constant, value: 200}\n"
       "  size: {distribution: categorical, values: [64, 128]}\n"
       "  pretrained: {distribution: categorical, values: [True, False]}\n"
       "  rate: {distribution: log_uniform, min: 0, max: 0}\n",
       {R"(config/batch = {"randint":[32,129]})", "config/epochs = 200",
        R"(config/size = {"choice":[64,128]})", R"(config/pretrained = {"choice":[true,false]})",
        R"(config/rate = {"loguniform":[1.0,1.0]})"}},
      {"texts with blanks and quotes",
       "program: e.py\nmethod: random\nmetric: {goal: maximize, name: s}\nparameters:\n  prompt:\n"
       "    distribution: categorical\n    values:\n      - You're an expert. Say it.\n",
       {R"(config/prompt = {"choice":["You're an expert. Say it."]})"}},
      {"a metric and parameters with separators",
       "program: main.py\nmethod: bayes\nmetric: {name: Validation/Accuracy, goal: maximize}\n"
       "parameters: {o.lr: {min: !!float 1e-5, max: 0.1}, o: {values: [sgd]}}\n"
       "command: [\"${env}\", \"${interpreter}\", \"${program}\", \"${args_no_hyphens}\", "
       "+gpus=1]\n",
       {"metric = \"Validation/Accuracy\"", R"(config/o.lr = {"uniform":[1e-05,0.1]})",
        R"(command = ["${env}","${interpreter}","${program}","${args_no_hyphens}","+gpus=1"])"}},
      {"a grid through whole numbers",
       "program: t.py\nmethod: grid\nparameters: {n: {min: 0, max: 3, distribution: "
       "int_uniform}}\n",
       {R"(config/n = {"grid_search":[0,1,2,3]})"}},
      {"a job of Launch",
       "method: grid\nrun_cap: 10\njob: a/b:latest\nscheduler: {num_workers: 8}\n"
       "parameters: {lr: {values: [0.1]}}\n",
       {"theirs.yaml:4: scheduler: unknown key", "neither program nor command"}},
      {"a scheduler of Launch",
       "run_cap: 5\nscheduler: {job: x, num_workers: 2}\n",
       {"is not a sweep of W&B"}},
      {"an old sweep of Hyperopt",
       "program: t.py\ntune: {num_samples: 10}\n",
       {"is not a sweep of W&B"}},
  });
}

// ---- Determined ---------------------------------------------------------------------------------

TEST_CASE("examples of Determined") {
  const std::string asha = "searcher: {name: adaptive_asha, metric: loss, max_trials: 16, ";
  check_examples({
      {"core API, a search",
       "name: stage-3\nentrypoint: python3 3_search.py\nhyperparameters: {by: {type: int, minval: "
       "1, maxval: 8}}\n"
       "searcher: {name: adaptive_asha, metric: x, max_trials: 10, time_metric: batches, max_time: "
       "256}\n"
       "max_restarts: 0\n",
       {R"(config = {"by":{"randint":[1,9]}})", "scheduler/asha/time_attr = \"batches\"",
        "scheduler/asha/grace_period = 1", "max_failures = 0"}},
      {"core API, a length in epochs",
       "hyperparameters: {lr: {type: double, minval: .0001, maxval: 1.0}}\n" + asha +
           "smaller_is_better: true, max_length: {epochs: 64}, max_rungs: 3}\nentrypoint: python3 "
           "m.py\n",
       {"scheduler/asha/time_attr = \"epochs\"", "scheduler/asha/max_t = 64",
        "scheduler/asha/grace_period = 4", R"(config/lr = {"uniform":[1e-04,1.0]})"}},
      {"core API, a length without unit",
       "hyperparameters: {lr: {type: log, base: 10, minval: -2, maxval: 0}}\ndata: {numEps: 50}\n" +
           asha + "max_length: 10}\nentrypoint: python3 main.py\n",
       {"scheduler/asha/time_attr = \"training_iteration\"",
        R"(config/lr = {"loguniform":[0.01,1.0]})"}},
      {"ranks of torch_distributed",
       "hyperparameters: {batch: 64}\n" + asha + "max_length: {batches: 400}}\n" +
           "resources: {slots_per_trial: 4}\n"
           "entrypoint: >-\n   python3 -m determined.launch.torch_distributed\n   python3 "
           "model.py\n",
       {R"(resources_per_trial = {"ranks":4,"cpu":4,"gpu":4})",
        R"(command = ["sh","-c","python3 model.py"])"}},
      {"an adaptive search without a length",
       "hyperparameters: {x: 1}\n" + asha + "smaller_is_better: true}\nentrypoint: python3 m.py\n",
       {"adaptive_asha needs max_time (or max_length)"}},
      {"one trial by the trainer's API",
       "hyperparameters: {batch: 32}\nsearcher: {name: single, metric: loss, max_length: {batches: "
       "937}}\n"
       "resources: {slots_per_trial: 8}\n"
       "entrypoint: python3 -m determined.launch.torch_distributed python3 train.py\n",
       {"config = {\"batch\":32}", "resources_per_trial/ranks = 8"}},
      {"a program of words and a launcher of its own",
       "hyperparameters: {x: {type: categorical, vals: [1, 2]}}\n"
       "searcher: {name: single, metric: x, max_length: 100}\nresources: {slots_per_trial: 8}\n"
       "entrypoint: ./4_distributed.py launcher\n",
       {R"(command = ["sh","-c","./4_distributed.py launcher"])", "resources_per_trial/gpu = 8"}},
      {"Horovod and DeepSpeed",
       "hyperparameters: {x: 1}\nsearcher: {name: single, metric: x}\n"
       "entrypoint: python3 -m determined.launch.deepspeed python3 train.py\n",
       {"theirs.yaml:3: entrypoint: of Determined's launchers only torch_distributed"}},
      {"a Trial class",
       "description: d\nhyperparameters: {pretrained: True, n: {type: int, minval: 8, maxval: "
       "64}}\n" +
           asha + "max_length: {batches: 937}}\nentrypoint: model_def:MNistTrial\n",
       {"theirs.yaml:4: entrypoint: model_def:MNistTrial is a Trial class"}},
      {"a search for architectures with a mount",
       "hyperparameters: {op: {type: categorical, vals: [max_pool, skip]}, decay: 3e-4}\n" + asha +
           "mode: aggressive, max_rungs: 4, max_concurrent_trials: 16, max_length: {batches: "
           "156}}\n"
           "bind_mounts: [{host_path: /tmp, container_path: /data}]\nresources: {slots_per_trial: "
           "1, max_slots: 16}\n"
           "entrypoint: python3 t.py\n",
       {"theirs.yaml:3: bind_mounts: trials here run in no container"}},
      {"a grid",
       "hyperparameters: {a: {type: int, minval: 1, maxval: 3, count: 3}, b: {type: const, val: "
       "2}}\n"
       "searcher: {name: grid, metric: l}\nentrypoint: python3 t.py\n",
       {R"(config = {"a":{"grid_search":[1,2,3]},"b":2})"}},
      {"a custom search",
       "hyperparameters: {x: 1}\nsearcher: {name: custom, metric: x}\nentrypoint: python3 t.py\n",
       {"searcher/name: 'custom' has no counterpart"}},
      {"no search at all",
       "entrypoint: python3 r.py\nsearcher: {name: single, metric: x}\n",
       {"is not a sweep of W&B"}},
  });
}

// ---- NNI ----------------------------------------------------------------------------------------

TEST_CASE("examples of NNI") {
  const std::string local =
      "trialCommand: python3 mnist.py\ntrialCodeDirectory: .\ntrialConcurrency: 2\n"
      "trainingService: {platform: local, useActiveGpu: True}\n";
  const std::string tpe = "tuner: {name: TPE, classArgs: {optimize_mode: maximize}}\n";
  const std::string space = "searchSpace: {lr: {_type: loguniform, _value: [0.001, 0.1]}}\n";
  check_examples({
      {"local, the space in a file",
       "experimentName: MNIST\nsearchSpaceFile: search_space.json\ntrialGpuNumber: 1\n"
       "maxExperimentDuration: 24h\nmaxTrialNumber: 100\n" +
           local + tpe,
       {R"(config = {"batch":{"choice":[8,32]},"lr":{"uniform":[0,1]}})", "time_budget_s = 86400.0",
        "resources_per_trial/gpu = 1", "num_samples = 100"}},
      {"local, the space within",
       space + local + tpe,
       {R"(config = {"lr":{"loguniform":[0.001,0.1]}})", "searcher = \"tpe\"", "mode = \"max\"",
        R"(command = ["sh","-c","python3 mnist.py"])"}},
      {"remote machines",
       "searchSpaceFile: search_space.json\n" + tpe +
           "trialCommand: python mnist.py\ntrialConcurrency: 2\n"
           "trainingService: {platform: remote, machineList: [{host: a, user: u, sshKeyFile: "
           "k}]}\n",
       {R"(config/lr = {"uniform":[0,1]})"}},
      {"every key, with comments",
       "name: MNIST   # a name\n" + space +
           "trialCommand: python3 m.py  # the command\ntrialGpuNumber: 1\n"
           "trialConcurrency: 4\nmaxTrialNumber: 10\nmaxExperimentDuration: 1h\n" +
           tpe +
           "trainingService: {platform: local, useActiveGpu: false}\ndebug: false\nuseAnnotation: "
           "false\n",
       {"max_concurrent_trials = 4", "time_budget_s = 3600.0"}},
      {"a space alone",
       R"({"dropout": {"_type": "uniform", "_value": [0.1, 0.5]}, "size": {"_type": "choice", "_value": [2, 3]},)"
       R"( "k": {"_type": "quniform", "_value": [2, 10, 2]}, "n": {"_type": "qnormal", "_value": [0, 1, 0.5]}})",
       {R"(config = {"dropout":{"uniform":[0.1,0.5]},"size":{"choice":[2,3]},)"
        R"("k":{"quniform":[2.0,10.0,2.0]},"n":{"qrandn":[0,1,0.5]}})"}},
      {"steps that are clipped",
       R"({"k": {"_type": "quniform", "_value": [2, 10, 5]}})",
       {"theirs.yaml:1: k: the bounds 2 and 10 are not multiples of 5"}},
      {"a nested space",
       R"({"l": {"_type": "choice", "_value": [{"_name": "Empty"}, {"_name": "Conv", "size": {"_type": "choice", "_value": [1]}}]}})",
       {"nested choices have no counterpart"}},
      {"lognormal",
       R"({"x": {"_type": "lognormal", "_value": [0, 1]}})",
       {"_type lognormal has no"}},
      {"the advisor BOHB",
       "searchSpaceFile: search_space.json\nadvisor: {name: BOHB, classArgs: {min_budget: 1}}\n" +
           local,
       {"theirs.yaml:2: advisor: BOHB and HyperBand of NNI"}},
      {"other tuners",
       space + local + "tuner: {name: MetisTuner, classArgs: {optimize_mode: minimize}}\n",
       {"tuner/name: the tuner 'MetisTuner' has no counterpart"}},
      {"population based training",
       space + local + "tuner: {name: PBTTuner}\n",
       {"'PBTTuner' has no"}},
      {"a grid, its name in small letters",
       "searchSpace: {n: {_type: randint, _value: [1, 4]}}\n" + local +
           "tuner: {name: gridsearch}\n",
       {R"(config/n = {"grid_search":[1,2,3]})"}},
      {"a tuner of one's own",
       space + local + "tuner: {className: my.Tuner, codeDirectory: .}\n",
       {"the tuner '' has no"}},
      {"the assessor of medians",
       space + local + tpe +
           "assessor: {name: Medianstop, classArgs: {optimize_mode: maximize, start_step: 5}}\n",
       {"scheduler/median_stopping/grace_period = 5"}},
      {"the assessor of curves",
       space + local + tpe + "assessor: {name: Curvefitting, classArgs: {epoch_num: 20}}\n",
       {"the assessor 'Curvefitting' has no counterpart"}},
      {"shared storage",
       space + local + tpe + "sharedStorage: {storageType: NFS}\n",
       {"sharedStorage: unknown key"}},
      {"the first schema",
       "authorName: default\nexperimentName: e\nmaxTrialNum: 10\ntrainingServicePlatform: local\n"
       "searchSpacePath: search_space.json\ntuner: {builtinTunerName: TPE}\ntrial: {command: "
       "python3 m.py}\n",
       {"theirs.yaml:1: authorName: is a key of NNI's first schema: rename searchSpacePath"}},
  });
}

// ---- Katib --------------------------------------------------------------------------------------

const std::string kKatibJob =
    "    trialSpec: {kind: Job, spec: {template: {spec: {containers: [{name: main, image: x,\n"
    "      command: [python3, /opt/mnist.py, \"--lr=${trialParameters.rate}\"]}]}}}}\n";
const std::string kKatibLr =
    "    - {name: lr, parameterType: double, feasibleSpace: {min: \"0.01\", max: \"0.03\"}}\n";

struct KatibParts {
  std::string algorithm = "{algorithmName: random}";
  std::string parameters = kKatibLr;
  std::string more = "";  // keys of spec
  std::string job = kKatibJob;
  std::string reference = "lr";
  std::string objective = "{type: maximize, goal: 0.99, objectiveMetricName: accuracy}";
};

std::string katib_example(const KatibParts& parts) {
  return "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {namespace: kubeflow, "
         "name: e}\nspec:\n"
         "  objective: " +
         parts.objective + "\n  algorithm: " + parts.algorithm +
         "\n  parallelTrialCount: 3\n  maxTrialCount: 12\n  maxFailedTrialCount: 3\n  "
         "parameters:\n" +
         parts.parameters + parts.more +
         "  trialTemplate:\n    retain: true\n    primaryContainerName: main\n    "
         "trialParameters:\n"
         "      - {name: rate, description: the rate, reference: \"" +
         parts.reference + "\"}\n" + parts.job;
}

TEST_CASE("examples of Katib's algorithms and spaces") {
  const std::string layers =
      "    - {name: num-layers, parameterType: int, feasibleSpace: {min: \"2\", max: \"5\"}}\n"
      "    - {name: o, parameterType: categorical, feasibleSpace: {list: [sgd, adam]}}\n";
  check_examples({
      {"random",
       katib_example({.parameters = kKatibLr + layers}),
       {R"(config = {"lr":{"uniform":[0.01,0.03]},"num-layers":{"randint":[2,6]},"o":{"choice":["sgd","adam"]}})",
        R"(command = ["python3","/opt/mnist.py","--lr=${lr}"])", "num_samples = 12",
        "stop = {\"accuracy\":0.99}"}},
      {"Bayesian optimisation",
       katib_example({.algorithm = "{algorithmName: bayesianoptimization, "
                                   "algorithmSettings: [{name: random_state, value: \"10\"}]}"}),
       {"searcher = \"gp\""}},
      {"TPE", katib_example({.algorithm = "{algorithmName: tpe}"}), {"searcher = \"tpe\""}},
      {"TPE of several variables",
       katib_example({.algorithm = "{algorithmName: multivariate-tpe}"}),
       {"searcher = \"tpe\""}},
      {"CMA-ES",
       katib_example({.algorithm = "{algorithmName: cmaes, algorithmSettings: []}"}),
       {"searcher = \"cma_es\""}},
      {"Sobol", katib_example({.algorithm = "{algorithmName: sobol}"}), {"searcher = \"halton\""}},
      {"a grid",
       katib_example(
           {.algorithm = "{algorithmName: grid}",
            .parameters =
                "    - {name: lr, parameterType: double, feasibleSpace: "
                "{min: \"0.5\", max: \"1\", step: \"0.25\"}}\n"
                "    - {name: n, parameterType: int, feasibleSpace: {min: \"2\", max: \"4\"}}\n"}),
       {R"(config = {"lr":{"grid_search":[0.5,0.75,1.0]},"n":{"grid_search":[2,3,4]}})"}},
      {"HyperBand",
       katib_example({.algorithm = "{algorithmName: hyperband}"}),
       {"theirs.yaml:6: spec/algorithm/algorithmName: 'hyperband' has no counterpart"}},
      {"population based training",
       katib_example({.algorithm = "{algorithmName: pbt}"}),
       {"'pbt' has no"}},
      {"distributions of Optuna",
       katib_example({.parameters =
                          "    - {name: lr, parameterType: double, feasibleSpace: {min: \"1\", "
                          "max: \"5\", step: \"0.5\", distribution: uniform}}\n"
                          "    - {name: b, parameterType: int, feasibleSpace: {min: \"32\", "
                          "max: \"64\", distribution: logUniform}}\n"}),
       {R"(config = {"lr":{"quniform":[1.0,5.0,0.5]},"b":{"lograndint":[32,65]}})"}},
      {"steps beside the bounds",
       katib_example({.parameters = "    - {name: lr, parameterType: double, feasibleSpace: "
                                    "{min: \"0.001\", max: \"1\", step: \"0.1\"}}\n"}),
       {"theirs.yaml:11: spec/parameters/0/feasibleSpace: the bounds 0.001 and 1 are not multiples "
        "of 0.1"}},
      {"distributions of Hyperopt",
       katib_example({.parameters =
                          "    - {name: lr, parameterType: double, feasibleSpace: {min: \"0.01\", "
                          "max: \"0.05\", distribution: normal}}\n"
                          "    - {name: b, parameterType: int, feasibleSpace: {min: \"3\", "
                          "max: \"6\", distribution: logNormal}}\n"}),
       {"parameters/0/feasibleSpace: the distribution normal",
        "parameters/1/feasibleSpace: the distribution logNormal"}},
      {"resuming", katib_example({.more = "  resumePolicy: FromVolume\n"}), {"num_samples = 12"}},
      {"a search for architectures",
       katib_example({.algorithm = "{algorithmName: darts}",
                      .more = "  nasConfig: {graphConfig: {numLayers: 1}}\n"}),
       {"spec/nasConfig: the search for architectures has no counterpart", "'darts' has no"}},
  });
}

TEST_CASE("examples of Katib's metrics and early stopping") {
  const auto collector = [](const std::string& spec) {
    return katib_example({.more = "  metricsCollectorSpec: " + spec + "\n"});
  };
  check_examples({
      {"medians",
       katib_example(
           {.more = "  earlyStopping: {algorithmName: medianstop, algorithmSettings: []}\n"}),
       {"scheduler = \"median_stopping\""}},
      {"strategies of metrics",
       katib_example({.objective = "{type: maximize, goal: 0.9, objectiveMetricName: Val-acc, "
                                   "additionalMetricNames: [Train-acc], metricStrategies: [{name: "
                                   "Val-acc, value: max}]}"}),
       {"metric = \"Val_acc\""}},
      {"a metric of two words",
       katib_example({.objective = "{type: maximize, objectiveMetricName: valid_1 auc}"}),
       {"metric = \"valid_1_auc\""}},
      {"a file and a pattern",
       collector("{source: {filter: {metricsFormat: [\"x\"]}, fileSystemPath: {path: /m.log, kind: "
                 "File}}, "
                 "collector: {kind: File}}"),
       {"collector/kind: File has no counterpart"}},
      {"a file of JSON",
       collector("{source: {fileSystemPath: {path: /m.json, kind: File, format: JSON}}, collector: "
                 "{kind: File}}"),
       {"let the program print its metrics, or write them to a file below ${trial_dir}"}},
      {"a pattern of the output",
       collector("{collector: {kind: StdOut}, source: {filter: {metricsFormat: [\"(a)=(b)\"]}}}"),
       {"source/filter: formats are written otherwise here"}},
      {"TensorFlow's events",
       collector("{collector: {kind: TensorFlowEvent}}"),
       {"TensorFlowEvent has no"}},
      {"a collector of one's own",
       collector("{collector: {kind: Custom, customCollector: {image: x}}}"),
       {"Custom has no counterpart"}},
  });
}

TEST_CASE("examples of Katib's jobs") {
  const std::string container =
      "{containers: [{name: pytorch, image: x, command: [python3, m.py, "
      "\"--lr=${trialParameters.rate}\"]}]}";
  const std::string other =
      "{containers: [{name: pytorch, image: x, command: [python3, other.py]}]}";
  const auto job = [](const std::string& spec) { return "    trialSpec: " + spec + "\n"; };
  check_examples({
      {"arguments of a command",
       katib_example(
           {.job =
                job("{kind: Job, spec: {template: {spec: {containers: [{command: [python3, t.py], "
                    "args: [\"--a=${trialParameters.rate}\"], resources: {limits: {cpu: "
                    "\"1\"}}}]}}}}")}),
       {R"(command = ["python3","t.py","--a=${lr}"])"}},
      {"arguments of an image's own program",
       katib_example(
           {.job = job("{kind: Job, spec: {template: {spec: {containers: [{args: [--x]}]}}}}")}),
       {"containers/0/args: the program is the image's own: name it here, by command"}},
      {"variables",
       katib_example(
           {.job =
                job("{kind: Job, spec: {template: {spec: {containers: [{command: [t], env: "
                    "[{name: A, value: b}, {name: T, value: \"${trialParameters.rate}\"}]}]}}}}")}),
       {R"(env = {"A":"b"})"}},
      {"a trial's name",
       katib_example({.reference = "${trialSpec.Name}"}),
       {R"(command = ["python3","/opt/mnist.py","--lr=${trial_id}"])"}},
      {"a trial's labels",
       katib_example({.reference = "${trialSpec.Labels[k]}"}),
       {"${trialSpec.Labels[k]} of a trial has no counterpart"}},
      {"PyTorchJob",
       katib_example({.job = job("{kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: "
                                 "{replicas: 1, template: {spec: " +
                                 container + "}}, Worker: {replicas: 2, template: {spec: " +
                                 container + "}}}}}")}),
       {R"(resources_per_trial = {"ranks":3,"cpu":3})",
        R"(command = ["python3","m.py","--lr=${lr}"])"}},
      {"PyTorchJob with two programs",
       katib_example(
           {.job =
                job("{kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: {template: {spec: " +
                    container + "}}, Worker: {template: {spec: " + other + "}}}}}")}),
       {"Master and Worker have different commands"}},
      {"TFJob",
       katib_example(
           {.job = job(
                "{kind: TFJob, spec: {tfReplicaSpecs: {Worker: {replicas: 2, template: {spec: " +
                container + "}}}}}")}),
       {"spec/trialTemplate/trialSpec: a TFJob has no counterpart"}},
      {"MPIJob",
       katib_example(
           {.job = job("{kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {template: {spec: " +
                       container + "}}}}}")}),
       {"a MPIJob has no counterpart"}},
      {"TrainJob",
       katib_example(
           {.job = job("{kind: TrainJob, spec: {trainer: {numNodes: 2, command: [python3]}}}")}),
       {"holds no container with a command"}},
      {"a workflow of Argo",
       katib_example({.job = job("{kind: Workflow, spec: {templates: [{name: t, container: "
                                 "{command: [python3]}}]}}")}),
       {"holds no container with a command"}},
      {"a template in a config map",
       katib_example({.job = "    configMap: {configMapName: templates, templatePath: t.yaml}\n"}),
       {"write trialSpec in full"}},
  });
}

}  // namespace
}  // namespace tune
