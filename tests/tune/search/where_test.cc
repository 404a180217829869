#include "tune/search/where.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/refusal.h"
#include "tune/search/basic_variant.h"
#include "tune/search/encoding.h"
#include "tune/search/halton.h"
#include "tune/search/tried_points.h"
#include "tune/testing/searcher_conformance.h"

namespace tune {
namespace {

using testing::refusal;

constexpr std::uint64_t kWhereSeed = 17;  // of every random test here

// ---- Reading ------------------------------------------------------------------------------------

TEST_CASE("comparisons are computed as they are read anywhere") {
  const Config config = {
      {"x", 2}, {"y", 3.5}, {"m", {{"w", 4}, {"a.b", 1}}}, {"weight-decay", 0.5}};
  struct Case {
    const char* text;
    bool holds;
  };
  const Case cases[] = {{"x < y", true},
                        {"y < x", false},
                        {"x<y", true},
                        {"x <= 2", true},
                        {"x < 2", false},
                        {"x >= 2.0", true},
                        {"x > 2", false},
                        {"x == 2", true},
                        {"x != 2", false},
                        {"x != y", true},
                        {"x + y * 2 == 9", true},
                        {"(x + y) * 2 == 11", true},
                        {"10 - x - 3 == 5", true},
                        {"10 - (x - 3) == 11", true},
                        {"-x * y == -7", true},
                        {"- -x == 2", true},
                        {"2 - -x == 4", true},
                        {"m/w * m/w == 16", true},
                        {"m/a.b == 1e0", true},
                        {"'weight-decay' < 1", true},
                        {"\"weight-decay\" + .5 == 1", true},
                        {"1e-3 < x", true},
                        {"3 > 2", true},
                        {"((((x)))) < ((y))", true}};
  for (const Case& one : cases) {
    CAPTURE(one.text);
    CHECK(WhereRule(one.text).holds(config) == one.holds);
  }
  CHECK(WhereRule("x * x + m/w < x").paths() == std::vector<std::string>{"x", "m/w"});
}

TEST_CASE("what names a key that is not there, or is null, counts as held") {
  CHECK(WhereRule("x < y").holds({{"x", 3}}));
  CHECK(WhereRule("m/x < 0").holds({{"m", "plain"}}));
  CHECK(WhereRule("x < 0").holds({{"x", nullptr}}));
  CHECK_FALSE(WhereRule("x < y").holds({{"x", 3}, {"y", std::nan("")}}));
  CHECK_HAS(refusal([] {
              (void)WhereRule("x < y").holds({{"x", "a"}, {"y", 1}});
            }),
            "where 'x < y': 'x' is \"a\", which is not a number");
}

TEST_CASE("a text that is not a comparison is refused with what stands where") {
  struct Case {
    const char* text;
    const char* part;
  };
  const Case cases[] = {
      {"", "'' has the end where a number, a key path or a '(' should stand"},
      {"x", "has the end where one of + - * < <= > >= == != should stand"},
      {"x <", "has the end where a number, a key path or a '('"},
      {"< x", "has '< x' where a number"},
      {"x = 3", "has '= 3' where one of"},
      {"x < y < z", "goes on with '< z': one comparison each"},
      {"x < y and y < z",
       "goes on with 'and y < z': one comparison each; of a list of them all hold"},
      {"x / 2 < y", "there is no division"},
      {"x < (y / 2)", "there is no division"},
      {"x < y % 2", "has '% 2' where the end, or one of + - * should stand"},
      {"(x < y)", "has '< y)' where a ')' should stand"},
      {"2x < y", "has 'x < y' where an operator after the number"},
      {"'x < y", "has a ' without end"},
      {"1e999 < x", "has '1e999 < x' where a number should stand"}};
  for (const Case& one : cases) {
    CAPTURE(one.text);
    CHECK_HAS(refusal([&] { WhereRule rule(one.text); }), one.part);
  }
  CHECK_HAS(refusal([] { WhereRule rule(std::string(100'000, '(')); }), "is nested too deep");
  CHECK_HAS(refusal([] { WhereRule rule(std::string(100'000, '-')); }), "is nested too deep");
}

TEST_CASE("keys that are not there, or may be no number, are told for each text") {
  const SearchSpace space = {
      {"width", randint(1, 9)},
      {"depth", 3},
      {"act", choice({"relu", "tanh"})},
      {"mixed", choice({1, 2, "auto"})},
      {"g", grid_search({1, 2})},
      {"model", {{"heads", choice({1, 2})}}},
      {"f", sample_from([](const Config&) { return Value(3); })},
      {"o", choice({{{"k", "a"}, {"x", uniform(0, 1)}}, {{"k", "b"}, {"x", "text"}, {"z", 2}}})},
      {"plain", choice({Value{{"n", 1}}, Value{{"n", 2}}})}};
  CHECK(where_complaints({"width < depth * model/heads", "g + f < 9", "o/z < width", "plain/n < 2"},
                         space)
            .empty());
  struct Case {
    const char* text;
    const char* part;
  };
  const Case cases[] = {{"widht < 3", "there is no 'widht' in config (did you mean 'width'?)"},
                        {"xyzzy < 3", "there is no 'xyzzy' in config, there are: width, depth"},
                        {"act < 3", "'act' may be \"relu\", which is not a number"},
                        {"mixed < 3", "'mixed' may be \"auto\", which is not a number"},
                        {"model < 3", "'model' may be a map: name one of its keys"},
                        {"o < 3", "'o' may be a map"},
                        {"o/x < 3", "'o/x' may be \"text\", which is not a number"},
                        {"o/k < 3", "which is not a number"},
                        {"plain < 3", "'plain' may be a map"},
                        {"width <", "has the end where"}};
  for (const Case& one : cases) {
    CAPTURE(one.text);
    const auto complaints = where_complaints({"width < 9", one.text}, space);
    REQUIRE(complaints.size() == 1);
    CHECK(complaints[0].path == "1");
    CHECK_HAS(complaints[0].message, one.part);
    CHECK_HAS(refusal([&] { Where({"width < 9", one.text}, space); }), "where/1: ");
  }
}

// ---- basic_variant ------------------------------------------------------------------------------

std::unique_ptr<Searcher> where_searcher(SearcherSetup setup) {
  auto searcher = basic_variant().make();
  searcher->configure(setup);
  return searcher;
}

SearcherSetup setup_of(SearchSpace space, std::vector<std::string> where, std::int64_t samples,
                       std::vector<Config> points = {}) {
  return {std::move(space),
          samples,
          std::move(points),
          {"loss", Mode::kMin, kWhereSeed},
          std::move(where)};
}

std::vector<Config> configs_where(Searcher& searcher) {
  std::vector<Config> configs;
  while (auto config = searcher.suggest({static_cast<std::uint32_t>(configs.size())})) {
    configs.push_back(std::move(*config));
  }
  if (const auto total = searcher.total()) CHECK(*total == configs.size());
  return configs;
}

std::vector<Config> configs_where(SearcherSetup setup) {
  return configs_where(*where_searcher(std::move(setup)));
}

TEST_CASE("configurations that break a rule are drawn anew, others stay as they were") {
  const SearchSpace space = {{"x", uniform(0, 1)}, {"y", uniform(0, 1)}, {"z", uniform(0, 1)}};
  const auto free = configs_where(setup_of(space, {}, 2000));
  const auto kept = configs_where(setup_of(space, {"x < y"}, 2000));
  int same = 0;
  double sum = 0;
  for (std::size_t i = 0; i < free.size(); ++i) {
    CHECK(kept[i].get<double>("x") < kept[i].get<double>("y"));
    if (free[i].get<double>("x") < free[i].get<double>("y")) {
      CHECK(kept[i] == free[i]);
      ++same;
    }
    sum += kept[i].get<double>("y");
  }
  CHECK(std::abs(same - 1000) < 5 * 22.4);  // sqrt(2000) / 2
  // y is the larger of two even draws: mean 2/3, variance 1/18.
  CHECK(std::abs(sum / 2000 - 2.0 / 3) < 5 * std::sqrt(1.0 / 18 / 2000));
}

TEST_CASE("redraws depend on seed and trial alone, and a key more changes no other") {
  const SearchSpace space = {{"x", uniform(0, 1)}, {"y", uniform(0, 1)}};
  const std::vector<std::string> where = {"x + y < 0.3", "x < y"};
  const auto all = configs_where(setup_of(space, where, 40));
  SearchSpace wider = space;
  wider.set("more", choice({{{"k", 1}, {"x", uniform(0, 1)}}, {{"k", 2}}}));
  const auto with_more = configs_where(setup_of(wider, where, 40));
  const auto alone = where_searcher(setup_of(space, where, -1));
  for (const std::uint32_t trial : {39u, 3u, 17u, 0u}) {
    CHECK(*alone->suggest({trial}) == all[trial]);
    CHECK(with_more[trial].at("x") == all[trial].at("x"));
    CHECK(with_more[trial].at("y") == all[trial].at("y"));
  }
  std::set<double> values;
  for (const Config& config : all) values.insert(config.get<double>("x"));
  CHECK(values.size() == 40);
}

TEST_CASE("cells of the grid that break a rule are left out and not counted") {
  const SearchSpace space = {{"a", grid_search({1, 2, 3})}, {"b", grid_search({1, 2, 3})}};
  const auto texts = [](const std::vector<Config>& configs) {
    std::vector<std::string> all;
    for (const Config& config : configs) all.push_back(config.dump());
    return all;
  };
  // Of nine cells those with a < b: (1,2) (1,3) (2,3), a varies fastest.
  const std::vector<std::string> one = {R"({"a":1,"b":2})", R"({"a":1,"b":3})", R"({"a":2,"b":3})"};
  CHECK(texts(configs_where(setup_of(space, {"a < b"}, 1))) == one);
  std::vector<std::string> two = one;
  two.insert(two.end(), one.begin(), one.end());
  CHECK(texts(configs_where(setup_of(space, {"a < b"}, 2))) == two);
  // A preset leaves its keys' grid: b > 2 has one cell; then the three cells of sample 2.
  const auto preset = texts(configs_where(setup_of(space, {"a < b"}, 2, {{{"a", 2}}})));
  REQUIRE(preset.size() == 4);
  CHECK(preset[0] == one[2]);
  CHECK(preset[1] == one[0]);
  // Values of the grid and values that are drawn: every cell stays.
  const auto mixed =
      configs_where(setup_of({{"a", grid_search({1, 2, 3})}, {"x", uniform(0, 4)}}, {"a < x"}, 2));
  REQUIRE(mixed.size() == 6);
  for (const Config& config : mixed) CHECK(config.get<int>("a") < config.get<double>("x"));
  // Resumed with more samples.
  const auto searcher = where_searcher(setup_of(space, {"a < b"}, 1));
  searcher->set_num_samples(3);
  CHECK(searcher->total() == 9);
}

TEST_CASE("what can never be drawn is refused when the searcher is configured") {
  const auto refused = [](SearchSpace space, std::vector<std::string> where,
                          std::vector<Config> points = {}) {
    return refusal([&] { where_searcher(setup_of(std::move(space), where, 9, points)); });
  };
  CHECK_HAS(refused({{"a", grid_search({3, 4})}, {"b", 2}}, {"a < b"}),
            R"(where: {"a":4,"b":2} breaks 'a < b' whatever is drawn)");
  CHECK_HAS(refused({{"a", 3}, {"x", uniform(0, 1)}}, {"a < 2"}), "breaks 'a < 2' whatever");
  CHECK_HAS(refused({{"x", uniform(0, 1)}, {"y", uniform(2, 3)}}, {"x > y"}),
            "where: of 10000 drawn configurations 0 are kept, the others break rules such as 'x > "
            "y'");
  // One cell of the grid is enough.
  CHECK_HAS(refused({{"g", grid_search({1, 10})}, {"x", uniform(0, 5)}}, {"g < x"}),
            R"((found with {"g":10,"x":null}))");
  // Also the last of many.
  std::vector<Value> many;
  for (int i = 0; i < 1000; ++i) many.push_back(i);
  const SearchSpace long_grid = {{"g", grid_search(many)}, {"x", uniform(0, 998)}};
  CHECK_HAS(refused(long_grid, {"g < x"}), R"((found with {"g":999,"x":null}))");
  CHECK_HAS(
      refused({{"x", uniform(0, 1)}, {"y", uniform(0, 1)}}, {"x < y"}, {{{"x", 0.5}, {"y", 0.1}}}),
      R"(points_to_evaluate/0: {"x":0.5,"y":0.1} breaks 'x < y' whatever is drawn)");
  CHECK_HAS(refused({{"x", uniform(0, 1)}, {"y", uniform(0, 1)}}, {"x < y"}, {{}, {{"x", 2}}}),
            "are kept");
  CHECK_HAS(refused({{"x", uniform(0, 1)}}, {"x < 2"}, {{{"x", "auto"}}}),
            "'x' is \"auto\", which is not a number");
  CHECK_HAS(refused({{"x", uniform(0, 1)}}, {"y < 2"}), "where/0: 'y < 2': there is no 'y'");
  SearchSpace wide = {{"x", uniform(0, 1)}};
  for (const char* key : {"a", "b", "c", "d"}) {
    wide.set(key, grid_search({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
  }
  CHECK_HAS(refused(wide, {"a < b"}),
            "a grid of more than 100000 cells takes no rule about its keys");
  where_searcher(setup_of(wide, {"x < 0.5"}, 1));
}

TEST_CASE("a rule about a key of an option counts where the option is taken") {
  const SearchSpace space = {
      {"x", uniform(0, 1)},
      {"o", choice({{{"k", "a"}, {"y", uniform(0, 1)}}, {{"k", "b"}, {"z", randint(0, 3)}}})}};
  int taken = 0;
  int above = 0;
  for (const Config& config : configs_where(setup_of(space, {"x < o/y", "o/z != 1"}, 600))) {
    if (config.get<std::string>("o/k") == "a") {
      ++taken;
      CHECK(config.get<double>("x") < config.get<double>("o/y"));
    } else {
      CHECK(config.get<int>("o/z") != 1);
      above += config.get<double>("x") > 0.9;
    }
  }
  // Of option a one half is kept, of b two thirds: 3 in 7; sqrt(600 x 3/7 x 4/7) = 12.1.
  CHECK(std::abs(taken - 600 * 3 / 7.0) < 5 * 12.1);
  CHECK(above > 0);
}

TEST_CASE("rules about what functions compute are kept too") {
  const SearchSpace space = {{"x", uniform(0, 1)}, {"twice", sample_from([](const Config& config) {
                                                      return Value(2 * config.get<double>("x"));
                                                    })}};
  for (const Config& config : configs_where(setup_of(space, {"twice < 0.5"}, 50))) {
    CHECK(config.get<double>("x") < 0.25);
  }
  const Encoding encoding(space, {"twice < 0.5"});
  RandomStream random(kWhereSeed, "functions", 0);
  for (int i = 0; i < 50; ++i) CHECK(encoding.draw(random)[0] < 0.25);
  // One that can never hold is an error that says so, not an endless loop.
  const auto never = where_searcher(setup_of(space, {"twice < 0"}, 5));
  CHECK_HAS(
      refusal([&] { never->suggest({2}); }),
      "10000 configurations were drawn for one trial, and all break rules such as 'twice < 0'");
  const Encoding nothing(space, {"twice < 0"});
  const std::vector<std::uint64_t> known;
  CHECK_HAS(refusal([&] { draw_untried(nothing, TriedPoints(known), random); }),
            "and all break rules such as 'twice < 0'");
  CHECK_HAS(refusal([&] { search::halton_point(nothing, 3, 0); }),
            "and all break rules such as 'twice < 0'");
}

TEST_CASE("basic_variant keeps its promises with rules") {
  SearcherSetup setup = setup_of({{"g", grid_search({1, 2, 3})},
                                  {"h", grid_search({1, 2})},
                                  {"x", uniform(0, 4)},
                                  {"o", choice({{{"k", 1}, {"y", uniform(0, 1)}}, {{"k", 2}}})}},
                                 {"h <= g", "x * h > 0.5", "o/y < x"}, 4, {{{"g", 2}}});
  testing::check_searcher([] { return basic_variant().make(); }, setup);
  testing::check_searcher([] { return basic_variant({.constant_grid_search = true}).make(); },
                          setup);
}

// ---- Points of the unit cube --------------------------------------------------------------------

TEST_CASE("an encoding says whether a point holds, as its configuration does") {
  const SearchSpace space = {
      {"x", uniform(0, 1)},
      {"n", randint(0, 10)},
      {"c", 5},
      {"o", choice({{{"k", "a"}, {"y", loguniform(0.01, 1)}}, {{"k", "b"}, {"y", 0.5}}})}};
  const std::vector<std::string> texts = {"x < o/y", "n + 2 * x < c"};
  const Encoding free(space);
  const Encoding encoding(space, texts);
  const Where where(texts, space);
  RandomStream random(kWhereSeed, "holds", 0);
  int held = 0;
  for (int i = 0; i < 2000; ++i) {
    const UnitPoint point = free.draw(random);
    CHECK(free.holds(point));
    CHECK(encoding.holds(point) == where.holds(free.decode(point)));
    held += encoding.holds(point);
    CHECK(where.holds(encoding.decode(encoding.draw(random))));
  }
  CHECK(held > 100);
  CHECK(held < 1000);
  CHECK_HAS(refusal([&] { Encoding(space, {"x > 2"}); }), "where: of 10000 drawn");
  CHECK_HAS(refusal([&] { Encoding(space, {"q > 2"}); }), "where/0: 'q > 2': there is no 'q'");
}

TEST_CASE("what is drawn as not tried holds, as long as there is something left") {
  // (0,1) (0,2) (1,2)
  const Encoding encoding(SearchSpace{{"a", randint(0, 3)}, {"b", randint(0, 3)}}, {"a < b"});
  const std::vector<std::uint64_t> none;
  TriedPoints tried(none);
  RandomStream random(kWhereSeed, "untried", 0);
  std::set<std::string> found;
  for (int i = 0; i < 3; ++i) {
    const DrawnPoint drawn = draw_untried(encoding, tried, random);
    CHECK(drawn.note == "");
    tried.add(drawn.point);
    found.insert(encoding.decode(drawn.point).dump());
  }
  CHECK(found == std::set<std::string>{R"({"a":0,"b":1})", R"({"a":0,"b":2})", R"({"a":1,"b":2})"});
  const DrawnPoint drawn = draw_untried(encoding, tried, random);
  CHECK(drawn.note == "no configuration was found that had not been tried");
  CHECK(encoding.holds(drawn.point));
}

}  // namespace
}  // namespace tune
