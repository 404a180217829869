#include "tune/search/encoding.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "core/json.h"
#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

constexpr std::uint64_t kEncodingSeed = 5;  // of every random test here

RandomStream stream(std::uint64_t number = 0) {
  return RandomStream(kEncodingSeed, "encoding_test", number);
}

// As choice([{type: sgd, momentum: uniform}, {type: adam, beta: choice, eps: uniform}]) beside lr.
Encoding conditional() {
  const Value sgd = {{"type", "sgd"}, {"momentum", nullptr}};
  const Value adam = {{"type", "adam"}, {"beta", nullptr}, {"x", {{"eps", nullptr}}}};
  return Encoding({{"lr", UnitDomain(loguniform(1e-4, 1))},
                   {"optimiser", UnitDomain(choice({sgd, adam}))},
                   {"optimiser/momentum", UnitDomain(uniform(0, 1)), Condition{1, 0}},
                   {"optimiser/beta", UnitDomain(choice({0.9, 0.99})), Condition{1, 1}},
                   {"optimiser/x/eps", UnitDomain(randint(0, 3)), Condition{1, 1}}},
                  Config{{"lr", nullptr}, {"optimiser", nullptr}, {"epochs", 3}});
}

Encoding flat() {
  return Encoding(SearchSpace{{"lr", loguniform(1e-4, 1)},
                              {"model", {{"layers", randint(1, 5)}, {"kind", choice({"a", "b"})}}},
                              {"dropout", quniform(0, 0.5, 0.1)},
                              {"noise", randn(0, 1)},
                              {"width", 64},
                              {"only", choice({"one"})},
                              {"twice", sample_from([](const Config& config) {
                                 return Value(2 * config.get<int>("model/layers"));
                               })}});
}

TEST_CASE("constants, single values and functions are not parameters") {
  const Encoding encoding = flat();
  std::vector<std::string> paths;
  for (const Parameter& parameter : encoding.parameters()) paths.push_back(parameter.path);
  CHECK(paths == std::vector<std::string>{"lr", "model/layers", "model/kind", "dropout", "noise"});
  CHECK(encoding.feature_count() == 6);  // two of the choice
  RandomStream random = stream();
  const Config config = encoding.decode(encoding.draw(random));
  CHECK(config.get<int>("width") == 64);
  CHECK(config.get<std::string>("only") == "one");
  CHECK(config.get<int>("twice") == 2 * config.get<int>("model/layers"));
}

TEST_CASE("points and configurations lead to one another") {
  for (const Encoding& encoding : {flat(), conditional()}) {
    RandomStream random = stream(1);
    for (int i = 0; i < 500; ++i) {
      const UnitPoint point = encoding.draw(random);
      const Config config = encoding.decode(point);
      CAPTURE(config.dump());
      const Encoded encoded = encoding.encode(config);
      CHECK(encoded.complaint == "");
      REQUIRE(encoded.point.size() == point.size());
      for (std::size_t k = 0; k < point.size(); ++k) {
        CHECK(encoded.point[k] == doctest::Approx(point[k]).epsilon(1e-9));
      }
      // Read back from text, where numbers may change their type.
      CHECK(encoding.encode(Config(parse_json(config.dump(), "a test"))).complaint == "");
    }
  }
}

TEST_CASE("a configuration has what its choice makes active and nothing else") {
  const Encoding encoding = conditional();
  RandomStream random = stream(2);
  std::set<std::string> kinds;
  for (int i = 0; i < 100; ++i) {
    const UnitPoint point = encoding.draw(random);
    const Config config = encoding.decode(point);
    const std::string kind = config.get<std::string>("optimiser/type");
    kinds.insert(kind);
    CHECK(config.contains("optimiser/momentum") == (kind == "sgd"));
    CHECK(config.contains("optimiser/beta") == (kind == "adam"));
    CHECK(config.contains("optimiser/x/eps") == (kind == "adam"));
    CHECK((point[2] == kInactive) == (kind == "adam"));
    CHECK((point[4] == kInactive) == (kind == "sgd"));
    CHECK(config.get<int>("epochs") == 3);
  }
  CHECK(kinds.size() == 2);
}

TEST_CASE("points that mean the same configuration settle as one point") {
  const Encoding encoding = conditional();
  RandomStream random = stream(3);
  const UnitPoint sgd = encoding.settled({0.5, 0.1, 0.3, kInactive, kInactive}, random);
  CHECK(sgd == encoding.settled({0.5, 0.4, 0.3, 0.7, 0.9}, random));
  CHECK(fingerprint(sgd) == fingerprint(encoding.settled({0.5, 0.4, 0.3, 0.7, 0.9}, random)));
  CHECK(sgd == UnitPoint{0.5, 0.25, 0.3, kInactive, kInactive});
  // Of the other option all is drawn that has no coordinate yet.
  const UnitPoint adam = encoding.settled({0.5, 0.8, 0.3, kInactive, kInactive}, random);
  CHECK(adam[2] == kInactive);
  CHECK(adam[3] >= 0);
  CHECK(adam[4] >= 0);
  CHECK(fingerprint(adam) != fingerprint(sgd));
}

TEST_CASE("features are distances: numbers as they are, options one apart") {
  const Encoding encoding = conditional();
  CHECK(encoding.feature_count() == 7);
  std::vector<double> features(7);
  encoding.write_features({0.5, 0.25, 0.3, kInactive, kInactive}, features);
  const double one = Encoding::kOneHot;
  CHECK(features == std::vector<double>{0.5, one, 0, 0.3, 0, 0, 0.5});
  encoding.write_features({0.5, 0.75, kInactive, 0.75, 0.5}, features);
  CHECK(features == std::vector<double>{0.5, 0, one, 0.5, 0, one, 0.5});
  CHECK(2 * one * one == doctest::Approx(1).epsilon(1e-15));
}

TEST_CASE("configurations are counted where they can be") {
  CHECK_FALSE(conditional().count().has_value());
  CHECK(Encoding(SearchSpace{{"a", choice({1, 2, 3})}, {"b", randint(0, 4)}}).count() == 12);
  CHECK(Encoding(SearchSpace{{"a", 1}}).count() == 1);
  const Value map = {{"x", nullptr}};
  // 2 + 3 x 4 configurations.
  CHECK(Encoding({{"k", UnitDomain(choice({map, Value{{"x", nullptr}, {"y", nullptr}}}))},
                  {"k/x", UnitDomain(randint(0, 2)), Condition{0, 0}},
                  {"k/x", UnitDomain(randint(0, 3)), Condition{0, 1}},
                  {"k/y", UnitDomain(randint(0, 4)), Condition{0, 1}}},
                 Config{{"k", nullptr}})
            .count() == 14);
  SearchSpace wide;
  for (const char* key : {"a", "b", "c", "d"}) wide.set(key, randint(0, 1 << 20));
  CHECK_FALSE(Encoding(wide).count().has_value());
}

TEST_CASE("a configuration from elsewhere is read, or it is said what stands against it") {
  const Encoding encoding = conditional();
  const auto complaint = [&](Config config) { return encoding.encode(config).complaint; };
  const Value sgd = {{"type", "sgd"}, {"momentum", 0.5}};
  CHECK(complaint({{"lr", 0.1}, {"optimiser", sgd}, {"of the other", 1}}) == "");
  CHECK(complaint({{"optimiser", sgd}}) == "'lr' is missing");
  CHECK(complaint({{"lr", 3.0}, {"optimiser", sgd}}) ==
        R"('lr' is 3.0, which {"loguniform":[1e-04,1.0]} never draws)");
  CHECK_HAS(complaint({{"lr", 0.1}, {"optimiser", "sgd"}}), "'optimiser' is \"sgd\", which");
  CHECK_HAS(complaint({{"lr", 0.1}, {"optimiser", {{"type", "sgd"}}}}), "'optimiser' is");
  CHECK_HAS(complaint({{"lr", 0.1}, {"optimiser", {{"type", "sgd"}, {"momentum", 2}}}}),
            "'optimiser/momentum' is 2, which");
}

TEST_CASE("grids are refused, all at once") {
  const std::string said = refusal([] {
    Encoding(SearchSpace{{"a", grid_search({1, 2})}, {"m", {{"b", grid_search({1, 2})}}}});
  });
  CHECK_HAS(said, "config: 'a', 'm/b' are grid_search");
  CHECK_HAS(said, "write choice instead");
  CHECK_HAS(refusal([] {
              Encoding(SearchSpace{{"a", grid_search({1})}});
            }),
            "'a' is a grid_search");
  CHECK_HAS(refusal([] { Encoding(SearchSpace(Value(3))); }), "config must be a map");
}

}  // namespace
}  // namespace tune
