#include "tune/spec/yaml_spec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/fingerprint.h"
#include "core/random.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::refusal;

const fs::path kData = fs::path(TUNE_SOURCE_DIR) / "tests/data/yaml";

// A folder with a sweep and the plugin it names.
class Sweep {
 public:
  explicit Sweep(const std::string& text) {
    write("x.so", "");
    write("s.yaml", text);
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }
  fs::path file() const { return folder_.path() / "s.yaml"; }
  ExperimentSpec read(const std::vector<std::string>& sets = {}) const {
    SweepOptions options;
    for (const std::string& set : sets) parse_set(set, options.overrides, options.complaints);
    return spec_from_yaml_file(file(), std::move(options));
  }
  // The error's text, the folder left out.
  std::string error(const std::vector<std::string>& sets = {}) const {
    std::string text = refusal([&] { read(sets); });
    const std::string prefix = folder_.path().string() + "/";
    for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }

 private:
  testing::TemporaryFolder folder_;
};

const std::string kHead = "plugin: x.so\ntrainable: T\nmetric: loss\n";  // lines 1 to 3
const std::string kStop = "stop: {training_iteration: 3}\n";

std::string with(const std::string& rest) {
  return kHead + kStop + rest;
}

TEST_CASE("the sweep of the documentation parses as printed") {
  testing::TemporaryFolder folder;
  fs::create_directories(folder.path() / "build/examples");
  fs::create_directories(folder.path() / "config");
  std::ofstream(folder.path() / "build/examples/libfashion_mnist.so") << "";
  const fs::path sweep = folder.path() / "config/sweep.yaml";
  fs::copy_file(kData / "fashion_mnist.yaml", sweep);

  const ExperimentSpec spec = spec_from_yaml_file(sweep);
  const RunOptions& options = spec.options;
  CHECK(spec.plugin == (folder.path() / "build/examples/libfashion_mnist.so").string());
  CHECK(spec.trainable == "FashionMnist");
  CHECK(options.config.domains().size() == 3);
  CHECK(options.config.find("model/layers")->domain().is_grid());
  CHECK(options.config.find("batch_size")->constant() == Value(64));
  CHECK(options.num_samples == 16);
  CHECK(options.metric == "mean_accuracy");
  CHECK(options.mode == Mode::kMax);
  CHECK(options.scheduler.name() == "asha");
  CHECK(options.scheduler.make()->max_t() == 27.0);
  CHECK(spec.stop == std::vector<StopRule>{{"mean_accuracy", 0.99, false}});
  CHECK(spec.request == ResourceRequest{});
  CHECK(options.checkpoint.frequency == 1);
  CHECK(options.checkpoint.at_end);
  CHECK(options.max_failures == 2);
  CHECK(options.seed == 7u);
  CHECK(options.env == std::map<std::string, std::string>{{"MY_TOKEN_FILE", "token.txt"}});
  CHECK(options.reporter.metrics == std::vector<std::string>{"mean_accuracy", "loss"});
  CHECK(options.reporter.max_rows == 20);
  CHECK(options.storage == "results");
  CHECK(spec.sweep == sweep.string());
  CHECK(spec.sweep_hash == fingerprint(sweep));
}

TEST_CASE("every sweep of config/ parses") {
  testing::TemporaryFolder folder;
  for (const char* made : {"build/examples", "config"})
    fs::create_directories(folder.path() / made);
  for (const char* plugin : {"libfashion_mnist.so", "libtwo_moons.so"}) {
    std::ofstream(folder.path() / "build/examples" / plugin) << "";
  }
  int sweeps = 0;
  for (const auto& file : fs::directory_iterator(TUNE_SOURCE_DIR "/config")) {
    const std::string name = file.path().filename();
    if (!name.ends_with(".yaml") || name == "python.yaml") continue;  // that asks for a python3
    const fs::path copy = folder.path() / "config" / name;
    fs::copy_file(file.path(), copy);
    const RunOptions read = spec_from_yaml_file(copy).options;
    const std::string metric = read.objectives.empty() ? read.metric : read.objectives[0].metric;
    CHECK(metric == (name == "command.yaml" ? "loss" : "mean_accuracy"));
    ++sweeps;
  }
  CHECK(sweeps >= 3);
}

TEST_CASE("every mistake of a sweep is told at once, with line, path and the nearest key") {
  const std::string text = refusal([] { spec_from_yaml_file(kData / "many_mistakes.yaml"); });
  const std::string file = (kData / "many_mistakes.yaml").string();
  for (const char* part :
       {":1: plugin: there is no file", ":3: confg: unknown key 'confg' (did you mean 'config'?)",
        ":6: config/lr", "'uniform'", ":8: config/depth: 'depth' is given twice, first in line 7",
        ":9: num_samples: expected a whole number, found the text 'many'",
        ":11: mode: expected max or min, found the text 'mn'", ":12: stop/loss: expected a number",
        ":13: resources_per_trial/gpus: unknown key 'gpus'", "(did you mean 'gpu'?)",
        ":14: scheduler/asha/max_t", ":14: scheduler/asha/grace_perid", "grace_period",
        ":15: checkpoint/keep: 0", ":16: time_budget_s: -4",
        ":17: points_to_evaluate/1: expected a configuration"}) {
    CHECK_HAS(text, part);
  }
  std::size_t lines = 1;
  for (const char c : text) lines += c == '\n';
  CHECK(lines == 13);
  CHECK_HAS(text, file + ":1:");
}

TEST_CASE("one mistake is told with its line, its path and what to write") {
  struct Case {
    const char* rest;  // from line 5
    const char* part;
  };
  const Case cases[] = {
      {"num_sampels: 3\n",
       "s.yaml:5: num_sampels: unknown key 'num_sampels' (did you mean "
       "'num_samples'?)"},
      {"xyzzy: 3\n", "known keys: plugin, trainable, name"},
      {"seed: 1\nseed: 2\n", "s.yaml:6: seed: 'seed' is given twice, first in line 5: keep one"},
      {"seed: -1\n", "s.yaml:5: seed: expected a whole number from 0"},
      {"seed: 1.5\n", "found 1.5"},
      {"num_samples: 1e3\n", "s.yaml:5: num_samples: expected a whole number, found 1000.0"},
      {"num_samples:\n", "s.yaml:5: num_samples: has no value"},
      {"num_samples: 99999999999999999999\n",
       "s.yaml:5: num_samples: 99999999999999999999 does not fit"},
      {"max_failures: 3000000000\n", "s.yaml:5: max_failures: 3000000000 is too large"},
      {"fail_fast: yes\n", "s.yaml:5: fail_fast: expected true or false, found the text 'yes'"},
      {"fail_fast: 'true'\n", "found the text 'true'"},
      {"checkpoint: 3\n", "s.yaml:5: checkpoint: expected keys with values, found 3"},
      {"checkpoint:\n  frequency: 1\n  at_edn: true\n",
       "s.yaml:7: checkpoint/at_edn: unknown key 'at_edn' (did you mean 'at_end'?)"},
      {"resources_per_trial: {memory: 8Gigs}\n", "s.yaml:5: resources_per_trial/memory"},
      {"resources_per_trial: {memory: 1.5}\n", "expected bytes or a text such as 8GiB, found 1.5"},
      {"resources_per_trial:\n  cpu: 1\n  gpu: 1.5\n", "s.yaml:5: resources_per_trial"},
      {"scheduler: ahsa\n", "s.yaml:5: scheduler"},
      {"scheduler: ahsa\n", "asha"},
      {"scheduler: {asha: {max_t: 9}, fifo: {}}\n", "s.yaml:5: scheduler: expected one name"},
      {"scheduler: {asha: 9}\n", "s.yaml:5: scheduler/asha: expected parameters"},
      {"scheduler:\n  asha:\n    max_t: 9\n    grace_period: 20\n", "scheduler/asha"},
      {"searcher: basic_varient\n", "basic_variant"},
      {"config: {a: {uniform: [0, 1]}}\nsearcher: {gp: {start_up: 1}}\n",
       "s.yaml:6: searcher/gp/start_up"},
      {"config: {a: {uniform: [0, 1]}}\nsearcher: {gp: {startup: 1}}\n",
       "did you mean 'start_up'?"},
      {"config: {a: {uniform: [0, 1]}}\nsearcher: {gp: {random_share: 2}}\n",
       "s.yaml:6: searcher/gp/random_share"},
      {"searcher: gp\nconfig: {lr: {grid_search: [1, 2]}}\n",
       "s.yaml:6: config: 'lr' is a grid_search"},
      {"searcher: gp\nconfig: {lr: 1}\n", "s.yaml:6: config: nothing in it is searched"},
      {"config: 3\n", "s.yaml:5: config"},
      {"config:\n  model:\n    lr: {loguniform: [0, 1]}\n", "s.yaml:7: config/model/lr"},
      {"config: {lr: {min: 0, max: 1}}\n", "s.yaml:5: config/lr"},
      {"config:\n  a/b: 1\n",
       "s.yaml:6: config/a/b: a key holds no '/': write nested maps, a: {b: ...}"},
      {"config: {? [1, 2] : 3}\n", "s.yaml:5: config: a key must be a text"},
      {"config: {a: !secret 3}\n", "s.yaml:5: config/a: unknown tag !secret"},
      {"config: {a: !!int x}\n", "s.yaml:5: config/a: 'x' is not a value of !!int"},
      {"points_to_evaluate: {lr: 1}\n", "s.yaml:5: points_to_evaluate: expected a list"},
      {"env: [A]\n", "s.yaml:5: env: expected keys with values"},
      {"env: {A-B: 1}\n", "s.yaml:5: env/A-B"},
      {"reporter: {metrics: loss}\n", "s.yaml:5: reporter/metrics: expected a list of texts"},
      {"reporter: {metrics: [1]}\n", "reporter/metrics: expected a list of texts, found 1"},
      {"if_exists: fres\n", "(did you mean 'fresh'?)"},
      {"store: host\n", "s.yaml:5: store: this is not an address"},
      {"name: a/b\n", "s.yaml:5: name: the name 'a/b' holds a '/'"},
      {"<<: 3\n", "s.yaml:5: <<: only maps can be merged"},
      {"a: *b\n", "s.yaml:5: this is not YAML"},
      {"config: &c {a: *c}\n",
       "s.yaml:5: this alias stands for something that holds the alias itself"},
      {" indented: 1\n", "s.yaml:5: this is not YAML"},
      {"config: [1, 2\n", "this is not YAML"},
      {"---\nseed: 1\n", "a second document begins here"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.rest);
    const std::string text = Sweep(with(one.rest)).error();
    CHECK_HAS(text, one.part);
    CHECK(std::count(text.begin(), text.end(), '\n') == 0);
  }
}

TEST_CASE("mistakes of different kinds under one key are told at once") {
  struct Case {
    const char* rest;
    std::vector<const char*> parts;
  };
  const Case cases[] = {
      {"resources_per_trial: {cpus: 1, gpu: -1, memory: -2}\n",
       {"resources_per_trial/cpus: unknown key", "resources_per_trial/gpu: -1 is out of range",
        "resources_per_trial/memory: -2 is out of range"}},
      {"reporter: {metric: [a], max_rows: 0}\n",
       {"reporter/metric: unknown key", "reporter/max_rows: 0 is out of range"}},
      {"stop: {training_iteration: abc, loss: .nan, /a: 3}\n",
       {"stop/training_iteration: expected a number", "stop/loss: nan is never reached",
        "stop//a: the key '' is empty"}},
      {"checkpoint: {freqency: 1, keep: 0}\n",
       {"checkpoint/freqency: unknown key", "checkpoint/keep: 0 is out of range"}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.rest);
    const bool has_stop = std::string(one.rest).starts_with("stop");
    const std::string text = Sweep(has_stop ? kHead + one.rest : with(one.rest)).error();
    INFO(text);
    for (const char* part : one.parts) CHECK_MESSAGE(testing::has(text, part), part);
    CHECK(std::count(text.begin(), text.end(), '\n') + 1 ==
          static_cast<std::ptrdiff_t>(one.parts.size()));
  }
}

TEST_CASE("what follows from a mistake is not told as well") {
  // One rank is what a number of ranks that cannot be read leaves; it has no share of these.
  const auto lines = [](const std::string& rest) {
    const std::string text = Sweep(with(rest)).error();
    CAPTURE(text);
    return std::count(text.begin(), text.end(), '\n') + 1;
  };
  CHECK(lines("resources_per_trial: {gpu: 1.5, ranks: x}\n") == 1);
  CHECK(lines("config: {lr: {unifrom: [0, 1]}}\npoints_to_evaluate: [{lr: 0.5}]\n") == 1);
  // No other end than the stop rule that cannot be read.
  CHECK_FALSE(testing::has(Sweep(kHead + "stop: {loss: x}\n").error(), "ever ends"));
  CHECK_FALSE(testing::has(Sweep(kHead + "scheduler: {asha: {max_t: x}}\n").error(), "ever ends"));
}

TEST_CASE("a spec remembers where the options stand that only a run can refuse") {
  const Sweep sweep(with("checkpoint:\n  frequency: 2\n"));
  const std::string file = sweep.file().string();
  const ExperimentSpec spec = sweep.read({"trainable=Other"});
  CHECK(with_places(spec, "plugin: no\ntrainable: no: such\ncheckpoint/frequency: 2") ==
        file + ":1: plugin: no\n--set trainable=Other: trainable: no: such\n" + file +
            ":6: checkpoint/frequency: 2");
  CHECK(with_places(spec, "trainable/a/0: no") == "--set trainable=Other: trainable/a/0: no");
  CHECK(with_places(spec, "placing a trial: no") == "placing a trial: no");
  CHECK(with_places(spec, "placing/a trial: no") == "placing/a trial: no");
  CHECK(with_places(spec, "").empty());
}

TEST_CASE("missing pieces are told by name") {
  const std::string text = Sweep("metric: loss\n").error();
  CHECK_HAS(text, "s.yaml: plugin: is missing");
  CHECK_HAS(text, "s.yaml: trainable: no trainable is named");
  CHECK_HAS(text, "s.yaml: stop: nothing ever ends a trial");
  for (const char* empty : {"", "# nothing\n", "---\n", "3\n", "- a\n", "~\n"}) {
    CAPTURE(empty);
    CHECK_HAS(Sweep(empty).error(), "expected the keys of a sweep");
  }
}

TEST_CASE("a sweep that cannot be read is an error that names it") {
  CHECK_THROWS_WITH_AS(
      spec_from_yaml_file("/nowhere/s.yaml"),
      "reading the sweep /nowhere/s.yaml: No such file or directory: name a YAML file", Error);
  CHECK_THROWS_AS(spec_from_yaml_file(fs::temp_directory_path()), Error);
}

TEST_CASE("a plugin that is not there is told with the path that was tried and how to build it") {
  const Sweep sweep("plugin: ../lib/y.so\ntrainable: T\n" + kStop);
  const std::string text = sweep.error();
  CHECK_HAS(text, "s.yaml:1: plugin: there is no file " +
                      (sweep.file().parent_path().parent_path() / "lib/y.so").string());
  CHECK_HAS(text, "cmake --build build");
}

// ---- Scalars, texts, stop rules ----

TEST_CASE("scalars follow the core schema of YAML 1.2") {
  const double infinity = std::numeric_limits<double>::infinity();
  struct Case {
    const char* text;
    Value value;
  };
  const Case cases[] = {{"true", true},
                        {"True", true},
                        {"FALSE", false},
                        {"yes", "yes"},
                        {"on", "on"},
                        {"n", "n"},
                        {"010", 10},
                        {"-007", -7},
                        {"+12", 12},
                        {"0o17", 15},
                        {"0xfF", 255},
                        {"0b11", "0b11"},
                        {"1_000", "1_000"},
                        {"1e-4", 1e-4},
                        {"1.", 1.0},
                        {".5", 0.5},
                        {"-.5e+2", -50.0},
                        {"1e3", 1000.0},
                        {"1.0", 1.0},
                        {".inf", infinity},
                        {"-.Inf", -infinity},
                        {"+.INF", infinity},
                        {"inf", "inf"},
                        {"nan", "nan"},
                        {"null", nullptr},
                        {"~", nullptr},
                        {"", nullptr},
                        {"NULL", nullptr},
                        {"nil", "nil"},
                        {"1:30", "1:30"},
                        {"2026-11-21", "2026-11-21"},
                        {"-", "-"},
                        {".", "."},
                        {"+", "+"},
                        {"e5", "e5"},
                        {"1e", "1e"},
                        {"0x", "0x"},
                        {"0o8", "0o8"},
                        {"1.2.3", "1.2.3"},
                        {"=", "="},
                        {"9223372036854775807", 9223372036854775807LL}};
  for (const Case& one : cases) {
    CAPTURE(one.text);
    const Value value = yaml_scalar(one.text);
    CHECK(value == one.value);
    CHECK(value.type() == one.value.type());
  }
  CHECK(std::isnan(yaml_scalar(".NaN").number()));
  CHECK_THROWS_AS(yaml_scalar("9223372036854775808"), Error);
  CHECK_THROWS_AS(yaml_scalar("1e999"), Error);
}

TEST_CASE("constants of a sweep keep their types, quoted ones are texts") {
  const ExperimentSpec spec = Sweep(with("config:\n"
                                         "  a: 010\n  b: '010'\n  c: 1e-4\n  d: .inf\n  e: yes\n"
                                         "  f: true\n  g: ~\n  h: !!str 5\n  i: !!float 5\n"
                                         "  j: |\n    two\n    lines\n  k: [1, a, 2.0]\n"))
                                  .read();
  const auto at = [&](const char* path) { return spec.options.config.find(path)->constant(); };
  CHECK(at("a") == Value(10));
  CHECK(at("b") == Value("010"));
  CHECK(at("c") == Value(1e-4));
  CHECK(std::isinf(at("d").number()));
  CHECK(at("e") == Value("yes"));
  CHECK(at("f") == Value(true));
  CHECK(at("g").is_null());
  CHECK(at("h") == Value("5"));
  CHECK(at("i") == Value(5.0));
  CHECK(at("j") == Value("two\nlines\n"));
  CHECK(at("k") == list({1, "a", 2.0}));
}

TEST_CASE("options that are texts by nature are taken as written") {
  const ExperimentSpec spec =
      Sweep(
          with(
              "name: 007\nstorage: 1.0\nenv: {A: 010, B: true, C: 1e3, D: 99999999999999999999}\n"))
          .read();
  CHECK(spec.options.name == "007");
  CHECK(spec.options.storage == "1.0");
  CHECK(spec.options.env ==
        std::map<std::string, std::string>{
            {"A", "010"}, {"B", "true"}, {"C", "1e3"}, {"D", "99999999999999999999"}});
}

TEST_CASE("stop rules may be bare, bounded either way, nested or written as paths") {
  const ExperimentSpec spec =
      Sweep(kHead +
            "mode: min\nstop: {loss: {\"<=\": 0.1}, acc: {\">=\": 0.9}, time/total_s: 5, "
            "time: {a: {b: 1}}, n: {<=: 2}}\n")
          .read();
  CHECK(spec.stop == std::vector<StopRule>{{"acc", 0.9, false},
                                           {"loss", 0.1, true},
                                           {"n", 2, true},
                                           {"time/a/b", 1, false},
                                           {"time/total_s", 5, false}});
  CHECK_HAS(Sweep(kHead + "stop: {loss: {\"<\": 1}}\n").error(), "s.yaml:4: stop/loss");
  CHECK_HAS(Sweep(kHead + "stop: {loss: {\"<=\": a}}\n").error(), "expected {\"<=\": number}");
  CHECK_HAS(Sweep(kHead + "stop: {a/b: 1, a: {b: 2}}\n").error(), "stop/a");
  CHECK_HAS(Sweep(kHead + "stop: 3\n").error(), "expected metrics with numbers");
  CHECK_HAS(Sweep(kHead + "mode: min\nstop: {loss: 0.1}\n").error(),
            "s.yaml:5: stop/loss: a bare number stops at or above 0.1");
}

TEST_CASE("schedulers, searchers and memory are read in every spelling") {
  CHECK(Sweep(with("scheduler: asha\n")).read().options.scheduler.name() == "asha");
  CHECK(Sweep(with("scheduler: {asha: }\n")).read().options.scheduler.name() == "asha");
  CHECK(Sweep(with("scheduler: fifo\n")).read().options.scheduler.name() == "fifo");
  CHECK(Sweep(with("")).read().options.scheduler.name() == "fifo");
  const ExperimentSpec spec = Sweep(with("searcher: {basic_variant: {constant_grid_search: true}}\n"
                                         "resources_per_trial: {memory: 8GiB, ranks: 2, gpu: 2}\n"))
                                  .read();
  CHECK(spec.options.searcher.parameters().get<bool>("constant_grid_search"));
  const ExperimentSpec learning =
      Sweep(with("config: {lr: {uniform: [0, 1]}}\nsearcher: {gp: {start_up: 7}}\n")).read();
  CHECK(learning.options.searcher.name() == "gp");
  CHECK(learning.options.searcher.parameters().get<int>("start_up") == 7);
  CHECK(Sweep(with("config: {lr: {uniform: [0, 1]}}\nsearcher: gp\n"))
            .read()
            .options.searcher.parameters()
            .get<int>("start_up") == 5);
  CHECK_HAS(
      Sweep("plugin: x.so\ntrainable: T\nconfig: {lr: {uniform: [0, 1]}}\nsearcher: gp\n" + kStop)
          .error(),
      "s.yaml:4: searcher: searcher gp: it learns from the values of a metric");
  CHECK(spec.request.memory_bytes == 8LL << 30);
  CHECK(spec.request.ranks == 2);
  CHECK(spec.request.cpu_units == 2 * kUnit);
}

TEST_CASE("anchors, aliases and merge keys work, own keys win") {
  const ExperimentSpec spec = Sweep(with("config:\n"
                                         "  base: &base {lr: 0.1, depth: 2}\n"
                                         "  other: &other {depth: 9, width: 4}\n"
                                         "  a: {<<: *base, depth: 3}\n"
                                         "  b: {<<: [*base, *other]}\n"
                                         "  c: *base\n"))
                                  .read();
  const auto at = [&](const char* path) { return spec.options.config.find(path)->constant(); };
  CHECK(at("a/lr") == Value(0.1));
  CHECK(at("a/depth") == Value(3));
  CHECK(at("b/depth") == Value(2));
  CHECK(at("b/width") == Value(4));
  CHECK(at("c/depth") == Value(2));
}

// ---- Hostile input ----

TEST_CASE("aliases that multiply, deep nesting and long files are refused, quickly") {
  std::string bomb = with("config:\n  a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n");
  std::string merges = with("config:\n  m0: &m0 {k: 1}\n");
  for (int i = 1; i < 12; ++i) {
    const std::string to = std::to_string(i);
    const std::string from = std::to_string(i - 1);
    bomb += "  a" + to + ": &a" + to + " [";
    merges += "  m" + to + ": &m" + to + " {<<: [";
    for (int k = 0; k < 10; ++k) {
      bomb += "*a" + from + ",";
      merges += "*m" + from + ",";
    }
    bomb += "]\n";
    merges += "]}\n";
  }
  CHECK_HAS(Sweep(bomb).error(), "holds more than 100000 values, aliases expanded");
  CHECK_HAS(Sweep(merges).error(), "holds more than 100000 values, aliases expanded");
  const std::string brackets(100, '[');
  CHECK_HAS(Sweep(with("config: {a: " + brackets + std::string(100, ']') + "}\n")).error(),
            "nested deeper than 64 levels");
  CHECK_HAS(Sweep(std::string(100000, '[')).error(), "s.yaml:1: is nested too deeply");
  CHECK_HAS(Sweep(with("# " + std::string(kMaxYamlBytes, 'x') + "\n")).error(), "bytes long");
}

TEST_CASE("damaged sweeps give errors with a place, never anything else") {
  const std::string whole = testing::read_text(kData / "fashion_mnist.yaml");
  RandomStream random(11, "damaged sweeps", 0);  // the seed
  const std::string odd = "[]{}:,-&*!|>'\"%@`#?\t\n \\\xff~<=0.e";
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = whole;
    const auto edits = random.integer(1, 6);
    for (int k = 0; k < edits && !text.empty(); ++k) {
      const auto at =
          static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(text.size())));
      const char c =
          odd[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(odd.size())))];
      const auto kind = random.integer(0, 4);
      if (kind == 0) text[at] = c;
      if (kind == 1) text.insert(at, 1, c);
      if (kind == 2) text.erase(at, static_cast<std::size_t>(random.integer(1, 20)));
      if (kind == 3) text.resize(std::max<std::size_t>(at, 1));
    }
    CAPTURE(text);
    const Sweep sweep(text);
    try {
      sweep.read();
    } catch (const Error&) {  // anything else ends the test
      ++refused;
      CHECK(sweep.error().starts_with("s.yaml"));
    }
  }
  CHECK(refused > 300);
}

// ---- --set ----

TEST_CASE("--set changes any key before the sweep is checked") {
  const Sweep sweep(with("config: {lr: {uniform: [0, 1]}, model: {depth: 2}}\nscheduler: asha\n"));
  const ExperimentSpec spec =
      sweep.read({"config/lr=0.1", "config/model/depth={choice: [1, 2]}", "config/new=x",
                  "scheduler/asha/max_t=9", "stop/acc=0.9", "num_samples=5", "name=007",
                  "resources_per_trial/memory=1GiB", "seed=3", "seed=4", "checkpoint/keep=2"});
  const RunOptions& options = spec.options;
  CHECK(options.config.find("lr")->constant() == Value(0.1));
  CHECK(options.config.find("model/depth")->is_domain());
  CHECK(options.config.find("new")->constant() == Value("x"));
  CHECK(options.scheduler.make()->max_t() == 9.0);
  CHECK(options.num_samples == 5);
  CHECK(options.name == "007");
  CHECK(options.seed == 4u);
  CHECK(options.checkpoint.keep == 2);
  CHECK(spec.request.memory_bytes == 1LL << 30);
  CHECK(spec.stop.size() == 2);
}

TEST_CASE("--set names another scheduler, which replaces the one of the sweep") {
  const Sweep sweep(with("scheduler: {asha: {max_t: 5}}\n"));
  CHECK(sweep.read({"scheduler=fifo"}).options.scheduler.name() == "fifo");
  CHECK(Sweep(with("scheduler: fifo\n"))
            .read({"scheduler/asha/max_t=9"})
            .options.scheduler.make()
            ->max_t() == 9.0);
  CHECK(sweep.read({"scheduler/asha/grace_period=2"}).options.scheduler.make()->max_t() == 5.0);
}

TEST_CASE("mistakes of --set name the option, beside those of the file") {
  const Sweep sweep(with("config: {learning_rate: 0.1, layer1: 3}\n"));
  struct Case {
    const char* set;
    const char* part;
  };
  const Case cases[] = {
      {"config/lr", "--set config/lr: write PATH=VALUE"},
      {"=3", "write PATH=VALUE"},
      {"a//b=3", "write PATH=VALUE"},
      {"config/lr=[1", "--set config/lr=[1: config/lr: this is not YAML"},
      {"num_samples=x", "--set num_samples=x: num_samples: expected a whole number"},
      {"num_samples=0", "--set num_samples=0: num_samples: 0 is out of range"},
      {"num_sample=3",
       "--set num_sample=3: num_sample: unknown key 'num_sample' (did you mean "
       "'num_samples'?)"},
      {"confg/lr=3", "--set confg/lr=3: confg: unknown key 'confg' (did you mean 'config'?)"},
      {"checkpoint/kep=3", "--set checkpoint/kep=3: checkpoint/kep: unknown key"},
      {"config/lerning_rate=3", "did you mean config/learning_rate?"},
      {"config/learning_rate/x=3", "--set config/learning_rate/x=3"},
      {"config/x={unifrom: [0, 1]}", "--set config/x={unifrom: [0, 1]}: config/x"},
      {"scheduler/max_t=9", "write scheduler/<its name>/max_t=..."},
      {"scheduler/asha/max_t=-1", "--set scheduler/asha/max_t=-1: scheduler/asha/max_t"},
      {"scheduler.asha.max_t=9",
       "--set scheduler.asha.max_t=9: keys are joined by /: write scheduler/asha/max_t=9"},
      {"plugin=nowhere.so", "--set plugin=nowhere.so: plugin: there is no file"},
      {"seed=", "--set seed=: seed: has no value"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.set);
    const std::string text = sweep.error({one.set});
    CHECK_HAS(text, one.part);
    CHECK(std::count(text.begin(), text.end(), '\n') == 0);
  }
  CHECK_NOTHROW(sweep.read({"config/layer2=3"}));  // differs in digits only: a new key
  const std::string both = Sweep(with("sed: 3\n")).error({"num_samples=x"});
  CHECK_HAS(both, "s.yaml:5: sed: unknown key");
  CHECK_HAS(both, "\n--set num_samples=x: ");
}

TEST_CASE("a value that --set replaced is not told with the line it stood in") {
  const Sweep sweep(with("scheduler:\n  asha:\n    max_t: 5\n"));
  CHECK_HAS(sweep.error({"scheduler={asha: {max_t: -1}}"}),
            "--set scheduler={asha: {max_t: -1}}: scheduler/asha/max_t");
}

}  // namespace
}  // namespace tune
