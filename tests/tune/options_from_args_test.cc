#include "tune/options_from_args.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

RunOptions defaults() {
  RunOptions options;
  options.config = {
      {"lr", loguniform(1e-3, 1.0)},
      {"model", {{"depth", grid_search({1, 2})}}},
      {"twice", sample_from([](const Config& c) { return c.get<double>("lr") * 2; })}};
  options.num_samples = 16;
  options.scheduler = asha({.max_t = 27, .reduction_factor = 3});
  options.stop = {{"accuracy", 0.99}};
  options.env = {{"TOKEN", "secret"}};
  options.resources_per_trial = {.cpu = 2};
  return options;
}

RunOptions parse(std::vector<const char*> arguments, RunOptions options = defaults()) {
  arguments.insert(arguments.begin(), "/somewhere/program");
  return parse_options(static_cast<int>(arguments.size()), arguments.data(), std::move(options));
}

TEST_CASE("without arguments the defaults stay, functions and all") {
  const RunOptions options = parse({});
  CHECK(options.num_samples == 16);
  CHECK(options.if_exists == IfExists::kRefuse);
  CHECK(options.config.find("twice")->domain().is_function());
  CHECK_FALSE(options.quiet);
}

TEST_CASE("every option of the command line reaches its field") {
  const RunOptions options =
      parse({"--name", "first", "--storage=out", "--num-samples", "-1", "--cpus", "2.5", "--gpus",
             "0", "--seed", "18446744073709551615", "--fresh", "--quiet"});
  CHECK(options.name == "first");
  CHECK(options.storage == "out");
  CHECK(options.num_samples == -1);
  CHECK(options.cpus == 2.5);
  CHECK(options.gpus == 0.0);
  CHECK(options.seed == 18446744073709551615ULL);
  CHECK(options.if_exists == IfExists::kFresh);
  CHECK(options.quiet);
  CHECK(parse({"--resume"}).if_exists == IfExists::kResume);
}

TEST_CASE("--set changes what it names and nothing else") {
  const RunOptions options = parse({"--set", "config/lr=0.1",
                                    "--set", "config/model/depth={choice: [3, 4]}",
                                    "--set", "config/new/deep=x",
                                    "--set", "config/new/sizes=[1, 2]",
                                    "--set", "stop/loss={<=: 0.1}",
                                    "--set", "num_samples=3",
                                    "--set", "max_failures=2",
                                    "--set", "scheduler/asha/max_t=9",
                                    "--set", "resources_per_trial/memory=8GiB",
                                    "--set", "checkpoint/frequency=5",
                                    "--set", "metric=007",
                                    "--set", "mode=min"});
  CHECK(options.config.find("lr")->constant() == Value(0.1));
  CHECK_FALSE(options.config.find("model/depth")->domain().is_grid());
  CHECK(options.config.find("new/deep")->constant() == Value("x"));
  CHECK(options.config.find("new/sizes")->constant() == list({1, 2}));
  CHECK(options.config.find("twice")->domain().is_function());
  CHECK(options.stop.size() == 2);
  CHECK(options.stop.at("loss").at_most);
  CHECK(options.stop.at("accuracy").bound == 0.99);
  CHECK(options.num_samples == 3);
  CHECK(options.max_failures == 2);
  CHECK(options.scheduler.make()->max_t() == 9.0);
  CHECK(options.scheduler.parameters().get<double>("reduction_factor") == 3);
  CHECK(options.resources_per_trial.memory.bytes() == 8LL << 30);
  CHECK(options.resources_per_trial.cpu == 2.0);
  CHECK(options.checkpoint.frequency == 5);
  CHECK(options.checkpoint.at_end);
  CHECK(options.metric == "007");
  CHECK(options.mode == Mode::kMin);
  CHECK(options.env.at("TOKEN") == "secret");
}

TEST_CASE("a custom scheduler stays unless --set names another") {
  RunOptions options = defaults();
  options.scheduler = SchedulerSpec("", {}, [] { return fifo().make(); });
  CHECK(parse({"--set", "max_failures=1"}, options).scheduler.name().empty());
  CHECK(parse({"--set", "scheduler/asha/max_t=9"}, options).scheduler.make()->max_t() == 9.0);
}

TEST_CASE("wrong arguments are told with what was given and where to look") {
  struct Case {
    std::vector<const char*> arguments;
    const char* part;
  };
  const Case cases[] = {
      {{"--nmae", "x"}, "see program --help"},
      {{"positional"}, "positional"},
      {{"--num-samples", "many"}, "many"},
      {{"--seed", "-1"}, "--seed -1: seed: expected a whole number from 0"},
      {{"--seed", "1.5"}, "found the text '1.5'"},
      {{"--seed", "18446744073709551616"}, "--seed 18446744073709551616: seed"},
      {{"--seed"}, "--seed"},
      {{"--resume", "--fresh"}, "--resume"},
      {{"--set", "config/lr"}, "--set config/lr: write PATH=VALUE, as in config/lr=0.1"},
      {{"--set", "num_sample=3"}, "(did you mean 'num_samples'?)"},
      {{"--set", "num_samples=x"}, "--set num_samples=x: num_samples: expected a whole number"},
      {{"--set", "config/lr/x=1"}, "--set config/lr/x=1: config/lr/x"},
      {{"--set", "config/momentum={unifrom: [0, 1]}"}, "uniform"},
      {{"--set", "scheduler/asha/max_tt=3"}, "max_t"},
      {{"--set", "plugin=x.so"}, "unknown key 'plugin'"},
  };
  for (const Case& one : cases) {
    CHECK_HAS(refusal([&] { parse(one.arguments); }), one.part);
  }
  const std::string both = refusal([] { parse({"--set", "num_samples=x", "--set", "seed=y"}); });
  CHECK_HAS(both, "--set num_samples=x: ");
  CHECK_HAS(both, "\n--set seed=y: ");
}

TEST_CASE("mistakes of every kind in the arguments are told at once") {
  const std::string text = refusal([] {
    parse({"--seed", "x", "--num-samples", "0", "--cpus", "many", "--name", "a/b", "--set",
           "checkpoint/keep=0", "--set", "resources_per_trial/gpu=-1"});
  });
  for (const char* part :
       {"--seed x: seed: expected a whole number",
        "--num-samples 0: num_samples: 0 is out of range", "--cpus many: cpus: expected a number",
        "--name a/b: name: the name 'a/b' holds a '/'",
        "--set checkpoint/keep=0: checkpoint/keep: 0 is out of range",
        "--set resources_per_trial/gpu=-1: resources_per_trial/gpu: -1 is out of range"}) {
    CHECK_HAS(text, part);
  }
  CHECK(std::count(text.begin(), text.end(), '\n') == 5);
  // An option that the program sets itself may still be set.
  RunOptions unfinished = defaults();
  unfinished.num_samples = 0;
  unfinished.storage.clear();
  CHECK(parse({"--seed", "3"}, unfinished).seed == 3u);
}

TEST_CASE("--help names every option and shows an example with the program's name") {
  try {
    parse({"--help"});
    FAIL("no help");
  } catch (const HelpRequested& help) {
    for (const char* part :
         {"--name", "--storage", "--num-samples", "--cpus", "--gpus", "--seed", "--set", "--resume",
          "--fresh", "--quiet", "--help", "Example:", "program --name first"}) {
      CHECK_HAS(help.text, part);
    }
  }
}

}  // namespace
}  // namespace tune
