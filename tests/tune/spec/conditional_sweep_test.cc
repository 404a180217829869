// Sweeps whose spaces have conditions and constraints: their YAML, --set, and what is stored.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"
#include "tune/options_from_args.h"
#include "tune/spec/yaml_spec.h"

namespace tune {
namespace {

using testing::refusal;

// A sweep in a file; the space begins in line 3.
class ConditionalSweep {
 public:
  explicit ConditionalSweep(const std::string& text) {
    std::ofstream(folder_.path() / "x.so") << "";
    std::ofstream(folder_.path() / "s.yaml")
        << "{plugin: x.so, trainable: T, metric: loss, seed: 1,\n stop: {training_iteration: 3},\n"
        << text << "}\n";
  }
  ExperimentSpec read(const std::vector<std::string>& sets = {}) const {
    SweepOptions options;
    for (const std::string& set : sets) parse_set(set, options.overrides, options.complaints);
    return spec_from_yaml_file(folder_.path() / "s.yaml", std::move(options));
  }
  SearchSpace space(const std::vector<std::string>& sets = {}) const {
    return read(sets).options.config;
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

const std::string kOptimiser =
    "config: {\n"
    "  lr: {loguniform: [1e-4, 1]},\n"
    "  optimiser: {choice: [\n"
    "    {kind: sgd, momentum: {uniform: [0, 1]}},\n"                // line 6
    "    {kind: adam, beta: {choice: [0.9, 0.99]},\n"                // line 7
    "     warmup: {choice: [none, {steps: {randint: [1, 9]}}]}},\n"  // line 8
    "    none]}}";

TEST_CASE("a sweep's options hold domains, and its rules are a text or a list") {
  const ExperimentSpec spec =
      ConditionalSweep(kOptimiser + ",\nwhere: lr < optimiser/momentum").read();
  CHECK(spec.options.config.placed_domains().size() == 6);
  CHECK(spec.options.where == std::vector<std::string>{"lr < optimiser/momentum"});
  CHECK(ConditionalSweep(kOptimiser + ", where: [lr < 0.5, \"2 * lr < optimiser/beta\"]")
            .read()
            .options.where == std::vector<std::string>{"lr < 0.5", "2 * lr < optimiser/beta"});
}

TEST_CASE("a mistake in an option or a rule is told with its line and path") {
  struct Case {
    const char* text;
    const char* part;
  };
  const Case cases[] = {
      {"config: {o: {choice: [3,\n {k: 1, x: {uniform: [0, 1]},\n  y: {grid_search: [1]}}]}}",
       "s.yaml:5: config/o/choice/1/y: there is no grid_search within an option of a choice"},
      {"config: {o: {choice: [{x: {uniform: [0, 1]}},\n {y: {unifrom: [0, 1]}}]}}",
       "s.yaml:4: config/o/choice/1/y: there is no domain 'unifrom' (did you mean 'uniform'?)"},
      {"config: {x: {uniform: [0, 1]}},\nwhere: x <", "s.yaml:4: where/0: 'x <' has the end where"},
      {"config: {x: {uniform: [0, 1]}},\nwhere: [x < 1,\n widht < x]",
       "s.yaml:5: where/1: 'widht < x': there is no 'widht' in config, there are: x"},
      {"config: {act: {choice: [relu, tanh]}},\nwhere: [act < 3]",
       "s.yaml:4: where/0: 'act < 3': 'act' may be \"relu\", which is not a number"},
      {"config: {x: 1},\nwhere: [3]",
       "s.yaml:4: where/0: expected a comparison of parameters, as in x < y, found 3"},
      {"config: {x: 1},\nwhere: {x: 1}", "s.yaml:4: where/0: expected a comparison"},
      {"config: {x: {uniform: [0, 1]}},\nwhere: x > 2",
       "s.yaml:4: where: of 10000 drawn configurations 0 are kept"},
      {"config: {x: {grid_search: [1, 2]}},\nwhere: x > 2",
       "s.yaml:4: where: {\"x\":2} breaks 'x > 2' whatever is drawn"},
      {"config: {x: {uniform: [0, 1]}},\nwhere: x < 0.5, num_samples: 2,\n"
       "points_to_evaluate: [{x: 0.1}, {x: 0.7}]",
       "s.yaml:5: points_to_evaluate: points_to_evaluate/1: {\"x\":0.7} breaks 'x < 0.5'"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.text);
    const std::string text = ConditionalSweep(one.text).error();
    CHECK_HAS(text, one.part);
    CHECK(std::count(text.begin(), text.end(), '\n') == 0);
  }
  // A mistake that only follows from one in the space is not told.
  const std::string one =
      ConditionalSweep("config: {x: {uniform: [1, 0]}}, where: [x < 1, y < 1]").error();
  CHECK(std::count(one.begin(), one.end(), '\n') == 0);
}

// ---- --set ----

TEST_CASE("--set reaches a key in the options that have it, at any depth") {
  const ConditionalSweep sweep(kOptimiser);
  const SearchSpace fixed = sweep.space({"config/optimiser/momentum=0.5"});
  REQUIRE(fixed.nodes_at("optimiser/momentum").size() == 1);
  CHECK(fixed.nodes_at("optimiser/momentum")[0].constant() == Value(0.5));
  CHECK(fixed.nodes_at("optimiser/beta")[0].is_domain());
  const SearchSpace both = sweep.space({"config/optimiser/kind=x"});
  REQUIRE(both.nodes_at("optimiser/kind").size() == 2);
  for (const SearchSpace& node : both.nodes_at("optimiser/kind")) {
    CHECK(node.constant() == Value("x"));
  }
  const SearchSpace deep = sweep.space({"config/optimiser/warmup/steps={randint: [20, 30]}"});
  CHECK(deep.nodes_at("optimiser/warmup/steps")[0].describe().dump() == R"({"randint":[20,30]})");
  // The choice itself, as before.
  CHECK(sweep.space({"config/optimiser/choice=[a, b]"}).domains().size() == 2);
  CHECK(sweep.space({"config/optimiser=none"}).domains().size() == 1);
  // Options without domains are reached as well.
  const ConditionalSweep plain(
      "config: {o: {choice: [{name: sgd, m: 0.9}, {name: adam}, {const: {m: 1}}]}}");
  const Value set = plain.space({"config/o/m=0.5"}).describe();
  CHECK(set.dump() ==
        R"({"o":{"choice":[{"name":"sgd","m":0.5},{"name":"adam"},{"const":{"m":0.5}}]}})");
}

TEST_CASE("a mistake of --set within options names the option of the command line") {
  const ConditionalSweep sweep(kOptimiser);
  CHECK_HAS(sweep.error({"config/optimiser/momentun=1"}),
            "--set config/optimiser/momentun=1: config/optimiser/momentun: no option of the choice "
            "config/optimiser has 'momentun' (did you mean 'momentum'?)");
  CHECK_HAS(sweep.error({"config/optimiser/xyzzy=1"}), "; they have: kind, momentum");
  CHECK_HAS(sweep.error({"config/optimiser/momentum={uniform: [1, 0]}"}),
            "--set config/optimiser/momentum={uniform: [1, 0]}: "
            "config/optimiser/choice/0/momentum: uniform(1, 0)");
  CHECK_HAS(sweep.error({"config/optimiser/momentum={grid_search: [1, 0]}"}),
            "--set config/optimiser/momentum={grid_search: [1, 0]}: ");
}

RunOptions program_options() {
  RunOptions options;
  options.config = {{"lr", loguniform(1e-4, 1)},
                    {"o", choice({{{"kind", "a"}, {"x", uniform(0, 1)}},
                                  {{"kind", "b"}, {"twice", sample_from([](const Config& config) {
                                                     return Value(2 * config.get<double>("lr"));
                                                   })}}})}};
  options.stop = {{"training_iteration", 3}};
  options.seed = 1;
  options.where = {"lr < 0.5"};
  return options;
}

TEST_CASE("--set of a program reaches keys within options and keeps functions") {
  const auto parse = [](const char* set) {
    const char* arguments[] = {"program", "--set", set};
    return parse_options(3, arguments, program_options());
  };
  const SearchSpace space = parse("config/o/x=0.25").config;
  CHECK(space.nodes_at("o/x")[0].constant() == Value(0.25));
  CHECK(space.nodes_at("o/twice")[0].domain().is_function());
  CHECK(parse("where=lr < 0.1").where == std::vector<std::string>{"lr < 0.1"});
  const std::string text = refusal([&] { parse("config/o/y=0.25"); });
  CHECK_HAS(text, "no option of the choice config/o has 'y'");
  CHECK(std::count(text.begin(), text.end(), '\n') == 0);
}

// ---- What is stored ----

ExperimentSpec round_trip(const ExperimentSpec& spec) {
  return spec_from_value(parse_json(to_json(to_value(spec), 2), "experiment.json"));
}

TEST_CASE("a stored experiment has its conditions and rules again") {
  const ExperimentSpec spec =
      ConditionalSweep(kOptimiser + ", where: [lr < optimiser/momentum]").read();
  const ExperimentSpec back = round_trip(spec);
  CHECK(to_value(back) == to_value(spec));
  CHECK(back.options.config.describe() == spec.options.config.describe());
  CHECK(back.options.where == spec.options.where);
  // Functions within options come back as what only the program has.
  std::vector<Complaint> complaints;
  const ExperimentSpec of_program =
      round_trip(make_spec(program_options(), "T", false, complaints));
  CHECK(complaints.empty());
  const auto functions = of_program.options.config.nodes_at("o/twice");
  REQUIRE(functions.size() == 1);
  const auto& function = std::get<Domain::SampleFrom>(functions[0].domain().kind()).function;
  CHECK_HAS(refusal([&] { function({}); }), "a function in its search space of its own program");
}

TEST_CASE("experiments that an older tune stored are read as it meant them") {
  Value stored = to_value(ConditionalSweep("config: {x: 1}").read());
  stored.erase("where");
  stored.set("version", 1);
  stored.set("config",
             parse_json(R"({"o":{"choice":[{"k":1,"x":{"uniform":[0,1]}},{"const":3}]}})", "test"));
  const ExperimentSpec spec = spec_from_value(stored);
  CHECK(spec.options.where.empty());
  const auto& choice = std::get<Domain::Choice>(spec.options.config.find("o")->domain().kind());
  CHECK(choice.spaces.empty());
  CHECK(choice.values[0] == Value{{"k", 1}, {"x", {{"uniform", list({0, 1})}}}});
  CHECK(choice.values[1] == Value{{"const", 3}});
  // And stored again by this one, it means the same.
  const ExperimentSpec again = round_trip(spec);
  CHECK(again.options.config.frame() == spec.options.config.frame());
  const auto& same = std::get<Domain::Choice>(again.options.config.find("o")->domain().kind());
  CHECK(same.values == choice.values);
  CHECK(same.spaces.empty());
}

}  // namespace
}  // namespace tune
