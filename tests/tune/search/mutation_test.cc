#include "tune/search/pbt/mutation.h"

#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/json.h"

using namespace tune;

namespace {

// The draws of another tool, in its order: ["uniform", .3], ["index", 1] or ["draw", value].
class Told : public Chance {
 public:
  explicit Told(const Value::List& luck) : luck_(luck) {}
  double uniform() override { return next("uniform").number(); }
  std::size_t index(std::size_t count) override {
    const auto index = static_cast<std::size_t>(next("index").integer());
    REQUIRE(index < count);
    return index;
  }
  Value draw(const Domain&) override { return next("draw"); }
  bool is_used_up() const { return at_ == luck_.size(); }

 private:
  const Value& next(const std::string& kind) {
    REQUIRE(at_ < luck_.size());
    const Value::List& one = luck_[at_++].list();
    REQUIRE(one[0].string() == kind);
    return one[1];
  }
  const Value::List& luck_;
  std::size_t at_ = 0;
};

Value::List luck(std::initializer_list<Value> all) {
  return all;
}

// The config with what it becomes when `luck` is drawn.
std::string mutated(const Config& config, const SearchSpace& mutations, const Value::List& luck) {
  Told chance(luck);
  const Mutated found = mutate(config, mutations, {}, chance);
  CHECK(chance.is_used_up());
  return found.config.dump() + " " + found.changes;
}

const Value kKeep = list({"uniform", 0.5});  // no drawing anew
const Value kAnew = list({"uniform", 0.2});
const Value kFirst = list({"index", 0});   // * 1.2, or one back
const Value kSecond = list({"index", 1});  // * 0.8, or one on

}  // namespace

TEST_CASE("a configuration is mutated as Ray Tune's _explore does, with the same luck") {
  std::ifstream file(TUNE_SOURCE_DIR "/tests/data/schedulers/ray_explore.txt");
  REQUIRE(file.good());
  const SearchSpace mutations = {{"lr", loguniform(1e-4, 1.0)},
                                 {"dropout", uniform(0, 0.9)},
                                 {"batch", randint(8, 4096)},
                                 {"act", tune::list({"relu", "tanh", "gelu"})},
                                 {"model", {{"layers", choice({1, 2, 4, 8})}}}};
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    CAPTURE(line);
    const Value trace = parse_json(line, "trace");
    Told chance(trace.at("luck").list());
    const Mutated found = mutate(Config(trace.at("config")), mutations, {}, chance);
    CHECK(found.config.dump() == trace.at("new").dump());
    CHECK(chance.is_used_up());
  }
  CHECK(lines == 120);
}

TEST_CASE("a number stays within its domain") {
  const Config config{{"x", 0.85}};
  CHECK(mutated(config, {{"x", uniform(0, 0.9)}}, luck({kKeep, kFirst})) ==
        R"({"x":0.9} x 0.85 * 1.2 = 0.9)");
  CHECK(mutated(config, {{"x", uniform(0.8, 0.9)}}, luck({kKeep, kSecond})) ==
        R"({"x":0.8} x 0.85 * 0.8 = 0.8)");
  CHECK(mutated({{"n", 3900}}, {{"n", randint(8, 4096)}}, luck({kKeep, kFirst})) ==
        R"({"n":4095} n 3900 * 1.2 = 4095)");
  // .5 * 1.2 = .6 is nearer to .5 than to .75
  CHECK(mutated({{"x", 0.5}}, {{"x", quniform(0, 1, 0.25)}}, luck({kKeep, kFirst})) ==
        R"({"x":0.5} x 0.5 * 1.2 = 0.5)");
  CHECK(mutated({{"n", 64}}, {{"n", qrandint(32, 96, 32)}}, luck({kKeep, kSecond})) ==
        R"({"n":32} n 64 * 0.8 = 32)");
}

TEST_CASE("a whole number in a continuous domain is multiplied as others are") {
  CHECK(mutated({{"x", 1}}, {{"x", uniform(0.1, 0.9)}}, luck({kKeep, kSecond})) ==
        R"({"x":0.8} x 1 * 0.8 = 0.8)");
  CHECK(mutated({{"x", 0}}, {{"x", uniform(0.1, 0.9)}}, luck({kKeep, kFirst})) ==
        R"({"x":0.1} x 0 * 1.2 = 0.1)");
  CHECK(mutated({{"x", 1}}, {{"x", randn(0, 1)}}, luck({kKeep, kFirst})) ==
        R"({"x":1.2} x 1 * 1.2 = 1.2)");
}

TEST_CASE("a whole number that rounding would leave as it is moves by one, or by q") {
  CHECK(mutated({{"n", 2}}, {{"n", randint(1, 9)}}, luck({kKeep, kFirst})) ==
        R"({"n":3} n 2 * 1.2 = 3)");
  CHECK(mutated({{"n", 2}}, {{"n", randint(1, 9)}}, luck({kKeep, kSecond})) ==
        R"({"n":1} n 2 * 0.8 = 1)");
  CHECK(mutated({{"n", 1}}, {{"n", randint(1, 9)}}, luck({kKeep, kSecond})) ==
        R"({"n":1} n 1 * 0.8 = 1)");
  CHECK(mutated({{"n", 64}}, {{"n", qrandint(32, 128, 32)}}, luck({kKeep, kFirst})) ==
        R"({"n":96} n 64 * 1.2 = 96)");
}

TEST_CASE("a choice is a list: its value moves to a neighbour, or is drawn anew") {
  const SearchSpace mutations = {{"act", choice({"relu", "tanh", "gelu"})}};
  const Config config{{"act", "tanh"}};
  CHECK(mutated(config, mutations, luck({kKeep, kFirst})) ==
        R"({"act":"relu"} act "tanh" one back: "relu")");
  CHECK(mutated(config, mutations, luck({kKeep, kSecond})) ==
        R"({"act":"gelu"} act "tanh" one on: "gelu")");
  CHECK(mutated(config, mutations, luck({kAnew, list({"index", 2})})) ==
        R"({"act":"gelu"} act "tanh" drawn anew: "gelu")");
  CHECK(mutated({{"act", "elu"}}, mutations, luck({kKeep, list({"index", 2})})) ==
        R"({"act":"gelu"} act "elu" drawn anew: "gelu")");
  CHECK(mutated({{"act", "relu"}}, mutations, luck({kKeep, kFirst})) ==
        R"({"act":"relu"} act "relu" one back: "relu")");
}

TEST_CASE("a function's number is multiplied, and what is not a number drawn anew") {
  const SearchSpace mutations = {
      {"x", sample_from([](const Config& config) { return Value(config.get<double>("y") + 1); })}};
  CHECK(mutated({{"x", 2.0}, {"y", 5.0}}, mutations, luck({kKeep, kSecond})) ==
        R"({"x":1.6,"y":5.0} x 2.0 * 0.8 = 1.6)");
  CHECK(mutated({{"x", 2.0}, {"y", 5.0}}, mutations, luck({kAnew})) ==
        R"({"x":6.0,"y":5.0} x 2.0 drawn anew: 6.0)");
  CHECK(mutated({{"x", "a"}, {"y", 5.0}}, mutations, luck({kKeep})) ==
        R"({"x":6.0,"y":5.0} x "a" drawn anew: 6.0)");
}

TEST_CASE("a parameter that the configuration does not hold is left out") {
  const SearchSpace mutations = {{"lr", uniform(0, 1)}, {"adam", {{"beta", uniform(0, 1)}}}};
  CHECK(mutated({{"lr", 0.5}}, mutations, luck({kKeep, kFirst})) ==
        R"({"lr":0.6} lr 0.5 * 1.2 = 0.6)");
}

TEST_CASE("one value in four is drawn anew, the others are multiplied by either factor") {
  std::map<std::string, int> counts;
  const SearchSpace mutations = {{"x", uniform(0, 10)}};
  for (std::uint64_t number = 0; number < 4000; ++number) {
    StreamChance chance(RandomStream(5, "mutation_test", number));
    const double x = mutate({{"x", 1.0}}, mutations, {}, chance).config.get<double>("x");
    ++counts[x == 1.2 ? "up" : x == 0.8 ? "down" : "anew"];
  }
  // 4000 draws: a quarter and twice three eighths, within five standard deviations
  CHECK(std::abs(counts["anew"] - 1000) < 140);
  CHECK(std::abs(counts["up"] - 1500) < 155);
  CHECK(std::abs(counts["down"] - 1500) < 155);
}

TEST_CASE("mutations that cannot be made are refused") {
  const auto complaints = [](const SearchSpace& mutations) {
    std::string text;
    for (const SpaceComplaint& one : complaints_about_mutations(mutations)) {
      text += one.path + ": " + one.message + "\n";
    }
    return text;
  };
  CHECK(complaints({{"lr", uniform(0, 1)}, {"act", tune::list({"a"})}}) == "");
  CHECK(complaints({{"lr", 0.1}}) == "lr: is a constant: give a domain or a list of values\n");
  CHECK(complaints({{"m", {{"act", tune::list({})}}}}) ==
        "m/act: the list is empty: give the values it may have\n");
  CHECK(complaints({{"n", grid_search({1, 2})}}) ==
        "n: is a grid_search, which is for config: write choice here\n");
  CHECK(complaints({{"opt", choice({{{"beta", uniform(0, 1)}}, {{"decay", 0.1}}})}}) ==
        "opt: its options hold parameters of their own, which a model cannot change while it "
        "trains: name these instead\n");
  CHECK(complaints({}) == ": it names no parameter\n");
  CHECK(mutated_paths({{"a", uniform(0, 1)}, {"m", {{"b", tune::list({1})}}}}) ==
        std::vector<std::string>{"a", "m/b"});
}
