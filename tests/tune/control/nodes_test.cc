#include "tune/control/nodes.h"

#include <doctest/doctest.h>

#include "core/error.h"

namespace tune {
namespace {

AgentHello hello(double cpus) {
  AgentHello one;
  one.hostname = "n";
  one.cpu_units = to_units(cpus);
  return one;
}

TEST_CASE("a node takes trials once it is ready, and none after it has left") {
  Nodes nodes(to_request({}));
  CHECK(nodes.all_are_ready());  // there is none that is not
  CHECK_FALSE(nodes.any_is_ready());
  nodes.join({0}, hello(1));
  CHECK(nodes.hello({0}).hostname == "n");
  CHECK_FALSE(nodes.place().has_value());
  nodes.set_ready({0});
  nodes.set_ready({0});
  nodes.join({1}, hello(1));
  CHECK(nodes.any_is_ready());
  CHECK_FALSE(nodes.all_are_ready());
  const auto placed = nodes.place();
  REQUIRE(placed.has_value());
  CHECK(placed->agent.value == 0);
  CHECK_FALSE(nodes.place().has_value());  // full
  nodes.release(*placed);
  CHECK(nodes.place().has_value());
  nodes.leave({0});
  CHECK_FALSE(nodes.contains({0}));
  CHECK_FALSE(nodes.place().has_value());
  nodes.clear();
  CHECK(nodes.empty());
}

TEST_CASE("places have names, and none is used that is to be avoided") {
  Nodes nodes(to_request({.gpu = 1}));
  AgentHello two = hello(4);
  two.gpus = {{"0", "", 0}, {"GPU-77", "", 0}};
  nodes.join({0}, two);
  nodes.set_ready({0});
  const std::set<std::string> first = {"GPU 0 of n"};
  const auto placed = nodes.place(first);
  REQUIRE(placed.has_value());
  CHECK(nodes.places_of(*placed) == std::vector<std::string>{"GPU GPU-77 of n"});
  CHECK_FALSE(nodes.place(first).has_value());
  CHECK(nodes.could_hold(first));  // when it is empty
  CHECK_FALSE(nodes.could_hold({"GPU 0 of n", "GPU GPU-77 of n"}));
  CHECK_FALSE(nodes.could_hold({"n"}));
  CHECK(nodes.could_hold({"GPU 0 of elsewhere"}));
  CHECK(nodes.place().has_value());  // the other one
  nodes.leave({0});
  CHECK_FALSE(nodes.could_hold({}));

  Nodes of_cpus(to_request({}));
  of_cpus.join({0}, hello(1));
  of_cpus.set_ready({0});
  CHECK_FALSE(of_cpus.place({"n"}).has_value());
  CHECK(of_cpus.places_of(*of_cpus.place()) == std::vector<std::string>{"n"});
}

// Under a batch system the GPUs of each job count from 0.
TEST_CASE("two GPUs of a host with one number are told apart by their UUIDs") {
  Nodes nodes(to_request({.gpu = 1}));
  for (const std::uint32_t agent : {0u, 1u}) {
    AgentHello one = hello(4);
    one.gpus = {{"0", "", 0, "GPU-" + std::to_string(agent)}};
    one.gpus_by_uuid = true;
    nodes.join({agent}, one);
    nodes.set_ready({agent});
  }
  const auto placed = nodes.place({"GPU GPU-0 of n"});
  REQUIRE(placed.has_value());
  CHECK(placed->agent == AgentNumber{1});
  CHECK(nodes.places_of(*placed) == std::vector<std::string>{"GPU GPU-1 of n"});
  CHECK(nodes.place_in_words("GPU GPU-1 of n") == "GPU 0 of n (GPU-1)");
  CHECK(nodes.place_in_words("n") == "n");
  CHECK(nodes.could_hold({"GPU GPU-0 of n"}));
  nodes.leave({1});
  CHECK(nodes.place_in_words("GPU GPU-1 of n") == "GPU GPU-1 of n");  // nobody knows it now

  Nodes of_before(to_request({.gpu = 1}));  // their journals name places by number
  AgentHello one = hello(4);
  one.gpus = {{"0", "", 0, "GPU-0"}};
  of_before.join({0}, one);
  of_before.set_ready({0});
  CHECK(of_before.places_of(*of_before.place()) == std::vector<std::string>{"GPU 0 of n"});
}

TEST_CASE("of agents with one GPU the first to join takes trials, also when they are restored") {
  AgentHello one = hello(4);
  one.gpus = {{"0", "", 0, "GPU-1"}};
  Nodes nodes(to_request({.gpu = 1}));
  nodes.join({1}, one);
  nodes.join({0}, one);  // heard first, and joins second
  nodes.set_ready({0});
  CHECK_FALSE(nodes.place().has_value());
  CHECK(nodes.holder_of_its_gpus({1}).empty());
  CHECK(nodes.holder_of_its_gpus({0}) == "process 0 of n");
  nodes.set_ready({1});
  PackWriter out;
  nodes.save(out);
  PackReader in(out.bytes());
  Nodes restored(to_request({.gpu = 1}));
  restored.restore(in);
  for (Nodes* some : {&nodes, &restored}) {
    const auto placed = some->place();
    REQUIRE(placed.has_value());
    CHECK(placed->agent == AgentNumber{1});
    CHECK_FALSE(some->place().has_value());
    some->release(*placed);
    some->leave({1});
    CHECK(some->place()->agent == AgentNumber{0});
  }
}

TEST_CASE("restored nodes have promised what the running trials hold, or refuse them") {
  Nodes nodes(to_request({}));
  nodes.join({0}, hello(1));
  nodes.set_ready({0});
  nodes.join({1}, hello(1));
  PackWriter out;
  nodes.save(out);

  const auto restored = [&](const std::deque<Trial>& trials) {
    Nodes other(to_request({}));
    PackReader in(out.bytes());
    other.restore(in);
    other.reserve_again(trials);
    PackWriter again;
    other.save(again);
    CHECK(again.bytes() == out.bytes());
    return other.placer().cpu_units_used();
  };
  std::deque<Trial> trials(2);
  CHECK(restored(trials) == 0);
  trials[0].status = TrialStatus::kRunning;
  CHECK_THROWS_AS(restored(trials), Error);  // nowhere
  trials[0].placement = Placement{AgentNumber{0}, {}};
  CHECK(restored(trials) == kUnit);
  trials[1].placement = Placement{AgentNumber{1}, {}};
  CHECK_THROWS_AS(restored(trials), Error);  // it does not run
  trials[1].status = TrialStatus::kRunning;
  CHECK(restored(trials) == 2 * kUnit);
  trials[1].placement->agent = {0};
  CHECK_THROWS_AS(restored(trials), Error);  // no room for two
  trials[1].placement->agent = {7};
  CHECK_THROWS_AS(restored(trials), Error);  // no such node
}

}  // namespace
}  // namespace tune
