// Configurations that users add: drawn whole, checked as points_to_evaluate are.
#include "tune/search/added_point.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

SearcherSetup sweep() {
  SearcherSetup setup;
  setup.space = {{"lr", loguniform(1e-3, 1)},
                 {"layers", grid_search({1, 2})},
                 {"optimiser", choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}}, "none"})},
                 {"batch", 64}};
  setup.num_samples = 4;
  setup.objective.seed = 7;
  return setup;
}

TEST_CASE("what an added configuration leaves out is drawn, by its number alone") {
  const Config point = {{"layers", 2}, {"lr", 0.5}};
  const Config whole = whole_point(sweep(), point, 3);
  CHECK(whole.get<int>("layers") == 2);
  CHECK(whole.get<double>("lr") == 0.5);
  CHECK(whole.get<int>("batch") == 64);
  CHECK(whole.contains("optimiser"));
  CHECK(whole_point(sweep(), point, 3) == whole);
  std::set<std::string> drawn;
  for (std::uint64_t number = 0; number < 20; ++number) {
    drawn.insert(whole_point(sweep(), {{"layers", 2}}, number).dump());
  }
  CHECK(drawn.size() == 20);
}

TEST_CASE("constants and values outside the space may be given, and an option by its keys") {
  const Config whole = whole_point(
      sweep(), {{"layers", 9}, {"batch", 128}, {"lr", 4}, {"optimiser", {{"kind", "sgd"}}}}, 0);
  CHECK(whole.get<int>("layers") == 9);
  CHECK(whole.get<int>("batch") == 128);
  CHECK(whole.get<double>("optimiser/momentum") < 1);
}

TEST_CASE("whole numbers written as floats are added as whole numbers") {
  const Config whole = whole_point(sweep(), {{"layers", 2.0}, {"batch", 128.0}}, 0);
  CHECK(whole.get<int>("layers") == 2);
  CHECK(whole.get<int>("batch") == 128);
}

TEST_CASE("strange keys, missing values of grids and broken rules are refused without a place") {
  const auto why = [](const SearcherSetup& setup, const Config& point) {
    return refusal([&] { whole_point(setup, point, 0); });
  };
  CHECK(why(sweep(), {{"layer", 2}}) == "there is no 'layer' in config (did you mean 'layers'?)");
  CHECK(why(sweep(), {{"lr", 0.5}}) ==
        "'layers' is a grid_search: the configuration has to have one of its values, or another");
  CHECK_HAS(why(sweep(), {{"layers", 1}, {"optimiser", {{"kind", "adam"}}}}), "'optimiser' is ");
  SearcherSetup ruled = sweep();
  ruled.where = {"lr < batch"};
  CHECK(whole_point(ruled, {{"layers", 1}, {"lr", 0.5}}, 0).get<double>("lr") == 0.5);
  CHECK_HAS(why(ruled, {{"layers", 1}, {"lr", 65}}), "lr < batch");
}

}  // namespace
}  // namespace tune
