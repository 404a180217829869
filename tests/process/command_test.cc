// Sweeps of programs: sh and python3.
#include <doctest/doctest.h>

#include <signal.h>

#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// A sweep of a shell's script, which has the parameter as $1.
std::string sweep(const std::string& script, const std::string& rest) {
  std::string indented;
  for (const std::string& line : lines_of(script)) indented += "    " + line + "\n";
  return "command:\n  - sh\n  - -c\n  - |\n" + indented +
         "  - sh\n  - ${x}\nconfig: {x: {grid_search: [1, 2, 3, 4]}}\nmetric: loss\nmode: min\n"
         "seed: 5\n" +
         rest;
}

const std::string kReports = "for i in 1 2 3; do echo \"tune: {\\\"loss\\\": $1.$i}\"; done";

TEST_CASE("a sweep of a program has results like any other") {
  Sandbox box;
  box.write("sweep.yaml", sweep(kReports, ""));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(run.out == "{\"x\":1}\n");
  check_complete(box, "results/s", 4, 3);
  CHECK(box.is_quiet());
  check_nothing_left(box, "results/s");
}

TEST_CASE("the sweep of config runs where the repository is, under asha") {
  Sandbox box;
  const Finished run = box.run({"sh", "-c",
                                std::string("cd ") + TUNE_SOURCE_DIR + " && " + TUNE_BINARY_DIR +
                                    "/bin/tune run config/command.yaml --name s --storage " +
                                    (box.path() / "results").string()});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_HAS(run.out, "\"momentum\"");
  CHECK(trial_folders(box, "results/s").size() == 16);
  CHECK(box.is_quiet());
}

TEST_CASE("a trial that goes wrong is told by its place, and the others go on") {
  Sandbox box;
  box.write("sweep.yaml", sweep("test $1 != 2 || echo 'tune: {\"loss\": ' && " + kReports, ""));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 1);
  const auto folders = trial_folders(box, "results/s");
  REQUIRE(folders.size() == 4);
  std::size_t errors = 0;
  for (const auto& folder : folders) {
    const fs::path file = folder / "error.txt";
    if (!fs::exists(box.path() / file)) continue;
    ++errors;
    CHECK_HAS(box.read(file), "report: line 1 of standard output: reading a report");
  }
  CHECK(errors == 1);
  CHECK(box.is_quiet());
}

TEST_CASE("--dry prints the first command lines and runs nothing") {
  Sandbox box;
  box.write("sweep.yaml", sweep("touch ran", ""));
  const Finished dry = box.tune({"run", "sweep.yaml", "--dry", "--name", "s"});
  INFO(dry.err);
  CHECK(dry.code == 0);
  CHECK(dry.out == "sh -c 'touch ran\n' sh 1\nsh -c 'touch ran\n' sh 2\nsh -c 'touch ran\n' sh 3\n"
                   "sh -c 'touch ran\n' sh 4\n");
  CHECK_HAS(dry.err, "4 of 4 trials; nothing was run");
  CHECK_FALSE(fs::exists(box.path() / "ran"));
  CHECK_FALSE(fs::exists(box.path() / "results"));
  const Finished facts = box.tune(
      {"run", "sweep.yaml", "--dry", "--name", "s", "--num-samples", "2", "--set",
       "command=[sh, \"${trial_id}\", \"${config_file}\", \"${seed}\", \"${args}\"]"});
  CHECK_HAS(facts.out, "_00000 ");
  CHECK_HAS(facts.out, "/results/s/");
  CHECK_HAS(facts.out, "/config.json ");
  CHECK_HAS(facts.out, " --x=1\n");
  CHECK(lines_of(facts.out).size() == 5);
  CHECK_HAS(facts.err, "5 of 8 trials");
}

TEST_CASE("mistakes of a command are told before anything runs") {
  Sandbox box;
  box.write("sweep.yaml", "command: [nowhere-to-be-found, \"${y}\"]\nconfig: {x: 1}\nmetric: loss\n");
  for (const char* command : {"run", "validate"}) {
    const Finished run = box.tune({command, "sweep.yaml"});
    CHECK(run.code == 2);
    CHECK_HAS(run.err, "sweep.yaml:1: command/0: there is no program 'nowhere-to-be-found'");
    CHECK_HAS(run.err, "sweep.yaml:1: command/1: ${y} is neither a parameter");
  }
  CHECK_FALSE(fs::exists(box.path() / "results"));
}

TEST_CASE("a parameter in braces without a $ is passed on, and said with its place") {
  Sandbox box;
  std::string text = sweep("echo 'tune: {\"loss\": 1}'", "");
  text.replace(text.find("${x}"), 4, "'{x}'");
  box.write("sweep.yaml", text);
  const std::string said =
      "sweep.yaml:1: command/4: {x} is passed on as it is; the value is ${x}\n";
  const Finished dry = box.tune({"run", "sweep.yaml", "--dry"});
  CHECK_HAS(dry.err, said);
  CHECK_HAS(dry.out, " sh '{x}'\n");
  CHECK_HAS(box.tune({"validate", "sweep.yaml"}).err, said);
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--quiet"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_HAS(run.err, said);
  CHECK(box.is_quiet());
}

TEST_CASE("an expression that never matches is said once, and the sweep has no best") {
  Sandbox box;
  box.write("sweep.yaml", sweep("echo accuracy 1", "report: {stdout: 'loss=(?P<loss>\\S+)'}\n"));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
  INFO(run.err);
  CHECK(run.code == 2);
  const std::string said = "no line of its standard output has 'loss=(?P<loss>\\S+)'";
  const std::size_t first = run.err.find(said);
  REQUIRE(first != std::string::npos);
  CHECK(run.err.find(said, first + 1) == std::string::npos);
  CHECK_HAS(run.err, "sweep.yaml:");
  CHECK(box.is_quiet());
}

TEST_CASE("a killed sweep of programs leaves none of them, and goes on when it is resumed") {
  Sandbox box;
  box.write("sweep.yaml",
            sweep("for i in 1 2 3; do echo \"tune: {\\\"loss\\\": $1.$i}\"; "
                  "while ! test -e go; do sleep 0.02; done; done",
                  "max_concurrent_trials: 2\n"));
  {
    const Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
    kill(run.pid(), SIGKILL);
    CHECK(box.is_quiet());
  }
  box.write("go", "");
  const Finished run = box.tune({"resume", "results/s"});
  INFO(run.err);
  CHECK(run.code == 0);
  check_complete(box, "results/s", 4, 3);
  CHECK(box.is_quiet());
}

TEST_CASE("a program that saves goes on from its checkpoints under a scheduler that pauses") {
  Sandbox box;
  box.write("train.sh", R"(
n=0
test -z "$TUNE_CHECKPOINT" || n=$(cat "$TUNE_CHECKPOINT/n")
test -z "$TUNE_CHECKPOINT" || echo from $n
echo hello 1 save >&$TUNE_FD
while n=$((n + 1)); do
  echo "{\"loss\": $1.$n, \"n\": $n}" >&$TUNE_FD
  while read word folder <&$TUNE_FD; do
    case $word in
      save) echo $n > "$folder/n"; echo saved >&$TUNE_FD ;;
      go) break ;;
      stop) exit 0 ;;
    esac
  done
done
)");
  box.write("sweep.yaml",
            "command: [sh, train.sh, \"${x}\"]\nconfig: {x: {randint: [1, 9]}}\nnum_samples: 9\n"
            "metric: loss\nmode: min\nseed: 5\nrestart: from_checkpoint\n"
            "scheduler: {asha: {type: promote, max_t: 4, grace_period: 1, reduction_factor: 2}}\n");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  CHECK(run.code == 0);
  std::size_t resumed = 0;
  for (const auto& folder : trial_folders(box, "results/s")) {
    if (box.read(folder / "stdout").find("from ") != std::string::npos) ++resumed;
  }
  CHECK(resumed > 0);
  const Finished best = box.tune({"best", "results/s", "--checkpoint"});
  CHECK(best.code == 0);
  CHECK(fs::exists(box.path() / best.out.substr(0, best.out.size() - 1) / "n"));
  CHECK(box.is_quiet());
}

TEST_CASE("a program with the header of one file is paused, goes on and ends by itself") {
  Sandbox box;
  box.write("sweep.yaml",
            std::string("command: [") + TUNE_REPORTER +
                ", \"${x}\"]\nconfig: {x: {randint: [1, 9]}}\nnum_samples: 9\nmetric: loss\n"
                "mode: min\nseed: 5\nrestart: from_checkpoint\n"
                "scheduler: {asha: {type: promote, max_t: 4, grace_period: 1, reduction_factor: 2}}\n");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  CHECK(run.code == 0);
  std::size_t resumed = 0;
  for (const auto& folder : trial_folders(box, "results/s")) {
    const std::string out = box.read(folder / "stdout");
    CHECK_HAS(out, "stopped after ");
    if (out.find("from ") != std::string::npos) ++resumed;
    CHECK_HAS(box.read(folder / "result.json"), "\"odd \\\"name\\\"\":1e+300");
  }
  CHECK(resumed > 0);
  const Finished alone = box.run({TUNE_REPORTER});
  CHECK(alone.out == "done after 9\n");
  CHECK(box.is_quiet());
}

TEST_CASE("from scratch, a paused program's results are those of one that was never paused") {
  Sandbox box;
  box.write("sweep.yaml",
            "command: [sh, -c, 'for i in 1 2 3 4; do echo \"tune: {\\\"loss\\\": $1.$i, \\\"n\\\": "
            "$i}\"; done; sleep 60', sh, \"${x}\"]\nconfig: {x: {randint: [1, 9]}}\n"
            "num_samples: 6\nmetric: loss\nmode: min\nseed: 5\nrestart: from_scratch\n"
            "scheduler: {asha: {type: promote, max_t: 4, grace_period: 1, reduction_factor: 2}}\n");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  CHECK(run.code == 0);
  for (const auto& folder : trial_folders(box, "results/s")) {
    std::size_t line = 0;
    for (const std::string& text : lines_of(box.read(folder / "result.json"))) {
      CHECK_HAS(text, "\"n\":" + std::to_string(++line));
    }
    CHECK(line > 0);
  }
  CHECK(box.is_quiet());
}

TEST_CASE("a script of W&B's agent runs with its arguments unchanged, its output read") {
  Sandbox box;
  box.write("train.py", R"(import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--batch_size", type=int, required=True)
parser.add_argument("--nesterov", type=lambda text: {"True": True, "False": False}[text])
given = parser.parse_args()
for epoch in range(3):
    print(f"epoch {epoch} loss={abs(given.lr - 0.2) + given.batch_size / 1000 + given.nesterov - epoch / 9} ok")
)");
  box.write("wandb.yaml",
            "program: train.py\nmethod: grid\nmetric: {name: loss, goal: minimize}\n"
            "parameters:\n  lr: {values: [0.1, 0.2]}\n  batch_size: {value: 32}\n"
            "  nesterov: {values: [true, false]}\n"
            "command: [\"${env}\", python3, \"${program}\", \"${args}\"]\n");
  const Finished imported = box.tune({"import", "wandb.yaml"});
  INFO(imported.err);
  REQUIRE(imported.code == 0);
  box.write("sweep.yaml", imported.out + "report: {stdout: 'loss=(?P<loss>\\S+)'}\n");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(run.out == "{\"lr\":0.2,\"batch_size\":32,\"nesterov\":false}\n");
  check_complete(box, "results/s", 4, 3);
}

TEST_CASE("a group's program runs once a rank with torchrun's variables") {
  Sandbox box;
  box.write("sweep.yaml",
            "command: [sh, -c, 'echo rank $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR; "
            "test $MASTER_PORT -gt 0 || exit 9; "
            "test $RANK = 1 || for i in 1 2 3; do echo \"tune: {\\\"loss\\\": $i}\"; done']\n"
            "config: {x: 1}\nmetric: loss\nseed: 5\n"
            "resources_per_trial: {cpu: 2, ranks: 2}\n");
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  CHECK(run.code == 0);
  const auto folders = trial_folders(box, "results/s");
  REQUIRE(folders.size() == 1);
  CHECK_HAS(box.read(folders[0] / "stdout"), "rank 0 0 2 127.0.0.1");
  CHECK_HAS(box.read(folders[0] / "stdout.1"), "rank 1 1 2 127.0.0.1");
  CHECK(lines_of(box.read(folders[0] / "result.json")).size() == 3);
  CHECK(box.is_quiet());
}

}  // namespace
}  // namespace tune
