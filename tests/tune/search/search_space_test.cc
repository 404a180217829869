#include "tune/search/search_space.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/json.h"
#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

constexpr int kDraws = 20000;
constexpr std::uint64_t kSpaceSeed = 11;  // of every statistical test here

template <class T>
std::vector<T> draws_of(const Domain& domain, int count = kDraws) {
  std::vector<T> draws;
  RandomStream random(kSpaceSeed, "search_space_test", 0);
  for (int i = 0; i < count; ++i) draws.push_back(domain.draw(random).as<T>());
  return draws;
}

template <class T>
std::map<T, int> counts_of(const Domain& domain) {
  std::map<T, int> counts;
  for (const T& value : draws_of<T>(domain)) ++counts[value];
  return counts;
}

// A count of `kDraws` tries with that chance lies within five standard deviations.
void check_share(int count, double chance) {
  const double sd = std::sqrt(kDraws * chance * (1 - chance));
  CHECK_MESSAGE(std::abs(count - kDraws * chance) <= 5 * sd + 1e-9,
                "seed " << kSpaceSeed << ": " << count << " of " << kDraws << ", expected "
                        << kDraws * chance);
}

int count_below(const std::vector<double>& draws, double bound) {
  int count = 0;
  for (const double draw : draws) count += draw < bound;
  return count;
}

// ---- Draws --------------------------------------------------------------------------------------

TEST_CASE("uniform is even in [low, high)") {
  const auto draws = draws_of<double>(uniform(-2, 6));
  for (const double draw : draws) {
    REQUIRE(draw >= -2);
    REQUIRE(draw < 6);
  }
  check_share(count_below(draws, 0), 0.25);
  check_share(count_below(draws, 4), 0.75);
}

TEST_CASE("uniform never reaches its upper bound, however near the two are") {
  const double next = std::nextafter(1.0, 2.0);
  for (const double draw : draws_of<double>(uniform(1.0, next), 1000)) CHECK(draw == 1.0);
}

TEST_CASE("quniform draws multiples, high included, with half the mass at the ends") {
  // 0, 0.1 ... 0.5: five widths of 0.1, of which the ends get half a width.
  const auto counts = counts_of<double>(quniform(0, 0.5, 0.1));
  REQUIRE(counts.size() == 6);
  const double expected[] = {0.0, 0.1, 0.2, 0.3, 0.4, 0.5};
  int i = 0;
  for (const auto& [value, count] : counts) {
    CHECK(value == expected[i]);  // not 0.30000000000000004
    check_share(count, i == 0 || i == 5 ? 0.1 : 0.2);
    ++i;
  }
  CHECK(counts_of<double>(quniform(-10, 10, 5)).begin()->first == -10);
}

TEST_CASE("loguniform is even in the logarithm, its bounds are values") {
  const auto draws = draws_of<double>(loguniform(1e-4, 1));
  for (const double draw : draws) {
    REQUIRE(draw >= 1e-4);
    REQUIRE(draw < 1);
  }
  for (const int decade : {1, 2, 3}) {
    check_share(count_below(draws, 1e-4 * std::pow(10, decade)), decade / 4.0);
  }
}

TEST_CASE("qloguniform draws the multiple nearest to a loguniform draw") {
  const auto counts = counts_of<double>(qloguniform(1, 8, 1));
  REQUIRE(counts.size() == 8);
  // k takes what lies between k - 0.5 and k + 0.5, cut at the bounds.
  for (const auto& [value, count] : counts) {
    const double low = std::max(1.0, value - 0.5);
    const double high = std::min(8.0, value + 0.5);
    check_share(count, std::log(high / low) / std::log(8.0));
  }
}

TEST_CASE("randint is even and excludes high") {
  const auto counts = counts_of<std::int64_t>(randint(-2, 3));
  REQUIRE(counts.size() == 5);
  CHECK(counts.begin()->first == -2);
  CHECK(counts.rbegin()->first == 2);
  for (const auto& [value, count] : counts) check_share(count, 0.2);
  CHECK(counts_of<std::int64_t>(randint(4, 5)).size() == 1);
  CHECK(draws_of<std::int64_t>(randint(INT64_MIN, INT64_MAX), 100).size() == 100);
}

TEST_CASE("qrandint is even over the multiples and includes high, also for q = 1") {
  struct Case {
    Domain domain;
    std::vector<std::int64_t> values;
  };
  const Case cases[] = {{qrandint(16, 64, 16), {16, 32, 48, 64}},
                        {qrandint(0, 3, 1), {0, 1, 2, 3}},
                        {qrandint(0, 3), {0, 1, 2, 3}},
                        {qrandint(5, 21, 8), {8, 16}},
                        {qrandint(-7, 4, 3), {-6, -3, 0, 3}},
                        {qrandint(-8, -3, 4), {-8, -4}},
                        {qrandint(6, 6, 3), {6}}};
  for (const Case& one : cases) {
    CAPTURE(one.domain.describe().dump());
    std::vector<std::int64_t> values;
    for (const auto& [value, count] : counts_of<std::int64_t>(one.domain)) {
      values.push_back(value);
      check_share(count, 1.0 / static_cast<double>(one.values.size()));
    }
    CHECK(values == one.values);
  }
}

TEST_CASE("lograndint rounds a loguniform draw down and excludes high") {
  const auto counts = counts_of<std::int64_t>(lograndint(1, 16));
  REQUIRE(counts.size() == 15);
  for (const auto& [value, count] : counts) {
    const auto k = static_cast<double>(value);
    check_share(count, std::log((k + 1) / k) / std::log(16.0));
  }
  for (const std::int64_t draw :
       draws_of<std::int64_t>(lograndint(INT64_MAX - 1, INT64_MAX), 100)) {
    CHECK(draw == INT64_MAX - 1);
  }
  CHECK(counts_of<std::int64_t>(lograndint(7, 8)).size() == 1);
}

TEST_CASE("randn has its mean and standard deviation, qrandn draws multiples") {
  const auto draws = draws_of<double>(randn(10, 2));
  double sum = 0;
  double squares = 0;
  for (const double draw : draws) sum += draw, squares += (draw - 10) * (draw - 10);
  CHECK(std::abs(sum / kDraws - 10) < 5 * 2 / std::sqrt(kDraws));
  CHECK(std::abs(squares / kDraws / 4 - 1) < 5 * std::sqrt(2.0 / kDraws));
  check_share(count_below(draws, 8), 0.158655);
  const auto counts = counts_of<double>(qrandn(0, 1, 0.5));
  for (const auto& [value, count] : counts) CHECK(value * 2 == std::round(value * 2));
  check_share(counts.at(0.0), 0.197413);  // within 0.25 of the mean
}

TEST_CASE("choice is even over the positions and gives values unchanged") {
  const auto counts = counts_of<std::string>(choice({"a", "b", "b", "c"}));
  check_share(counts.at("a"), 0.25);
  check_share(counts.at("b"), 0.5);
  const Domain mixed =
      choice({1, 1.0, "1", true, nullptr, list({1, 2}), {{"name", "sgd"}, {"m", 0.9}}});
  RandomStream random(kSpaceSeed, "mixed", 0);
  std::set<std::string> seen;
  for (int i = 0; i < 500; ++i) seen.insert(mixed.draw(random).dump());
  CHECK(seen == std::set<std::string>{"1", "1.0", "\"1\"", "true", "null", "[1,2]",
                                      R"({"name":"sgd","m":0.9})"});
  CHECK(choice(std::vector<Value>{3}).draw(random) == Value(3));
}

TEST_CASE("the same stream gives the same draws") {
  for (const Domain& domain : {uniform(0, 1), randint(0, 1000), randn(), choice({1, 2, 3})}) {
    RandomStream a(kSpaceSeed, "x", 1);
    RandomStream b(kSpaceSeed, "x", 1);
    for (int i = 0; i < 20; ++i) CHECK(domain.draw(a) == domain.draw(b));
  }
}

// ---- Refusals -----------------------------------------------------------------------------------

TEST_CASE("impossible arguments are refused with the domain as it was written") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    std::function<Domain()> make;
    const char* shown;
    const char* why;
  };
  const Case cases[] = {
      {[] { return uniform(1, 0); }, "uniform(1, 0)", "below"},
      {[] { return uniform(1, 1); }, "uniform(1, 1)", "below"},
      {[] { return uniform(kNan, 1); }, "uniform(nan, 1)", "finite"},
      {[] { return uniform(0, kInfinity); }, "uniform(0, inf)", "finite"},
      {[] { return uniform(-1.7e308, 1.7e308); }, "uniform(", "too far apart"},
      {[] { return quniform(0, 1, 0.3); }, "quniform(0, 1, 0.3)", "multiples of q, 0.3"},
      {[] { return quniform(0.05, 1, 0.1); }, "quniform(0.05, 1, 0.1)", "multiples"},
      {[] { return quniform(0, 1, 0); }, "quniform(0, 1, 0)", "q must be above 0"},
      {[] { return quniform(0, 1, -0.1); }, "quniform", "q must be above 0"},
      {[] { return loguniform(0, 1); }, "loguniform(0, 1)", "above 0"},
      {[] { return loguniform(-4, -1); }, "loguniform(-4, -1)", "not exponents"},
      {[] { return qloguniform(1, 8, 3); }, "qloguniform(1, 8, 3)", "multiples"},
      {[] { return randint(3, 3); }, "randint(3, 3)", "excluded"},
      {[] { return qrandint(4, 1); }, "qrandint(4, 1, 1)", "no multiple"},
      {[] { return qrandint(5, 7, 4); }, "qrandint(5, 7, 4)", "no multiple"},
      {[] { return qrandint(0, 8, 0); }, "qrandint(0, 8, 0)", "at least 1"},
      {[] { return qrandint(INT64_MIN, 0); }, "qrandint(", "2^62"},
      {[] { return lograndint(0, 8); }, "lograndint(0, 8)", "above 0"},
      {[] { return lograndint(8, 8); }, "lograndint(8, 8)", "below"},
      {[] { return randn(0, 0); }, "randn(0, 0)", "sd must be above 0"},
      {[] { return randn(kNan, 1); }, "randn(nan, 1)", "finite"},
      {[] { return qrandn(0, 1, 0); }, "qrandn(0, 1, 0)", "q must be above 0"},
      {[] { return choice({}); }, "choice", "at least one"},
      {[] { return grid_search({}); }, "grid_search", "at least one"},
      {[] { return sample_from(nullptr); }, "sample_from", "empty"},
  };
  for (const Case& one : cases) {
    const std::string text = refusal(one.make);
    CHECK_HAS(text, one.shown);
    CHECK_HAS(text, one.why);
  }
}

// ---- Spaces -------------------------------------------------------------------------------------

TEST_CASE("a space is written in braces as the README does") {
  const SearchSpace space = {
      {"lr", loguniform(1e-3, 1.0)},
      {"model", {{"act", choice({"relu", "tanh"})}, {"layers", grid_search({1, 2})}}},
      {"batch_size", 64},
      {"names", {{"a", "b"}, {"c", "d"}}},
      {"widths", list({1, 2})}};
  CHECK(space.is_map());
  CHECK(space.find("model/act")->is_domain());
  CHECK(space.find("model/layers")->domain().is_grid());
  CHECK(space.find("batch_size")->constant() == Value(64));
  CHECK(space.find("names")->is_map());
  CHECK(space.find("names/c")->constant() == Value("d"));
  CHECK(space.find("widths")->constant() == list({1, 2}));
  CHECK(space.find("model/x") == nullptr);
  CHECK(space.find("lr/x") == nullptr);
  std::vector<std::string> paths;
  for (const auto& [path, domain] : space.domains()) paths.push_back(path);
  CHECK(paths == std::vector<std::string>{"lr", "model/act", "model/layers"});
}

TEST_CASE("set makes the maps on the way and refuses to go through a value") {
  SearchSpace space = {{"lr", 0.1}};
  space.set("model/width", randint(1, 4));
  space.set("model/depth", 3);
  space.set("lr", uniform(0, 1));
  CHECK(space.describe().dump() ==
        R"({"lr":{"uniform":[0.0,1.0]},"model":{"width":{"randint":[1,4]},"depth":3}})");
  CHECK_HAS(refusal([&] { space.set("lr/x", 1); }), "'lr/x' cannot be set: 'lr' is not a map");
  CHECK_HAS(refusal([&] { space.set("a//b", 1); }), "empty");
}

TEST_CASE("keys of a space come once, are not empty and hold no slash") {
  CHECK_HAS(refusal([] { (void)SearchSpace{{"a", 1}, {"a", 2}}; }), "'a' is given twice");
  CHECK_HAS(refusal([] { (void)SearchSpace{{"a/b", 1}}; }), "'a/b'");
  CHECK_HAS(refusal([] { (void)SearchSpace{{"", 1}}; }), "empty");
}

// ---- As values ----------------------------------------------------------------------------------

SearchSpace read_space(const std::string& json, std::vector<SpaceComplaint>& complaints) {
  return search_space_from_value(parse_json(json, "test"), complaints);
}

SearchSpace read_space_well(const std::string& json) {
  std::vector<SpaceComplaint> complaints;
  SearchSpace space = read_space(json, complaints);
  for (const SpaceComplaint& one : complaints) FAIL_CHECK(one.path << ": " << one.message);
  return space;
}

TEST_CASE("a described space reads back as the same space") {
  const SearchSpace space = {
      {"a", uniform(0, 1)},
      {"b", quniform(0, 1, 0.25)},
      {"c", loguniform(1e-4, 1)},
      {"d", qloguniform(1, 8, 1)},
      {"e", randint(-3, 3)},
      {"f", qrandint(16, 256, 16)},
      {"g", qrandint(0, 3)},
      {"h", lograndint(1, 1000)},
      {"i", randn(1, 2)},
      {"j", qrandn(0, 1, 0.5)},
      {"k", choice({1, "x", {{"uniform", list({0, 1})}}, nullptr})},
      {"l", {{"m", grid_search({list({1}), true})}, {"n", Value()}, {"o", "text"}}},
      {"p", list({{{"uniform", list({0, 1})}}})}};
  const Value described = space.describe();
  const SearchSpace again = read_space_well(described.dump());
  CHECK(again.describe() == described);
  // The same draws, too.
  const auto first = space.domains();
  const auto second = again.domains();
  REQUIRE(first.size() == second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].first == second[i].first);
    if (first[i].second->is_grid()) continue;
    RandomStream a(kSpaceSeed, "x", i);
    RandomStream b(kSpaceSeed, "x", i);
    for (int n = 0; n < 20; ++n) CHECK(first[i].second->draw(a) == second[i].second->draw(b));
  }
}

TEST_CASE("constants that look like domains survive being described") {
  const Value constants[] = {{{"layers", list({64, 64})}},
                             {{"uniform", list({0, 1})}},
                             {{"uniform", 3}},
                             {{"min", 0}, {"max", 1}},
                             {{"values", list({1, 2})}},
                             {{"const", 5}},
                             {{"const", {{"uniform", list({0, 1})}}}},
                             {{"distribution", "normal"}},
                             {{"sample_from", nullptr}},
                             {{"deep", {{"choice", list({})}}}},
                             {{"uniform", list({0, 1})}, {"randint", list({1, 9})}}};
  for (const Value& constant : constants) {
    CAPTURE(constant.dump());
    const SearchSpace space = {{"x", SearchSpace(constant)}, {"lr", uniform(0, 1)}};
    const SearchSpace again = read_space_well(space.describe().dump());
    CHECK(again.describe() == space.describe());
    CHECK(again.domains().size() == 1);
    const Config expected = {{"x", constant}};
    for (const auto& [path, value] : expected.leaves()) {
      REQUIRE(again.find(path) != nullptr);
      CHECK(again.find(path)->constant() == *value);
    }
  }
  // At the top as well.
  const SearchSpace top = {{"uniform", list({0, 1})}};
  CHECK(read_space_well(top.describe().dump()).find("uniform")->constant() == list({0, 1}));
}

TEST_CASE("a function is described without its body") {
  CHECK(sample_from([](const Config&) { return Value(1); }).describe().dump() ==
        R"({"sample_from":null})");
}

TEST_CASE("domains are one-key maps, anything else is a constant") {
  const SearchSpace space = read_space_well(
      R"({"lr":{"loguniform":[0.001,1]},"n":{"randn":[]},"q":{"qrandint":[0,4]},"batch":64,
          "model":{"act":{"choice":["relu","tanh"]},"drop":0.5},"two":{"uniform":[0,1],"x":1},
          "c":{"const":{"layers":[1,2]}},"widths":[1,2]})");
  CHECK(space.find("lr")->is_domain());
  CHECK(space.find("n")->domain().describe().dump() == R"({"randn":[0.0,1.0]})");
  CHECK(space.find("q")->domain().describe().dump() == R"({"qrandint":[0,4,1]})");
  CHECK(space.find("model/act")->is_domain());
  CHECK(space.find("model/drop")->constant() == Value(0.5));
  CHECK(space.find("two/uniform")->constant() == list({0, 1}));
  CHECK(space.find("c/layers")->constant() == list({1, 2}));
  CHECK(space.find("widths")->constant() == list({1, 2}));
  // The top is always the configuration itself.
  CHECK(read_space_well(R"({"layers":[1,2]})").find("layers")->constant() == list({1, 2}));
  CHECK(read_space_well(R"({"min":0,"max":1})").find("max")->constant() == Value(1));
}

TEST_CASE("what is not a domain is told with path and remedy") {
  struct Case {
    const char* value;  // of model/x
    std::vector<const char*> parts;
  };
  const Case cases[] = {
      {R"({"unifrom":[0,1]})",
       {"'unifrom'", "did you mean 'uniform'", R"({const: {"unifrom":[0,1]}})"}},
      {R"({"log_uniform":[1,2]})", {"did you mean 'loguniform'"}},
      {R"({"layers":[64,64]})",
       {"'layers'", "uniform, quniform", R"({const: {"layers":[64,64]}})"}},
      {R"({"uniform":[0]})", {"uniform takes [low, high], found [0]"}},
      {R"({"uniform":[0,1,2]})", {"uniform takes [low, high]"}},
      {R"({"uniform":3})", {"uniform takes [low, high], found 3"}},
      {R"({"uniform":{"min":0,"max":1}})", {"uniform takes [low, high], found {"}},
      {R"({"uniform":["a",1]})", {"uniform", "numbers", "\"a\""}},
      {R"({"uniform":[1,0]})", {"uniform(1, 0)", "below"}},
      {R"({"loguniform":[0,1]})", {"loguniform(0, 1)", "above 0"}},
      {R"({"quniform":[0,1]})", {"quniform takes [low, high, q]"}},
      {R"({"randint":[0,1.5]})", {"randint", "whole numbers", "1.5"}},
      {R"({"randint":[0,4.0]})", {"whole numbers", "4.0"}},
      {R"({"choice":"relu"})", {"choice takes a list of values, found \"relu\""}},
      {R"({"grid_search":[]})", {"grid_search takes a list of values, found []"}},
      {R"({"sample_from":null})", {"sample_from", "C++"}},
      {R"({"min":0,"max":1})", {"`x: {uniform: [0, 1]}`", "`{qrandint: [0, 1]}`", "const"}},
      {R"({"min":0.0,"max":1})", {"`x: {uniform: [0.0, 1]}`"}},
      {R"({"min":1,"max":9,"q":2})", {"`x: {quniform: [1, 9, 2]}`"}},
      {R"({"min":0.001,"max":1,"log":true})", {"`x: {loguniform: [0.001, 1]}`"}},
      {R"({"values":[1,2]})", {"`x: {choice: [1,2]}`", "`{grid_search: [1,2]}`"}},
      {R"({"values":[1],"distribution":"categorical"})", {"{choice: [1]}"}},
      {R"({"distribution":"uniform","min":0,"max":1})", {"`x: {uniform: [0, 1]}`"}},
      {R"({"distribution":"int_uniform","min":0,"max":8})", {"`x: {qrandint: [0, 8]}`"}},
      {R"({"distribution":"log_uniform_values","min":0.01,"max":1})",
       {"`x: {loguniform: [0.01, 1]}`"}},
      // Exponents of e elsewhere, values here: e^0 and e^1.
      {R"({"distribution":"log_uniform","min":0,"max":1})", {"`x: {loguniform: [1, 2.718]}`"}},
      {R"({"distribution":"normal","mu":0,"sigma":2})", {"`x: {randn: [0, 2]}`"}},
      {R"({"distribution":"beta"})", {"{uniform: [low, high]}"}},
      {R"({"randint":[1,9],"uniform":[0,1]})",
       {"randint and uniform stand in one map", R"({const: {"randint":[1,9],"uniform":[0,1]}})"}},
      {R"({"uniform":[1,0],"n":3,"choice":[7]})", {"uniform and choice stand in one map"}},
      {R"([1,{"uniform":[0,1]}])",
       {"a domain within a list is not drawn", R"({const: [1,{"uniform":[0,1]}]})"}},
      {R"([{"a":[{"choice":[1,2]}]}])", {"a domain within a list is not drawn"}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.value);
    std::vector<SpaceComplaint> complaints;
    read_space(R"({"model":{"x":)" + std::string(one.value) + R"(,"y":1},"lr":2})", complaints);
    REQUIRE(complaints.size() == 1);
    CHECK(complaints[0].path == "model/x");
    for (const char* part : one.parts) CHECK_HAS(complaints[0].message, part);
    // The same for one value that is set on its own.
    std::vector<SpaceComplaint> alone;
    search_node_from_value(parse_json(one.value, "t"), "model/x", alone);
    REQUIRE(alone.size() == 1);
    CHECK(alone[0].message == complaints[0].message);
  }
}

TEST_CASE("what only resembles two domains, or a domain in a list, is a constant") {
  for (const char* text :
       {R"({"uniform":[0,1],"randint":[1,9,2]})", R"({"uniform":[0,1],"randn":"wide"})",
        R"({"uniform":[0,1],"p":0.5})", R"({"const":{"uniform":[0,1],"randint":[1,9]}})",
        R"([1,{"uniform":3}])", R"([[1,2],{"kernel":[3,3]}])", R"([{"uniform":[0,1],"p":1}])",
        R"({"const":[1,{"uniform":[0,1]}]})"}) {
    CAPTURE(text);
    const SearchSpace space = read_space_well(R"({"m":{"x":)" + std::string(text) + R"(,"y":1}})");
    CHECK(space.domains().empty());
    const Value value = parse_json(text, "t");
    CHECK(space.frame().at("m/x") == (value.contains("const") ? value.at("const") : value));
    CHECK(read_space_well(space.describe().dump()).frame() == space.frame());
  }
  // Values of a grid are constants.
  CHECK(read_space_well(R"({"x":{"grid_search":[[{"uniform":[0,1]}],3]}})").domains().size() == 1);
}

TEST_CASE("a stored space is what it was read as, also where it is refused now") {
  const std::string text =
      R"({"a":{"randint":[1,9],"uniform":[0,1]},"b":[1,{"uniform":[0,1]}],)"
      R"("c":{"choice":[[1,{"uniform":[0,1]}],3]},"d":{"choice":[{"x":{"uniform":[0,1]}},)"
      R"([{"uniform":[0,1]}],{"randint":[1,9],"uniform":[0,1]}]}})";
  std::vector<SpaceComplaint> complaints;
  read_space(text, complaints);
  std::vector<std::string> paths;
  for (const SpaceComplaint& one : complaints) paths.push_back(one.path);
  CHECK(paths == std::vector<std::string>{"a", "b", "c/choice/0", "d/choice/1"});
  complaints.clear();
  const Value stored = parse_json(text, "test");
  const SearchSpace space = search_space_from_value(stored, complaints, {.is_stored = true});
  CHECK(complaints.empty());
  CHECK(space.frame().at("a") == stored.at("a"));
  CHECK(space.frame().at("b") == stored.at("b"));
  CHECK(space.domains()[0].second->describe().at("choice").list().size() == 2);
  // As it is stored now, every reader takes it.
  const SearchSpace again = read_space_well(space.describe().dump());
  CHECK(again.frame() == space.frame());
  CHECK(again.describe() == space.describe());
  const auto* plain = std::get_if<Domain::Choice>(&again.domains()[0].second->kind());
  REQUIRE(plain != nullptr);
  CHECK(plain->values[0] == stored.at("c/choice").list()[0]);
  const auto* mixed = again.domains()[1].second->conditional();
  REQUIRE(mixed != nullptr);
  CHECK(mixed->values[1] == stored.at("d/choice").list()[1]);
  CHECK(mixed->values[2] == stored.at("d/choice").list()[2]);
}

TEST_CASE("all complaints come at once") {
  std::vector<SpaceComplaint> complaints;
  read_space(R"({"a":{"unifrom":[0,1]},"m":{"b":{"uniform":[1,0]},"c":{"min":0,"max":1}},"d":1})",
             complaints);
  std::vector<std::string> paths;
  for (const SpaceComplaint& one : complaints) paths.push_back(one.path);
  CHECK(paths == std::vector<std::string>{"a", "m/b", "m/c"});
}

TEST_CASE("maps with other keys beside those of other tools are plain maps") {
  const SearchSpace space = read_space_well(
      R"({"noise":{"distribution":"normal","hidden":3},"clip":{"min":0,"max":1,"mode":"soft"},
          "one":{"value":3},"range":{"min":0}})");
  CHECK(space.find("noise/hidden")->constant() == Value(3));
  CHECK(space.find("clip/mode")->constant() == Value("soft"));
  CHECK(space.find("one/value")->constant() == Value(3));
  CHECK(space.find("range/min")->constant() == Value(0));
}

}  // namespace
}  // namespace tune
