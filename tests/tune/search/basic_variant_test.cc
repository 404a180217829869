#include "tune/search/basic_variant.h"

#include <doctest/doctest.h>

#include <set>

#include "core/json.h"
#include "core/refusal.h"
#include "tune/testing/searcher_conformance.h"

namespace tune {
namespace {

using testing::refusal;

std::unique_ptr<Searcher> make_searcher(SearcherSetup setup, BasicVariantOptions options = {}) {
  auto searcher = basic_variant(options).make();
  searcher->configure(setup);
  return searcher;
}

std::vector<Config> configs_of(Searcher& searcher, std::uint32_t most = 1000) {
  std::vector<Config> configs;
  for (std::uint32_t i = 0; i < most; ++i) {
    auto config = searcher.suggest(TrialNumber{i});
    if (!config) break;
    configs.push_back(std::move(*config));
  }
  return configs;
}

std::vector<std::string> texts_of(SearcherSetup setup, BasicVariantOptions options = {}) {
  std::vector<std::string> texts;
  for (const Config& config : configs_of(*make_searcher(std::move(setup), options))) {
    texts.push_back(config.dump());
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("basic_variant keeps to what every searcher keeps to") {
  const SearchSpace space = {{"lr", loguniform(1e-4, 1e-1)},
                             {"model", {{"layers", grid_search({1, 2, 3})}, {"width", 64}}},
                             {"twice", sample_from([](const Config& config) {
                                return Value(2 * config.get<int>("model/layers"));
                              })}};
  SearcherSetup setup = {space, 3, {}, {"loss", Mode::kMin, 7}};
  testing::check_searcher([] { return basic_variant().make(); }, setup);
  testing::check_searcher([] { return basic_variant({.constant_grid_search = true}).make(); },
                          setup);
  setup.points_to_evaluate = {{{"lr", 0.5}}, {{"model", {{"layers", 9}}}}};
  testing::check_searcher([] { return basic_variant().make(); }, setup);
}

TEST_CASE("grids are sorted by path and the first varies fastest") {
  // Written in another order than sorted.
  CHECK(texts_of({{{"b", grid_search({1, 2})}, {"a", grid_search({"x", "y"})}}}) ==
        Texts{R"({"b":1,"a":"x"})", R"({"b":1,"a":"y"})", R"({"b":2,"a":"x"})",
              R"({"b":2,"a":"y"})"});
  const Texts nested =
      texts_of({{{"z", grid_search({1, 2})},
                 {"m", {{"b", grid_search({1, 2})}, {"a", grid_search({1, 2})}}}}});
  REQUIRE(nested.size() == 8);  // m/a, m/b, z
  CHECK(nested[1] == R"({"z":1,"m":{"b":1,"a":2}})");
  CHECK(nested[2] == R"({"z":1,"m":{"b":2,"a":1}})");
  CHECK(nested[4] == R"({"z":2,"m":{"b":1,"a":1}})");
}

TEST_CASE("the whole grid comes for sample 1, then for sample 2") {
  SearcherSetup setup = {{{"a", grid_search({1, 2, 3})}}, 2, {}, {}};
  CHECK(texts_of(setup) ==
        Texts{R"({"a":1})", R"({"a":2})", R"({"a":3})", R"({"a":1})", R"({"a":2})", R"({"a":3})"});
  CHECK(make_searcher(setup)->total() == 6);
}

TEST_CASE("random values are drawn anew for every cell, or once a sample when asked") {
  const SearcherSetup setup = {{{"a", grid_search({1, 2, 3})}, {"x", uniform(0, 1)}}, 2, {}, {}};
  const auto distinct = [&](BasicVariantOptions options) {
    std::vector<double> draws;
    for (const Config& config : configs_of(*make_searcher(setup, options))) {
      draws.push_back(config.get<double>("x"));
    }
    CHECK(draws.size() == 6);
    return draws;
  };
  const auto anew = distinct({});
  CHECK(std::set<double>(anew.begin(), anew.end()).size() == 6);
  const auto constant = distinct({.constant_grid_search = true});
  CHECK(std::set<double>(constant.begin(), constant.end()).size() == 2);
  CHECK(constant[0] == constant[2]);
  CHECK(constant[3] == constant[5]);
}

TEST_CASE("without grid there is one trial a sample, without domains all are alike") {
  CHECK(texts_of({{{"x", 1}, {"m", {{"y", "z"}}}}, 2, {}, {}}) ==
        Texts{R"({"x":1,"m":{"y":"z"}})", R"({"x":1,"m":{"y":"z"}})"});
  CHECK(texts_of({{}, 1, {}, {}}) == Texts{"{}"});
}

TEST_CASE("presets replace the first samples and leave the grid of the keys they set") {
  // Grid a of 2, b random, 4 samples, presets {a, b} {a} {b}: 1 + 1 + 2 + 2 = 6 trials.
  const SearcherSetup setup = {{{"a", grid_search({1, 2})}, {"b", uniform(0, 1)}},
                               4,
                               {{{"a", 2}, {"b", 0.5}}, {{"a", 1}}, {{"b", 0.25}}},
                               {}};
  const auto searcher = make_searcher(setup);
  CHECK(searcher->total() == 6);
  const auto configs = configs_of(*searcher);
  REQUIRE(configs.size() == 6);
  CHECK(configs[0].dump() == R"({"a":2,"b":0.5})");
  CHECK(configs[1].get<int>("a") == 1);
  CHECK(configs[2].dump() == R"({"a":1,"b":0.25})");
  CHECK(configs[3].dump() == R"({"a":2,"b":0.25})");
  CHECK(configs[4].get<int>("a") == 1);
  CHECK(configs[5].get<int>("a") == 2);
  std::set<double> drawn;
  for (const int i : {1, 4, 5}) drawn.insert(configs[static_cast<std::size_t>(i)].get<double>("b"));
  CHECK(drawn.size() == 3);
  CHECK_FALSE(drawn.contains(0.5));
}

TEST_CASE("a preset replaces constants, nested values, whole values of a choice and functions") {
  SearcherSetup setup = {
      {{"batch", 64},
       {"opt", choice({{{"name", "sgd"}, {"momentum", 0.9}}, {{"name", "adam"}}})},
       {"model", {{"width", randint(1, 9)}, {"depth", 3}}},
       {"f", sample_from([](const Config&) -> Value { throw std::runtime_error("called"); })}},
      1,
      {{{"batch", 32}, {"opt", {{"name", "lion"}}}, {"model", {{"width", 5}}}, {"f", 1}}},
      {}};
  CHECK(texts_of(setup) ==
        Texts{R"({"batch":32,"opt":{"name":"lion"},"model":{"width":5,"depth":3},"f":1})"});
}

TEST_CASE("numbers of a preset have the types that the space draws") {
  const SearchSpace options =
      choice({{{"kind", 1}, {"n", randint(0, 9)}}, {{"kind", 2}, {"n", uniform(0, 9)}}, "none"});
  const SearchSpace space = {{"n", randint(1, 9)},
                             {"x", uniform(0, 9)},
                             {"width", choice({8, 16})},
                             {"drop", choice({0.5, 1.0})},
                             {"cell", grid_search({1, 2})},
                             {"batch", 64},
                             {"decay", 0.5},
                             {"opt", options}};
  const Config preset = {
      {"n", 3.0},    {"x", 3},        {"width", 8.0}, {"drop", 1},
      {"cell", 2.0}, {"batch", 32.0}, {"decay", 1},   {"opt", {{"kind", 1.0}, {"n", 4.0}}}};
  CHECK(texts_of({space, 1, {preset}, {}}) ==
        Texts{R"({"n":3,"x":3.0,"width":8,"drop":1.0,"cell":2,"batch":32,"decay":1.0,)"
              R"("opt":{"kind":1,"n":4}})"});
  // What is no whole number stays, and what no float can be.
  CHECK(texts_of({{{"n", randint(1, 9)}, {"x", randn(0, 1)}},
                  1,
                  {{{"n", 2.5}, {"x", (std::int64_t{1} << 60) + 1}}},
                  {}}) == Texts{R"({"n":2.5,"x":1152921504606846977})"});
}

TEST_CASE("presets that do not fit the space are refused with their place") {
  const auto refused = [](Config preset, std::int64_t num_samples = 1) {
    return refusal([&] {
      make_searcher(
          {{{"lr", uniform(0, 1)}, {"model", {{"layers", 2}}}}, num_samples, {preset, preset}, {}});
    });
  };
  CHECK_HAS(refused({{"rl", 0.5}}, 2), "points_to_evaluate/0: there is no 'rl' in config");
  CHECK_HAS(refused({{"model", {{"layer", 3}}}}, 2),
            "no 'model/layer' in config (did you mean 'layers'?)");
  CHECK_HAS(refused({{"model", 3}}, 2), "'model' is a map in config, found 3");
  CHECK_HAS(refused({{"lr", 0.5}}, 1), "2 configurations do not fit into num_samples 1");
}

TEST_CASE("without end there is no total, and suggestions go on") {
  const auto searcher =
      make_searcher({{{"a", grid_search({1, 2})}, {"x", uniform(0, 1)}}, -1, {{{"a", 7}}}, {}});
  CHECK_FALSE(searcher->total().has_value());
  CHECK(searcher->suggest(TrialNumber{0})->get<int>("a") == 7);
  CHECK(searcher->suggest(TrialNumber{UINT32_MAX})->get<int>("a") == 1);  // (2^32 - 2) % 2
  CHECK(searcher->suggest(TrialNumber{UINT32_MAX - 1})->get<int>("a") == 2);
}

TEST_CASE("a huge grid costs nothing until it is more than trials can be numbered") {
  std::vector<SpaceMember> members;
  SearchSpace space;
  for (int i = 0; i < 31; ++i) space.set("k" + std::to_string(10 + i), grid_search({0, 1}));
  const auto searcher = make_searcher({space, 1, {}, {}});
  CHECK(searcher->total() == 1ULL << 31);
  // The bits of the trial number, the first key varies fastest: 5 is 101.
  const Config config = *searcher->suggest(TrialNumber{5});
  CHECK(config.get<int>("k10") == 1);
  CHECK(config.get<int>("k11") == 0);
  CHECK(config.get<int>("k12") == 1);
  CHECK(config.get<int>("k40") == 0);
  CHECK(searcher->suggest(TrialNumber{(1u << 31) - 1})->get<int>("k40") == 1);
  CHECK_HAS(refusal([&] { make_searcher({space, 2, {}, {}}); }), "more than 4294967295 trials");
  for (int i = 0; i < 200; ++i) space.set("l" + std::to_string(i), grid_search({0, 1}));
  CHECK_HAS(refusal([&] { make_searcher({space, -1, {}, {}}); }), "choice instead of grid_search");
}

TEST_CASE("the draws of a trial depend on seed and number only") {
  const SearchSpace space = {{"lr", loguniform(1e-4, 1)}, {"n", randint(0, 1 << 30)}};
  const auto config_of = [&](std::uint64_t seed, std::uint32_t trial, std::int64_t samples) {
    return make_searcher({space, samples, {}, {"loss", Mode::kMin, seed}})
        ->suggest(TrialNumber{trial})
        ->dump();
  };
  // Asked alone or after others, of few samples or many, whatever the metric.
  const auto whole = texts_of({space, 50, {}, {"accuracy", Mode::kMax, 3}});
  for (const std::uint32_t trial : {0u, 7u, 49u}) {
    CHECK(config_of(3, trial, 50) == whole[trial]);
    CHECK(config_of(3, trial, -1) == whole[trial]);
    CHECK(config_of(4, trial, 50) != whole[trial]);
  }
  CHECK(std::set<std::string>(whole.begin(), whole.end()).size() == 50);
}

TEST_CASE("a key more or a preset changes no other draw") {
  const auto lr = [](SearcherSetup setup) {
    return make_searcher(std::move(setup))->suggest(TrialNumber{3})->get<double>("lr");
  };
  const double drawn = lr({{{"lr", uniform(0, 1)}, {"n", uniform(0, 1)}}, 5, {}, {}});
  CHECK(lr({{{"a", uniform(0, 1)}, {"lr", uniform(0, 1)}}, 5, {}, {}}) == drawn);
  CHECK(lr({{{"n", uniform(0, 1)}, {"lr", uniform(0, 1)}}, 5, {{{"lr", 0.5}}}, {}}) == drawn);
  const Config both = *make_searcher({{{"lr", uniform(0, 1)}, {"n", uniform(0, 1)}}, 1, {}, {}})
                           ->suggest(TrialNumber{0});
  CHECK(both.get<double>("lr") != both.get<double>("n"));
}

// ---- Functions ----------------------------------------------------------------------------------

Value plus(const Config& config, const char* path, int more) {
  return config.get<int>(path) + more;
}

TEST_CASE("functions see drawn, constant and grid values, and each other whatever their order") {
  const SearchSpace space = {
      {"first", sample_from([](const Config& c) { return plus(c, "model/second", 1); })},
      {"model",
       {{"second", sample_from([](const Config& c) { return plus(c, "third", 10); })},
        {"width", 4}}},
      {"third", sample_from([](const Config& c) {
         return Value(c.get<int>("g") * 100 + c.get<int>("model/width") + (c.get<double>("x") < 2));
       })},
      {"g", grid_search({1, 2})},
      {"x", uniform(0, 1)}};
  const auto configs = configs_of(*make_searcher({space, 1, {}, {}}));
  REQUIRE(configs.size() == 2);
  CHECK(configs[0].get<int>("third") == 105);
  CHECK(configs[0].get<int>("model/second") == 115);
  CHECK(configs[0].get<int>("first") == 116);
  CHECK(configs[1].get<int>("first") == 216);
  std::vector<std::string> keys;
  for (const Member& member : configs[0].map()) keys.push_back(member.key);
  CHECK(keys == std::vector<std::string>{"first", "model", "third", "g", "x"});
}

TEST_CASE("every way to read a value computes it first, and each function is called once") {
  using Read = std::function<Value(const Config&)>;
  const std::pair<const char*, Read> reads[] = {
      {"get_or", [](const Config& c) { return Value(c.get_or("m/late", -1)); }},
      {"contains", [](const Config& c) { return Value(c.contains("m/late") ? 7 : -1); }},
      {"find", [](const Config& c) { return *c.find("m/late"); }},
      {"at", [](const Config& c) { return c.at("m/late"); }},
      {"map above", [](const Config& c) { return Value(c.at("m").get<int>("late")); }},
      {"part", [](const Config& c) { return Value(c.get<Config>("m").get<int>("late")); }},
      {"map", [](const Config& c) { return *c.map()[1].value.find("late"); }},
      {"dump", [](const Config& c) { return Value(parse_json(c.dump(), "t").get<int>("m/late")); }},
      {"leaves", [](const Config& c) { return *c.leaves().back().second; }},
  };
  for (const auto& [what, read] : reads) {
    CAPTURE(what);
    int calls = 0;
    const SearchSpace space = {{"early", sample_from(read)},
                               {"m", {{"late", sample_from([&](const Config&) {
                                         ++calls;
                                         return Value(7);
                                       })}}}};
    const Config config = *make_searcher({space, 1, {}, {}})->suggest(TrialNumber{0});
    CHECK(config.get<int>("early") == 7);
    CHECK(config.get<int>("m/late") == 7);
    CHECK(calls == 1);
  }
}

TEST_CASE("what a function has read stays while others are computed") {
  const SearchSpace space = {{"a", sample_from([](const Config& c) {
                                const Value& model = c.at("model");
                                const std::string before = model.dump();
                                const int late = c.get<int>("late");
                                return Value(before == model.dump() ? late : -1);
                              })},
                             {"model", {{"x", 1}, {"y", "text"}}},
                             {"late", sample_from([](const Config&) { return Value(5); })}};
  CHECK(make_searcher({space, 1, {}, {}})->suggest(TrialNumber{0})->get<int>("a") == 5);
}

TEST_CASE("a function may give a map, which others read into, and read its own neighbours") {
  const SearchSpace space = {
      {"n", sample_from([](const Config& c) { return plus(c, "made/inner", 1); })},
      {"made", sample_from([](const Config&) {
         return Value{{"inner", 4}};
       })},
      {"m",
       {{"own", sample_from([](const Config& c) { return Value(c.at("m").get<int>("x") + 1); })},
        {"x", 2}}}};
  CHECK(make_searcher({space, 1, {}, {}})->suggest(TrialNumber{0})->dump() ==
        R"({"n":5,"made":{"inner":4},"m":{"own":3,"x":2}})");
}

TEST_CASE("a copy of the configuration that a function keeps is an ordinary one") {
  Config kept;
  const SearchSpace space = {{"a", 1},
                             {"f", sample_from([&](const Config& c) {
                                kept = c;
                                return Value(2);
                              })},
                             {"g", sample_from([](const Config&) { return Value(3); })}};
  make_searcher({space, 1, {}, {}})->suggest(TrialNumber{0});
  CHECK(kept.get<int>("a") == 1);
  CHECK(kept.at("g").is_null());  // as it was then
}

TEST_CASE("a cycle of functions is refused with its way round") {
  const auto reads = [](const char* path) {
    return sample_from([path](const Config& c) { return plus(c, path, 1); });
  };
  const auto refused = [](const SearchSpace& space) {
    return refusal([&] { make_searcher({space, 1, {}, {}})->suggest(TrialNumber{0}); });
  };
  CHECK_HAS(refused({{"a", reads("b")}, {"b", reads("a")}}), "a -> b -> a");
  CHECK_HAS(refused({{"a", reads("a")}}), "a -> a");
  // The one that only leads into the cycle is not part of it.
  CHECK_HAS(refused({{"in", reads("m/a")},
                     {"m", {{"a", reads("b")}}},
                     {"b", reads("c")},
                     {"c", reads("m/a")}}),
            ": m/a -> b -> c -> m/a:");
  const auto lenient = [](const char* path) {
    return sample_from([path](const Config& c) { return Value(c.get_or(path, 0)); });
  };
  CHECK_HAS(refused({{"a", lenient("b")}, {"b", lenient("a")}}), "a -> b -> a");
}

TEST_CASE("what goes wrong in a function is told with its path") {
  const auto refused = [](std::function<Value(const Config&)> function) {
    const SearchSpace space = {{"m", {{"f", sample_from(std::move(function))}}},
                               {"g", sample_from([](const Config& c) { return c.at("m/f"); })}};
    return refusal([&] { make_searcher({space, 1, {}, {}})->suggest(TrialNumber{0}); });
  };
  const std::string thrown =
      refused([](const Config&) -> Value { throw std::runtime_error("disk full"); });
  CHECK(thrown == "sample_from of 'm/f' failed: disk full");
  CHECK_HAS(refused([](const Config& c) { return c.at("nothing"); }), "there is no 'nothing'");
}

// ---- The rest -----------------------------------------------------------------------------------

TEST_CASE("a space that is not a map is refused") {
  CHECK_HAS(refusal([] { make_searcher({SearchSpace(uniform(0, 1)), 1, {}, {}}); }), "a map");
  CHECK_HAS(refusal([] { make_searcher({SearchSpace(3), 1, {}, {}}); }), "a map");
}

TEST_CASE("configured again it begins anew") {
  auto searcher = make_searcher({{{"a", grid_search({1, 2})}}, 1, {{{"a", 5}}}, {}});
  searcher->configure({{{"b", grid_search({1, 2, 3})}}, 2, {}, {}});
  CHECK(searcher->total() == 6);
  CHECK(searcher->suggest(TrialNumber{1})->dump() == R"({"b":2})");
}

TEST_CASE("the state of another searcher is refused by name") {
  const auto searcher = make_searcher({{{"a", 1}}, 1, {}, {}});
  PackWriter other;
  other.array(2);
  other.text("annealing");
  other.integer(4);
  CHECK_HAS(refusal([&] { searcher->restore(other.bytes()); }, ErrorCode::kProtocol),
            "'annealing'");
}

TEST_CASE("searchers come by name with their parameters") {
  const SearcherSpec spec = basic_variant({.constant_grid_search = true});
  CHECK(spec.parameters().dump() == R"({"constant_grid_search":true})");
  const SearcherSpec again = searcher_from_config(spec.name(), spec.parameters());
  CHECK(again.parameters() == spec.parameters());
  CHECK_HAS(refusal([] { searcher_from_config("basic_varient", {}); }), "basic_variant");
  const std::string key = refusal([] {
    searcher_from_config("basic_variant", {{"constant_grid", true}});
  });
  CHECK_HAS(key, "'constant_grid'");
  CHECK_HAS(key, "constant_grid_search");
  CHECK_HAS(refusal([] {
              searcher_from_config("basic_variant", {{"constant_grid_search", 1}});
            }),
            "bool");
}

TEST_CASE("random and grid give the lists of basic_variant, and refuse the other one's spaces") {
  const SearchSpace drawn = {{"lr", loguniform(1e-3, 1)}, {"opt", choice({"a", "b"})}};
  SearchSpace both = drawn;
  both.set("layers", grid_search({1, 2, 3}));
  const auto list_of = [](const SearcherSpec& spec, const SearchSpace& space) {
    const auto searcher = spec.make();
    searcher->configure({space, 2, {}, {"loss", Mode::kMin, 7}});
    std::vector<Config> list;
    while (auto config = searcher->suggest({static_cast<std::uint32_t>(list.size())})) {
      list.push_back(std::move(*config));
    }
    return list;
  };
  const SearcherSpec random = searcher_from_config("random", {});
  const SearcherSpec grid = searcher_from_config("grid", {{"constant_grid_search", true}});
  CHECK(random.name() == "random");
  CHECK(grid.name() == "grid");
  CHECK(list_of(random, drawn).size() == 2);
  CHECK(list_of(random, drawn) == list_of(basic_variant(), drawn));
  CHECK(list_of(grid, both).size() == 6);
  CHECK(list_of(grid, both) == list_of(basic_variant({.constant_grid_search = true}), both));
  CHECK_HAS(refusal([&] { list_of(random, both); }, ErrorCode::kBadInput),
            "searcher random: config has a grid_search");
  CHECK_HAS(refusal([&] { list_of(grid, drawn); }, ErrorCode::kBadInput),
            "searcher grid: config has no grid_search");
  CHECK_HAS(refusal([] {
              searcher_from_config("random", {{"seed", 1}});
            }),
            "there is no parameter 'seed': it has none");
  SearcherSetup setup = {drawn, 6, {}, {"loss", Mode::kMin, 7}};
  testing::check_searcher([] { return random_search().make(); }, setup);
  setup.space = both;
  testing::check_searcher([] { return every_cell().make(); }, setup);
}

}  // namespace
}  // namespace tune
