// What the status of an experiment tells of its nodes.
#include "tune/results/experiment_status.h"

#include <doctest/doctest.h>

#include <chrono>

#include "tune/control/nodes.h"

namespace tune {
namespace {

using namespace std::chrono_literals;

AgentHello machine(const char* hostname, Duration lasts) {
  AgentHello hello;
  hello.hostname = hostname;
  hello.cpu_units = kUnit;
  hello.joined = true;
  hello.lasts = lasts;
  return hello;
}

TEST_CASE("the machines that have joined are counted, and the first that leaves is named") {
  Nodes nodes(to_request({}));
  AgentHello own = machine("login", 1min);
  own.own = true;
  nodes.join({0}, own);
  CHECK(who_has_joined(nodes, 0s).empty());
  nodes.join({1}, machine("n1", 0s), 10s);
  CHECK(who_has_joined(nodes, 10s) == "Machines that have joined: 1");
  nodes.join({2}, machine("n2", 4h), 10s);
  nodes.join({3}, machine("n3", 3h), 20min);
  CHECK(who_has_joined(nodes, 30min) ==
        "Machines that have joined: 3 (n3 leaves first, in 2 h 50 min)");
  nodes.set_away({3});
  nodes.set_away({1});
  CHECK(who_has_joined(nodes, 4h + 5min) == "Machines that have joined: 1 (n2 leaves in 0 s)");
}

}  // namespace
}  // namespace tune
