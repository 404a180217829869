// Sweeps of Python trainables: `python: train.py:Train`.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"
#include "process/trainable_kind.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrain = R"(import json
import os
import numbers_of_mine

class Train:
    def setup(self, config):
        self.x = config["x"]
        self.n = 0
    def step(self):
        self.n += 1
        print("step", self.n)
        return {"y": self.x * self.n + numbers_of_mine.base, "parent": os.getppid()}
    def save(self, directory):
        (directory / "n").write_text(str(self.n))
    def load(self, directory):
        self.n = int((directory / "n").read_text())
)";

bool has_python() {
  if (!test_python().empty()) return true;
  MESSAGE("skipped: there is no python3");
  return false;
}

std::string python_sweep(const std::string& python, const std::string& rest = "") {
  return "python: " + python + "\ninterpreter: " + test_python() +
         "\nconfig: {x: {grid_search: [1, 2]}}\nmetric: y\nmode: max\nstop: {training_iteration: "
         "2}\n" +
         rest;
}

std::string of_trial(const Sandbox& box, std::size_t trial, const std::string& file) {
  return box.read(fs::relative(trial_folders(box, "results/s").at(trial) / file, box.path()));
}

TEST_CASE("a sweep imports a file and its modules once, and forks its trials") {
  if (!has_python()) return;
  Sandbox box;
  box.write("code/train.py", std::string("print('imported')\n") + kTrain);
  box.write("code/numbers_of_mine.py", "print('numbers')\nbase = 10\n");
  box.write("sweep.yaml",
            python_sweep("code/train.py:Train", "preload: [json, numbers_of_mine]\n"));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(lines_of(run.out).back() == R"({"x":2})");
  check_complete(box, "results/s", 2, 2);
  CHECK(box.read("results/s/zygote.log") == "numbers\nimported\n");
  CHECK(of_trial(box, 0, "stdout") == "--- attempt 1 ---\nstep 1\nstep 2\n");
  CHECK(fs::exists(trial_folders(box, "results/s").at(1) / "checkpoint_000002/n"));
  CHECK_HAS(run.err, "Train_");  // the name of its trials
  check_nothing_left(box, "results/s");
}

TEST_CASE("the Python sweep of config/ runs as it is") {
  if (!has_python()) return;
  Sandbox box;
  box.set("TUNE_PYTHON", test_python());
  const std::string file = std::string(TUNE_SOURCE_DIR) + "/config/python.yaml";
  const Finished run =
      box.tune({"run", file, "--name", "s", "--num-samples", "3", "--cpus", "3", "--quiet"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_HAS(run.out, "\"momentum\":");
  CHECK(trial_folders(box, "results/s").size() == 3);
}

TEST_CASE("a mistake in a Python sweep is one error with file, line and key") {
  if (!has_python()) return;
  struct Case {
    const char* python;
    const char* rest;
    std::vector<const char*> words;
  };
  const Case cases[] = {
      {"train.py", "", {"sweep.yaml:1: python: 'train.py' names no trainable"}},
      {"missing.py:Train", "", {"sweep.yaml:1: python: there is no file ", "/missing.py"}},
      {"train.py:Trian",
       "",
       {"sweep.yaml:1: python: there is no 'Trian'", "did you mean 'Train'?"}},
      {"broken.py:Train", "", {"sweep.yaml:1: python: /", "broken.py:2: SyntaxError: "}},
      {"raises.py:Train", "", {"raises.py:2: ZeroDivisionError: "}},
      {"no.such.module:Train",
       "",
       {"sweep.yaml:1: python: importing no.such.module: ModuleNotFoundError"}},
      {"train.py:Train",
       "preload: [torch_of_nobody]\n",
       {"sweep.yaml:7: preload: importing torch_of_nobody: ModuleNotFoundError"}},
      {"train.py:Train", "plugin: a.so\n", {"sweep.yaml:7: plugin: stands beside python"}},
      {"other.py:Old", "", {"sweep.yaml:1: python: ", "save_checkpoint: here it is named save"}},
      {"other.py:Empty", "", {"the class Empty has no step"}},
      {"other.py:many", "", {"many takes 3 arguments"}},
      {"other.py:NoSave",
       "checkpoint: {frequency: 1}\n",
       {"checkpoint/frequency: is 1, but NoSave has no save"}},
  };
  for (const Case& c : cases) {
    for (const char* command : {"run", "validate"}) {
      CAPTURE(c.python);
      CAPTURE(command);
      Sandbox box;
      box.write("train.py", kTrain);
      box.write("numbers_of_mine.py", "base = 0\n");
      box.write("broken.py", "import os\ndef step(self)\n  pass\n");
      box.write("raises.py", "class Train: pass\n1 / 0\n");
      box.write("other.py",
                "class Old:\n  def step(self): pass\n  def save_checkpoint(self, d): pass\n"
                "class Empty: pass\ndef many(a, b, c): pass\n"
                "class NoSave:\n  def step(self): return {'y': 1}\n  def setup(self, c): pass\n");
      box.write("sweep.yaml", python_sweep(c.python, c.rest));
      std::vector<std::string> words = {command, "sweep.yaml"};
      if (std::string(command) == "run") words.insert(words.end(), {"--name", "s", "--quiet"});
      const Finished run = box.tune(words);
      INFO(run.err);
      CHECK(run.code == 2);
      for (const char* text : c.words) CHECK_HAS(run.err, text);
      CHECK_FALSE(fs::exists(box.path() / "results/s"));
    }
  }
}

TEST_CASE("an interpreter that is not there is told with its key") {
  if (!has_python()) return;
  Sandbox box;
  box.write("train.py", "class Train:\n  def step(self): return {'y': 1}\n");
  box.write("sweep.yaml", "python: train.py:Train\ninterpreter: /no/python3\nconfig: {}\n");
  Finished run = box.tune({"run", "sweep.yaml"});
  CHECK(run.code == 2);
  CHECK_HAS(run.err, "sweep.yaml:2: interpreter: there is no program /no/python3");
  box.write("sweep.yaml", "python: train.py:Train\nconfig: {}\n");
  box.set("TUNE_PYTHON", "/no/python4");
  run = box.tune({"run", "sweep.yaml"});
  CHECK(run.code == 2);
  CHECK_HAS(run.err, "sweep.yaml:1: python: there is no program /no/python4 (from TUNE_PYTHON)");
  box.write("sweep.yaml", "preload: [torch]\nplugin: a.so\nconfig: {}\n");
  run = box.tune({"run", "sweep.yaml"});
  CHECK_HAS(run.err, "sweep.yaml:1: preload: is for Python trainables only");
}

TEST_CASE("an exception is in error.txt with its traceback") {
  if (!has_python()) return;
  Sandbox box;
  box.write(
      "train.py",
      "def deeper(x):\n  return 1 / x\ndef train(config):\n  import tune\n  tune.report(y=1)\n"
      "  deeper(0)\n");
  box.write("sweep.yaml", python_sweep("train.py:train"));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
  CHECK(run.code == 1);
  const std::string error = of_trial(box, 0, "error.txt");
  CAPTURE(error);
  CHECK_HAS(error, "function: ZeroDivisionError: division by zero");
  CHECK_HAS(error, "Traceback (most recent call last):");
  CHECK_HAS(error, "train.py\", line 6, in train");
  CHECK_HAS(error, "train.py\", line 2, in deeper");
  CHECK_FALSE(testing::has(error, "_worker.py"));  // the package's own frames
}

TEST_CASE("results that are none, NaN and reports after the end do not disturb other trials") {
  if (!has_python()) return;
  const std::string file = std::string(TUNE_SOURCE_DIR) + "/tests/programs/faulty.py";
  struct Case {
    const char* name;
    int code;
    const char* words;
  };
  for (const Case& c :
       {Case{":stubborn", 0, ""}, Case{":nothing", 1, "x: the key 1 has the type int: keys are texts"},
        Case{":Unsaved", 0, ""}}) {
    CAPTURE(c.name);
    Sandbox box;
    box.write("sweep.yaml", "python: " + file + c.name + "\ninterpreter: " + test_python() +
                                "\nconfig: {x: {grid_search: [1, 2]}}\nmetric: x\nmode: max\n"
                                "stop: {training_iteration: 3}\n");
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
    INFO(run.err);
    CHECK(run.code == c.code);
    if (c.code != 0) {
      CHECK_HAS(of_trial(box, 0, "error.txt"), c.words);
    } else {
      check_complete(box, "results/s", 2, 3);
    }
    check_nothing_left(box, "results/s");
  }
}

TEST_CASE("a function whose trial ends without one of the metrics is told of it") {
  if (!has_python()) return;
  Sandbox box;
  box.write("train.py",
            "import tune\n\ndef train(config):\n    x = config['x']\n    tune.report(y=x)\n"
            "    tune.report(y=x, ms=3) if x < 3 else tune.report(y=x)\n");
  box.write("sweep.yaml",
            "python: train.py:train\ninterpreter: " + test_python() +
                "\nconfig: {x: {grid_search: [1, 2, 3, 4]}}\nmax_concurrent_trials: 1\n"
                "objectives: [{metric: y}, {metric: ms, mode: min}]\n");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_HAS(run.err, "'ms' is not a number of the last result of trial 2; a result that lacks");
  CHECK_FALSE(testing::has(run.err, "last result of trial 3"));
}

TEST_CASE("a killed zygote costs no running trial") {
  if (!has_python()) return;
  Sandbox box;
  box.write("train.py",
            "import time, tune\ndef train(config):\n  for i in range(4):\n    time.sleep(0.05)\n"
            "    tune.report(y=i, zygote=1)\n");
  box.write("sweep.yaml",
            "python: train.py:train\ninterpreter: " + test_python() +
                "\nconfig: {x: {uniform: [0, 1]}}\nnum_samples: 4\nmetric: y\nmode: max\n");
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1", "--quiet"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
  const std::vector<pid_t> pythons = box.processes("_zygote_main");
  REQUIRE(pythons.size() >= 2);
  kill(pythons.front(), SIGKILL);  // the oldest: the zygote, not its worker
  const Finished finished = run.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", 4, 4);
}

}  // namespace
}  // namespace tune
