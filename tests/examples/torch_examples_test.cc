#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/refusal.h"
#include "process/sandbox.h"

namespace tune {
namespace {

const std::string kExamples = TUNE_BINARY_DIR "/examples/";

// A sweep of config/ with the plugin of this build.
std::string sweep_of(const std::string& name) {
  std::ifstream file(TUNE_SOURCE_DIR "/config/" + name + ".yaml");
  std::ostringstream text;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("plugin: ")) line = "plugin: " + kExamples + line.substr(line.rfind('/') + 1);
    text << line << '\n';
  }
  return text.str();
}

std::string quickstart_sweep() {
  return sweep_of("fashion_mnist");
}

std::string after(const std::string& text, const std::string& label) {
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with(label)) return line.substr(label.size());
  }
  return "no " + label;
}

// Of a line of JSON.
double number_after(const std::string& line, const std::string& label) {
  const std::size_t at = line.find(label);
  return at == std::string::npos ? -1 : std::stod(line.substr(at + label.size()));
}

TEST_CASE("the best model of a small quickstart, restored, is worth what was recorded") {
  Sandbox box;
  box.write("sweep.yaml", quickstart_sweep());
  const Finished run = box.tune({"run", "sweep.yaml", "--num-samples", "3", "--cpus", "2", "--set",
                                 "config/samples_per_step=512", "--set", "config/test_samples=1000",
                                 "--set", "scheduler/asha/max_t=3"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(lines_of(run.out).back().starts_with("{\"lr\":"));
  CHECK(lines_of(box.read("results/latest/results.csv")).size() == 4);

  const Finished predict = box.run({kExamples + "predict"});
  INFO(predict.err);
  REQUIRE(predict.code == 0);
  CHECK(after(predict.out, "test accuracy:     ") == after(predict.out, "recorded accuracy: "));
  CHECK_HAS(after(predict.out, "checkpoint:        "), "checkpoint_00000");
}

TEST_CASE("under pbt a model of LibTorch goes on from another one's, with values of its own") {
  Sandbox box;
  box.write("sweep.yaml", sweep_of("pbt"));
  const Finished run =
      box.tune({"run", "sweep.yaml", "--num-samples", "4", "--cpus", "2", "--set",
                "config/samples_per_step=256", "--set", "config/test_samples=250", "--set",
                "scheduler/pbt/quantile_fraction=0.5", "--set", "stop/training_iteration=8"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(lines_of(run.out).back().starts_with("{\"lr\":"));
  CHECK_HAS(box.read("results/latest/events.jsonl"), "\"event\":\"replaced\"");
  CHECK(box.is_quiet());
}

// A clone whose programs are built: `cmake` then only checks what it is asked for.
void make_clone(Sandbox& box) {
  namespace fs = std::filesystem;
  fs::create_directories(box.path() / "examples");
  const fs::path source = TUNE_SOURCE_DIR;
  fs::copy(source / "config", box.path() / "config");
  fs::copy_file(source / "examples/quickstart.sh", box.path() / "examples/quickstart.sh");
  fs::create_directory_symlink(TUNE_BINARY_DIR, box.path() / "build");
  box.write("config/setup.sh", "echo set up\n");
  box.write("bin/cmake",
            "#!/bin/sh\n"
            "if [ \"$*\" = \"--preset default\" ]; then exit 0; fi\n"
            "[ \"$1 $2 $3\" = \"--build --preset default\" ] || exit 1\n"
            "shift 3\n"
            "exec \"" TUNE_CMAKE "\" --build \"" TUNE_BINARY_DIR "\" \"$@\" -- -n\n");
  fs::permissions(box.path() / "bin/cmake", fs::perms::owner_all);
  box.set("PATH", (box.path() / "bin").string() + ":" + std::getenv("PATH"));
}

TEST_CASE("the quickstart's script ends with what it found and how to test it again") {
  Sandbox box;
  make_clone(box);
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "results"}, {"--storage=other", "other"}, {"--storage elsewhere/x", "elsewhere/x"}};
  for (const auto& [option, storage] : table) {
    CAPTURE(option);
    const Finished run =
        box.run({"bash", "-c",
                 "bash examples/quickstart.sh --num-samples 2 " + option +
                     " --cpus 2 --set config/samples_per_step=256 --set config/test_samples=500"
                     " --set scheduler/asha/max_t=2"});
    INFO(run.err);
    INFO(run.out);
    REQUIRE(run.code == 0);
    CHECK(lines_of(run.out).front() == "set up");
    CHECK(after(run.out, "best configuration: ").starts_with("{\"lr\":"));
    const std::filesystem::path table_of_trials = after(run.out, "all trials:         ");
    CHECK(std::filesystem::equivalent(table_of_trials.parent_path().parent_path(),
                                      box.path() / storage));
    CHECK(lines_of(box.read(std::filesystem::relative(table_of_trials, box.path()))).size() == 3);
    const std::string again = after(run.out, "test it again:      ");
    CHECK(again == "build/examples/predict " + storage + "/latest");
    CHECK(box.run({"bash", "-c", again}).code == 0);
  }
}

TEST_CASE("predict says when there is nothing to restore") {
  Sandbox box;
  const Finished predict = box.run({kExamples + "predict", "nowhere"});
  CHECK(predict.code == 2);
  CHECK_HAS(predict.err, "error: nowhere");
}

TEST_CASE("data that is not there ends the trials with the name of the package") {
  Sandbox box;
  box.set("TUNE_FASHION_MNIST_DIR", "/nowhere");
  box.write("sweep.yaml", quickstart_sweep());
  const Finished run = box.tune({"run", "sweep.yaml", "--num-samples", "1", "--cpus", "1"});
  CHECK(run.code == 1);
  CHECK_HAS(run.err, "dataset-fashion-mnist");
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream in(row);
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

// Of the first trial of a results.csv.
double number_in(const std::vector<std::string>& rows, const std::string& column) {
  const auto names = cells_of(rows[0]);
  const auto place = std::ranges::find(names, column) - names.begin();
  return std::stod(cells_of(rows[1]).at(static_cast<std::size_t>(place)));
}

// One configuration's accuracy after three steps with so many ranks.
double accuracy(Sandbox& box, const std::string& ranks) {
  const Finished run = box.tune({"run",           "sweep.yaml",
                                 "--name",        ranks,
                                 "--num-samples", "1",
                                 "--cpus",        "2",
                                 "--set",         "resources_per_trial/ranks=" + ranks,
                                 "--set",         "config/lr=0.1",
                                 "--set",         "config/momentum=0.9",
                                 "--set",         "config/hidden=64",
                                 "--set",         "config/samples_per_step=1024",
                                 "--set",         "config/test_samples=1001",
                                 "--set",         "scheduler/asha/grace_period=3",
                                 "--set",         "scheduler/asha/max_t=3"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto rows = lines_of(box.read("results/" + ranks + "/results.csv"));
  REQUIRE(rows.size() == 2);
  return number_in(rows, "mean_accuracy");
}

TEST_CASE("a sweep of trials of two ranks trains, and two ranks learn what one does") {
  Sandbox box;
  box.write("sweep.yaml", sweep_of("fashion_mnist_ddp"));
  const Finished run = box.tune({"run", "sweep.yaml", "--num-samples", "3", "--cpus", "2", "--set",
                                 "config/samples_per_step=512", "--set", "config/test_samples=1000",
                                 "--set", "scheduler/asha/max_t=3"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(lines_of(run.out).back().starts_with("{\"lr\":"));
  CHECK(lines_of(box.read("results/latest/results.csv")).size() == 4);
  CHECK(box.is_quiet());
  const double alone = accuracy(box, "1");
  CHECK(alone > 0.5);
  CHECK(accuracy(box, "2") == doctest::Approx(alone).epsilon(0.01));
}

TEST_CASE("the ranks refuse a batch that they cannot share equally") {
  Sandbox box;
  box.write("sweep.yaml", sweep_of("fashion_mnist_ddp"));
  for (const char* size : {"127", "1"}) {
    CAPTURE(size);
    const Finished run =
        box.tune({"run", "sweep.yaml", "--name", size, "--num-samples", "1", "--cpus", "2", "--set",
                  std::string("config/batch_size=") + size});
    INFO(run.err);
    CHECK(run.code == 1);
    CHECK_HAS(run.err, std::string("a batch of ") + size);
    CHECK(box.is_quiet());
  }
}

TEST_CASE("a searched operator goes on training in a program, from its best checkpoint") {
  Sandbox box;
  const Finished run = box.run({kExamples + "fashion_mnist_trainer", "--num-samples", "2", "--cpus",
                                "2", "--seed", "1", "--set", "config/samples=512"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto out = lines_of(run.out);
  REQUIRE(out.size() == 2);  // an epoch each
  for (const std::string& line : out) CHECK(number_after(line, "\"num_samples\":") == 512);
  const auto rows = lines_of(box.read("results/latest/results.csv"));
  REQUIRE(rows.size() == 3);
  CHECK(number_after(out.back(), "\"val_accuracy\":") > 0.3);  // chance is 0.1
  CHECK_FALSE(box.read("fashion_mnist_model/model.safetensors").empty());
  CHECK(box.is_quiet());
}

TEST_CASE("an operator of a plugin trains in a sweep from YAML, alone and in groups of two ranks") {
  Sandbox box;
  for (const std::string ranks : {"1", "2"}) {
    CAPTURE(ranks);
    box.write("sweep.yaml", "plugin: " TUNE_OPERATOR_PLUGIN
                            "\n"
                            "trainable: Points\n"
                            "config:\n  lr: {grid_search: [0.5, 0.0]}\n"
                            "metric: val_accuracy\nmode: max\n"
                            "stop: {training_iteration: 3}\nseed: 1\n"
                            "resources_per_trial: {cpu: 2, ranks: " +
                                ranks + "}\n");
    const Finished run = box.tune({"run", "sweep.yaml", "--name", ranks, "--cpus", "2"});
    INFO(run.err);
    REQUIRE(run.code == 0);
    CHECK(lines_of(run.out).back().starts_with("{\"lr\":0.5"));
    const auto rows = lines_of(box.read("results/" + ranks + "/results.csv"));
    REQUIRE(rows.size() == 3);
    CHECK(number_in(rows, "val_accuracy") > 0.8);
    CHECK(number_in(rows, "epoch") == 3);
    // 97 samples: the last of two ranks' parts is filled up by one.
    CHECK(number_in(rows, "num_samples") == (ranks == "2" ? 98 : 97));
  }
  CHECK(box.is_quiet());
}

TEST_CASE("a program that used LibTorch before tune::run searches all the same") {
  Sandbox box;
  const Finished run = box.run({kExamples + "torch_before_run", "--seed", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto out = lines_of(run.out);
  REQUIRE(out.size() == 2);
  CHECK(out[0].starts_with("CUDA is "));
  CHECK(out[1].starts_with("Best config is: {\"lr\":"));
  CHECK(lines_of(box.read("results/latest/results.csv")).size() == 5);
  CHECK(box.is_quiet());
}

TEST_CASE("the ResNet-18 learns, with one worker and with two, in mixed precision") {
  for (const bool two : {false, true}) {
    CAPTURE(two);
    Sandbox box;
    const Finished run = box.run(
        {kExamples + "resnet18", "images=generated", "samples=512", "epochs=4", "width=4", "lr=0.4",
         "fp16=true", two ? "workers=2" : "workers=1", two ? "batch_size=8" : "batch_size=16"});
    INFO(run.err);
    INFO(run.out);
    REQUIRE(run.code == 0);
    const auto out = lines_of(run.out);
    REQUIRE(out.size() == 8);
    CHECK(number_after(out[7], "\"val_accuracy\":") > 0.5);  // chance is 0.1
    CHECK(number_after(out[6], "\"train_loss\":") < number_after(out[0], "\"train_loss\":"));
    CHECK_HAS(run.err, "lr 0.4 x 0.0625 = 0.025");  // 16 samples a step of 256
    CHECK_FALSE(box.read("resnet18_model/model.safetensors").empty());
    CHECK(box.is_quiet());
  }
}

TEST_CASE("the ResNet-18 trains with folders of images") {
  Sandbox box;
  const std::filesystem::path image = TUNE_SOURCE_DIR "/tests/torch/data/images/rgb.png";
  for (const char* folder : {"train/cat", "train/dog", "val/cat", "val/dog"}) {
    std::filesystem::create_directories(box.path() / folder);
    std::filesystem::copy_file(image, box.path() / folder / "1.png");
  }
  const Finished run = box.run(
      {kExamples + "resnet18", "images=.", "epochs=1", "width=4", "batch_size=2", "workers=1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(number_after(lines_of(run.out).at(0), "\"num_samples\":") == 2);
}

TEST_CASE("the ResNet-18 refuses what it does not understand as bad input") {
  const std::string known = "key=value with a key that the top of resnet18.cc names is wanted";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"epoch=1", known},
      {"epochs", known},
      {"=1", known},
      {"epochs=two", "an integer is wanted"},
      {"epochs=1.5", "an integer is wanted"},
      {"lr=0.1x", "a number is wanted"},
      {"fp16=yes", "true or false is wanted"},
  };
  for (const auto& [word, wanted] : table) {
    CAPTURE(word);
    Sandbox box;
    const Finished run = box.run({kExamples + "resnet18", word});
    CHECK(run.code == 2);
    CHECK_MESSAGE(testing::has(run.err, "error: " + word + ": " + wanted), run.err);
  }
}

}  // namespace
}  // namespace tune
