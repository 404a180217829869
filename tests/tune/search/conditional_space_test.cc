// Choices whose options hold domains: written, described, drawn, and as coordinates.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "core/json.h"
#include "core/refusal.h"
#include "tune/search/basic_variant.h"
#include "tune/search/encoding.h"
#include "tune/testing/searcher_conformance.h"

namespace tune {
namespace {

using testing::refusal;

constexpr std::uint64_t kSeed = 13;  // of every random test here

SearchSpace read(const std::string& json, std::vector<SpaceComplaint>& complaints,
                 const SpaceReading& reading = {}) {
  return search_space_from_value(parse_json(json, "test"), complaints, reading);
}

SearchSpace read_well(const std::string& json) {
  std::vector<SpaceComplaint> complaints;
  SearchSpace space = read(json, complaints);
  for (const SpaceComplaint& one : complaints) FAIL_CHECK(one.path << ": " << one.message);
  return space;
}

// A choice within an option, a plain option, one key in two options, constants and a function.
SearchSpace optimisers() {
  return {
      {"lr", loguniform(1e-4, 1)},
      {"optimiser",
       choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}, {"nesterov", choice({true, false})}},
               {{"kind", "adam"},
                {"beta", choice({0.9, 0.99})},
                {"warmup", choice({"none", {{"steps", randint(1, 100)}, {"from", uniform(0, 1)}}})},
                {"half", sample_from([](const Config& config) {
                   return Value(config.get<double>("optimiser/beta") / 2);
                 })}},
               {{"kind", "lars"}, {"momentum", uniform(0, 1)}},
               "none"})},
      {"epochs", 3}};
}

std::unique_ptr<Searcher> conditional_searcher(SearcherSetup setup) {
  auto searcher = basic_variant().make();
  searcher->configure(setup);
  return searcher;
}

std::vector<Config> configs_of(const SearchSpace& space, std::int64_t count,
                               std::vector<Config> points = {}) {
  const auto searcher =
      conditional_searcher({space, count, std::move(points), {"", Mode::kMax, kSeed}});
  std::vector<Config> configs;
  while (auto config = searcher->suggest({static_cast<std::uint32_t>(configs.size())})) {
    configs.push_back(std::move(*config));
  }
  return configs;
}

std::string kind_of(const Config& config) {
  const Value& taken = config.at("optimiser");
  return taken.is_map() ? taken.get<std::string>("kind") : taken.as<std::string>();
}

// ---- Writing ------------------------------------------------------------------------------------

TEST_CASE("options that hold domains are placed below their choice, others are as they were") {
  const SearchSpace space = optimisers();
  std::vector<std::string> paths;
  for (const auto& [path, domain] : space.domains()) paths.push_back(path);
  CHECK(paths == std::vector<std::string>{"lr", "optimiser"});
  paths.clear();
  for (const PlacedDomain& placed : space.placed_domains()) {
    paths.push_back(placed.path);
    if (!placed.condition) continue;
    paths.back() += " " + std::to_string(placed.condition->choice) + "." +
                    std::to_string(placed.condition->option);
  }
  CHECK(paths == std::vector<std::string>{
                     "lr", "optimiser", "optimiser/momentum 1.0", "optimiser/nesterov 1.0",
                     "optimiser/beta 1.1", "optimiser/warmup 1.1", "optimiser/warmup/steps 5.1",
                     "optimiser/warmup/from 5.1", "optimiser/half 1.1", "optimiser/momentum 1.2"});
  CHECK(space.searched_paths() ==
        std::vector<std::string>{"lr", "optimiser", "optimiser/kind", "optimiser/momentum",
                                 "optimiser/nesterov", "optimiser/beta", "optimiser/warmup",
                                 "optimiser/warmup/steps", "optimiser/warmup/from",
                                 "optimiser/half"});
  CHECK(space.value_paths().back() == "epochs");
  CHECK(space.nodes_at("optimiser/momentum").size() == 2);
  CHECK(space.nodes_at("optimiser/kind").size() == 3);
  CHECK(space.nodes_at("optimiser/warmup/from").size() == 1);
  CHECK(space.nodes_at("optimiser/gamma").empty());
  // Maps without a domain are plain values.
  const SearchSpace plain = {{"net", choice({{{"layers", list({64, 64})}}, {{"depth", 3}}})}};
  CHECK(plain.domains().front().second->conditional() == nullptr);
  CHECK(plain.searched_paths() == std::vector<std::string>{"net"});
  CHECK(plain.nodes_at("net/depth").size() == 1);
}

TEST_CASE("a described space with conditions reads back as the same space") {
  const SearchSpace spaces[] = {
      {{"optimiser",
        choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}},
                {{"kind", "adam"}, {"x", choice({1, {{"y", randint(0, 3)}}})}},
                {{"layers", list({64, 64})}},
                {{"const", 3}},
                {{"like", list({Value{{"uniform", list({0, 1})}}})}, {"x", uniform(0, 1)}},
                {{"range", {{"min", 0}, {"max", 1}}}, {"z", randn()}},
                list({Value{{"uniform", list({0, 1})}}}),
                nullptr,
                "none"})}},
      // Options that only look as if they held domains.
      {{"a", choice({Value{{"init", {{"uniform", list({0, 1})}}}}, Value{{"layers", list({1})}},
                     Value{{"const", 3}}, Value(4)})}},
      {{"a", choice({Value{{"const", 3}}, Value(4)})}},
      {{"a",
        choice({list({1, Value{{"uniform", list({0, 1})}}}), Value{{"const", 3}}, Value(4)})}}};
  for (const SearchSpace& space : spaces) {
    const Value described = space.describe();
    CAPTURE(described.dump());
    const SearchSpace again = read_well(described.dump());
    CHECK(again.describe() == described);
    CHECK(again.frame() == space.frame());
    const auto first = configs_of(space, 50);
    const auto second = configs_of(again, 50);
    REQUIRE(first.size() == second.size());
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i] == second[i]);
  }
}

TEST_CASE("options without a domain are read as the constants that they are") {
  // Also what would be an odd spelling in a space, or a slip.
  const std::string text =
      R"({"net":{"choice":[{"net":{"layers":[64,64]}},{"init":{"uniform":0.1}},{"const":3},)"
      R"({"range":{"min":0,"max":1}},{"momentum":{"unifrom":[0,1]}}]}})";
  const SearchSpace space = read_well(text);
  CHECK(space.domains().front().second->conditional() == nullptr);
  CHECK(space.describe().dump() == text);
}

TEST_CASE("spaces of before options could hold domains are read as they were meant") {
  std::vector<SpaceComplaint> complaints;
  const SearchSpace space =
      read(R"({"o":{"choice":[{"kind":"sgd","momentum":{"uniform":[0,1]}},{"const":3}]}})",
           complaints, {.constant_options = true});
  CHECK(complaints.empty());
  CHECK(space.domains().front().second->conditional() == nullptr);
  const SearchSpace again = read_well(space.describe().dump());
  CHECK(again.frame() == space.frame());
  const Config config = configs_of(again, 4).front();
  CHECK((config.at("o") == Value{{"const", 3}} ||
         config.at("o") == Value{{"kind", "sgd"}, {"momentum", {{"uniform", list({0, 1})}}}}));
}

TEST_CASE("what cannot be in an option is refused with the place in it") {
  const auto complaint = [](const std::string& options) {
    std::vector<SpaceComplaint> complaints;
    read(R"({"m":{"o":{"choice":)" + options + "}}}", complaints);
    REQUIRE(complaints.size() == 1);
    return complaints[0].path + ": " + complaints[0].message;
  };
  CHECK_HAS(complaint(R"([1,{"kind":"a","x":{"grid_search":[1,2]}}])"),
            "m/o/choice/1/x: there is no grid_search within an option of a choice");
  CHECK_HAS(complaint(R"([{"kind":"a","l":[{"uniform":[0,1]},3]}])"),
            "m/o/choice/0/l: a domain within a list is not drawn: give it a key of its own");
  CHECK_HAS(complaint(R"([[1,{"uniform":[0,1]}],3])"),
            "m/o/choice/0: a domain within a list is not drawn: give it a key of its own");
  CHECK_HAS(complaint(R"([{"x":{"uniform":[0,1]}},[{"randint":[1,3]}]])"),
            R"(m/o/choice/1: a domain within a list is not drawn)");
  CHECK_HAS(complaint(R"([{"x":{"uniform":[0,1]}},{"randint":[1,3],"uniform":[0,1]}])"),
            "m/o/choice/1: randint and uniform stand in one map");
  CHECK_HAS(complaint(R"([0,{"uniform":[0.1,0.5]}])"),
            "m/o/choice/1: an option is a value, or a map of keys that may hold domains");
  CHECK_HAS(complaint(R"([{"x":{"uniform":[0,1]}},{"y":{"unifrom":[0,1]}}])"),
            "m/o/choice/1/y: there is no domain 'unifrom' (did you mean 'uniform'?)");
  CHECK_HAS(complaint(R"([{"x":{"uniform":[1,0]}}])"), "m/o/choice/0/x: uniform(1, 0)");
  CHECK_HAS(complaint(R"([{"x":{"choice":[{"y":{"grid_search":[1]}}]}}])"),
            "m/o/choice/0/x/choice/0/y: there is no grid_search");
  CHECK_HAS(complaint(R"([{"x":{"sample_from":null}}])"), "it is for C++ programs only");
  CHECK_HAS(refusal([] {
              choice({uniform(0, 1), 3});
            }),
            R"(the option {"uniform":[0.0,1.0]} is a domain by itself)");
  CHECK_HAS(refusal([] {
              choice({{{"m", {{"x", grid_search({1, 2})}}}}});
            }),
            "'m/x' of the option");
}

TEST_CASE("a key within options is set in those that have it") {
  SearchSpace space = optimisers();
  space.set("optimiser/momentum", 0.5);
  space.set("optimiser/warmup/steps", randint(7, 8));
  CHECK(space.nodes_at("optimiser/momentum").size() == 2);
  for (const Config& config : configs_of(space, 60)) {
    CHECK(config.get_or("optimiser/momentum", 0.5) == 0.5);
    CHECK(config.get_or("optimiser/warmup/steps", 7) == 7);
    CHECK(config.contains("optimiser/momentum") ==
          (kind_of(config) == "sgd" || kind_of(config) == "lars"));
  }
  CHECK_HAS(refusal([&] { space.set("optimiser/momentun", 1); }),
            "no option of 'optimiser' has it (did you mean 'optimiser/momentum'?)");
  CHECK_HAS(refusal([&] { space.set("optimiser/momentum", grid_search({1})); }), "grid_search");
  CHECK_HAS(refusal([&] { space.set("lr/x", 1); }), "'lr' is not a map");
}

// ---- Draws --------------------------------------------------------------------------------------

TEST_CASE("a configuration has what its option has, and options are even") {
  std::map<std::string, int> kinds;
  int warm = 0;
  for (const Config& config : configs_of(optimisers(), 4000)) {
    const std::string kind = kind_of(config);
    ++kinds[kind];
    CHECK(config.contains("optimiser/momentum") == (kind == "sgd" || kind == "lars"));
    CHECK(config.contains("optimiser/nesterov") == (kind == "sgd"));
    CHECK(config.contains("optimiser/warmup") == (kind == "adam"));
    CHECK(config.contains("optimiser/half") == (kind == "adam"));
    if (kind == "adam") {
      CHECK(config.get<double>("optimiser/half") == config.get<double>("optimiser/beta") / 2);
      warm += config.contains("optimiser/warmup/steps");
      CHECK(config.contains("optimiser/warmup/steps") == config.contains("optimiser/warmup/from"));
    }
    CHECK(config.get<int>("epochs") == 3);
    for (const auto& [path, value] : config.leaves()) CHECK_FALSE(value->is_null());
  }
  REQUIRE(kinds.size() == 4);
  // 1000 expected of each; five standard deviations, sqrt(4000 x 1/4 x 3/4) = 27.4, are 137.
  for (const auto& [kind, count] : kinds) CHECK(std::abs(count - 1000) < 137);
  CHECK(std::abs(2 * warm - kinds["adam"]) < 5 * 35);  // sqrt(1000) = 32
}

TEST_CASE("basic_variant keeps its promises with conditions") {
  SearcherSetup setup = {optimisers(), 12, {}, {"loss", Mode::kMin, kSeed}};
  testing::check_searcher([] { return basic_variant().make(); }, setup);
  setup.space.set("g", grid_search({1, 2, 3}));
  setup.points_to_evaluate = {{{"optimiser", {{"kind", "adam"}}}}, {{"g", 2}, {"lr", 0.5}}};
  testing::check_searcher([] { return basic_variant().make(); }, setup);
  testing::check_searcher([] { return basic_variant({.constant_grid_search = true}).make(); },
                          setup);
}

TEST_CASE("a key's value is the same whatever else is searched, within options too") {
  const auto with = [](SearchSpace more) {
    SearchSpace space = optimisers();
    space.set("more", std::move(more));
    return configs_of(space, 200);
  };
  const auto plain = configs_of(optimisers(), 200);
  const auto one_more = with(uniform(0, 1));
  const auto choice_more = with(choice({{{"lr", uniform(0, 1)}}, "x"}));
  SearchSpace fewer = optimisers();
  fewer.set("optimiser", choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}}}));
  const auto of_fewer = configs_of(fewer, 200);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CHECK(plain[i].at("optimiser") == one_more[i].at("optimiser"));
    CHECK(plain[i].at("optimiser") == choice_more[i].at("optimiser"));
    CHECK(plain[i].at("lr") == choice_more[i].at("lr"));
    // With one option less or more, and whichever of two options has the key.
    if (plain[i].contains("optimiser/momentum")) {
      CHECK(plain[i].at("optimiser/momentum") == of_fewer[i].at("optimiser/momentum"));
    }
  }
}

TEST_CASE("sweeps without conditions draw what they always drew") {
  // Drawn by a build of before options could hold domains; floats may differ in the last digit
  // where logarithms are computed elsewhere.
  const SearchSpace space = read_well(
      R"({"a":{"uniform":[0,1]},"b":{"quniform":[0,1,0.25]},"c":{"loguniform":[1e-4,1]},)"
      R"("d":{"qloguniform":[1,8,1]},"e":{"randint":[-3,3]},"f":{"qrandint":[16,256,16]},)"
      R"("g":{"lograndint":[1,1000]},"h":{"randn":[1,2]},"i":{"qrandn":[0,1,0.5]},)"
      R"("optimiser":{"choice":[{"name":"sgd","momentum":0.9},{"name":"adam"},"lion",[1,2]]},)"
      R"("net":{"depth":{"grid_search":[1,2]},"init":{"choice":[{"uniform":0.1},)"
      R"({"normal":0.1},{"layers":[4,4]}]}}})");
  const char* expected[] = {
      R"({"a":0.06865414323798646,"b":0.25,"c":0.23338741141722383,"d":7.0,"e":-2,"f":192,"g":94,"h":0.4299288657194247,"i":-1.0,"optimiser":{"name":"adam"},"net":{"depth":1,"init":{"layers":[4,4]}}})",
      R"({"a":0.9055804870099932,"b":0.75,"c":0.002910648569877399,"d":5.0,"e":-1,"f":112,"g":3,"h":-0.8171597889968774,"i":0.5,"optimiser":{"name":"sgd","momentum":0.9},"net":{"depth":2,"init":{"normal":0.1}}})",
      R"({"a":0.2037072376365593,"b":0.25,"c":0.1948856583932456,"d":2.0,"e":-2,"f":256,"g":4,"h":1.469774237279529,"i":1.0,"optimiser":{"name":"adam"},"net":{"depth":1,"init":{"uniform":0.1}}})",
      R"({"a":0.06471856643791818,"b":0.0,"c":0.05419601872641013,"d":6.0,"e":-3,"f":144,"g":355,"h":1.954056332146929,"i":1.0,"optimiser":"lion","net":{"depth":2,"init":{"normal":0.1}}})",
      R"({"a":0.7602552020501295,"b":0.0,"c":0.21225994523036004,"d":3.0,"e":-2,"f":96,"g":85,"h":-0.10145174553469838,"i":0.5,"optimiser":[1,2],"net":{"depth":1,"init":{"layers":[4,4]}}})",
      R"({"a":0.958128525842952,"b":0.25,"c":0.005330779650426661,"d":3.0,"e":1,"f":64,"g":91,"h":0.803628432178271,"i":-0.5,"optimiser":{"name":"sgd","momentum":0.9},"net":{"depth":2,"init":{"uniform":0.1}}})"};
  const auto searcher = conditional_searcher({space, 3, {}, {"", Mode::kMax, 11}});
  for (std::uint32_t i = 0; i < 6; ++i) {
    const Value wanted = parse_json(expected[i], "test");
    const Config config = *searcher->suggest({i});
    CAPTURE(config.dump());
    const auto found = config.leaves();
    const auto leaves = wanted.leaves();
    REQUIRE(found.size() == leaves.size());
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      CHECK(found[k].first == leaves[k].first);
      if (leaves[k].second->type() == Value::Type::kFloat) {
        CHECK(found[k].second->number() ==
              doctest::Approx(leaves[k].second->number()).epsilon(1e-13));
      } else {
        CHECK(*found[k].second == *leaves[k].second);
      }
    }
  }
}

// ---- Points to evaluate -------------------------------------------------------------------------

TEST_CASE("a point says which option it takes, and what it leaves out is drawn") {
  const std::vector<Config> points = {
      {{"optimiser", {{"kind", "sgd"}, {"momentum", 0.25}}}},
      {{"optimiser", {{"kind", "adam"}, {"warmup", {{"steps", 5}}}}}},
      {{"optimiser", "none"}},
      {{"optimiser", {{"momentum", 0.75}}}},
      {{"lr", 7}}};
  const auto configs = configs_of(optimisers(), 5, points);
  CHECK(configs[0].get<std::string>("optimiser/kind") == "sgd");
  CHECK(configs[0].get<double>("optimiser/momentum") == 0.25);
  CHECK(configs[0].contains("optimiser/nesterov"));
  CHECK(configs[1].get<int>("optimiser/warmup/steps") == 5);
  CHECK(configs[1].contains("optimiser/warmup/from"));
  CHECK(configs[1].contains("optimiser/half"));
  CHECK(configs[2].at("optimiser") == Value("none"));
  CHECK(configs[3].get<double>("optimiser/momentum") == 0.75);
  CHECK(configs[4].get<double>("lr") == 7);
  // Of several options that a point may be, each is drawn.
  std::set<std::string> kinds;
  for (const Config& config : configs_of(optimisers(), 60, std::vector<Config>(60, points[3]))) {
    kinds.insert(kind_of(config));
  }
  CHECK(kinds == std::set<std::string>{"lars", "sgd"});
}

TEST_CASE("a point with a key of another option is refused, naming it") {
  const auto refused = [](const Value& optimiser) {
    return refusal([&] { configs_of(optimisers(), 2, {{}, {{"optimiser", optimiser}}}); });
  };
  CHECK_HAS(refused({{"kind", "sgd"}, {"beta", 0.9}}),
            "points_to_evaluate/1: 'optimiser/beta' is not a key of the option {\"kind\":\"sgd\"");
  CHECK_HAS(refused({{"momentum", 0.5}, {"beta", 0.9}}), "'optimiser/beta' is not a key");
  CHECK_HAS(
      refused({{"kind", "lion"}}),
      "points_to_evaluate/1: 'optimiser' is {\"kind\":\"lion\"}, which none of its options is");
  CHECK_HAS(refused("lion"), "'optimiser' is \"lion\", which none of its options is");
  CHECK_HAS(refused({{"kind", "adam"}, {"warmup", {{"stpes", 3}}}}),
            "'optimiser/warmup/stpes' is not a key of the option");
  CHECK_HAS(refused({{"kind", "adam"}, {"warmup", 3}}),
            "'optimiser/warmup' is 3, which none of its options is");
}

// ---- Coordinates --------------------------------------------------------------------------------

TEST_CASE("a space with conditions has their parameters") {
  const Encoding encoding(optimisers());
  std::vector<std::string> paths;
  for (const Parameter& parameter : encoding.parameters()) paths.push_back(parameter.path);
  CHECK(paths == std::vector<std::string>{"lr", "optimiser", "optimiser/momentum",
                                          "optimiser/nesterov", "optimiser/beta",
                                          "optimiser/warmup", "optimiser/warmup/steps",
                                          "optimiser/warmup/from", "optimiser/momentum"});
  CHECK(encoding.parameters()[2].condition == Condition{1, 0});
  CHECK(encoding.parameters()[6].condition == Condition{5, 1});
  CHECK(encoding.parameters()[8].condition == Condition{1, 2});
  // A single option is always taken: its parameters are always active.
  const Encoding one(SearchSpace{{"k", choice({{{"a", 1}, {"x", uniform(0, 1)}}})}});
  REQUIRE(one.size() == 1);
  CHECK_FALSE(one.parameters()[0].condition.has_value());
  RandomStream random(kSeed, "one", 0);
  const Config config = one.decode(one.draw(random));
  CHECK(config.get<int>("k/a") == 1);
  CHECK(one.encode(config).complaint == "");
}

// A random space, of maps, choices and options within options.
SearchSpace random_map(RandomStream& random, int depth);

SearchSpace random_node(RandomStream& random, int depth) {
  switch (random.integer(0, depth > 0 ? 8 : 5)) {
    case 0:
      return uniform(-1, random.uniform());
    case 1:
      return randint(0, random.integer(1, 5));
    case 2:
      return quniform(0, 1, 0.25);
    case 3:
      return choice({1, "a", 2.5, {{"plain", list({1})}}});
    case 4:
      return random.integer(0, 3);
    case 5:
      return random_map(random, depth - 1);
    default:
      break;
  }
  std::vector<SearchSpace> options;
  for (std::int64_t i = random.integer(1, 4); i > 0; --i) {
    options.push_back(random.uniform() < 0.2 ? SearchSpace(random.integer(0, 1000))
                                             : random_map(random, depth - 1));
  }
  return choice(std::move(options));
}

SearchSpace random_map(RandomStream& random, int depth) {
  SearchSpace map;
  for (std::int64_t i = random.integer(1, 4); i > 0; --i) {
    map.set("k" + std::to_string(random.integer(0, 5)), random_node(random, depth));
  }
  return map;
}

TEST_CASE("configurations of any space lead to points and back, whoever draws them") {
  for (std::uint64_t number = 0; number < 150; ++number) {
    RandomStream random(kSeed, "random space", number);
    const SearchSpace space = random_map(random, 3);
    CAPTURE(number);
    CAPTURE(space.describe().dump());
    CHECK(read_well(space.describe().dump()).describe() == space.describe());
    const Encoding encoding(space);
    const std::vector<std::string> paths = space.value_paths();
    for (int i = 0; i < 20; ++i) {
      const UnitPoint point = encoding.draw(random);
      const Config config = encoding.decode(point);
      CAPTURE(config.dump());
      const Encoded encoded = encoding.encode(config);
      REQUIRE(encoded.complaint == "");
      // Two options may mean the same configuration, but a point means one.
      CHECK(encoding.decode(encoded.point).dump() == config.dump());
      CHECK(encoding.encode(encoding.decode(encoded.point)).point == encoded.point);
      for (const auto& [path, value] : config.leaves()) {
        const bool is_known = std::any_of(
            paths.begin(), paths.end(),
            [&, at = path](const auto& one) { return at == one || at.starts_with(one + "/"); });
        CHECK_MESSAGE(is_known, path);
      }
    }
    for (const Config& config : configs_of(space, 20)) {
      CAPTURE(config.dump());
      const Encoded encoded = encoding.encode(config);
      REQUIRE(encoded.complaint == "");
      std::map<std::string, Value> again;
      const Config decoded = encoding.decode(encoded.point);
      for (const auto& [path, value] : decoded.leaves()) again[path] = *value;
      CHECK(again.size() == config.leaves().size());
      for (const auto& [path, value] : config.leaves()) {
        REQUIRE(again.contains(path));
        if (value->type() == Value::Type::kFloat) {
          CHECK(again[path].number() == doctest::Approx(value->number()).epsilon(1e-9));
        } else {
          CHECK(again[path] == *value);
        }
      }
    }
  }
}

TEST_CASE("of options that only their domains tell apart, the one that draws the value is meant") {
  const SearchSpace space = {
      {"k", choice({{{"x", uniform(0, 1)}}, {{"x", uniform(5, 6)}}, {{"x", choice({"a", "b"})}}})}};
  const Encoding encoding(space);
  for (const auto& [value, option] :
       {std::pair(Value(0.5), 0u), std::pair(Value(5.5), 1u), std::pair(Value("b"), 2u)}) {
    const Encoded encoded = encoding.encode(Config{{"k", Value{{"x", value}}}});
    CHECK(encoded.complaint == "");
    CHECK(encoding.option(0, encoded.point) == option);
  }
  CHECK_HAS(encoding.encode(Config{{"k", {{"x", 3}}}}).complaint, "'k/x' is 3, which");
}

}  // namespace
}  // namespace tune
