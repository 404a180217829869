// What a driver's machine makes of an own agent that outlives its driver.
#include <doctest/doctest.h>

#include "tune/drive/driver_script.h"

namespace tune::testing {
namespace {

TEST_CASE("an own agent that outlives its driver is missed by this one, whatever it has said") {
  DriverScript script;
  AgentHello own = joined_hello();
  own.own = true;
  script.machine.on_agent_started("a", script.now);
  script.hear("a", {own});
  script.pass(1s);
  script.hear("a", {NodeOut{"drained", true}});
  script.pass(1s);
  CHECK(script.turn().size() == 2);
  script.machine.on_agent_ended("a", "exited with code 0");
  CHECK(script.turn().empty());
  const std::vector<DriverAction> actions = script.machine.take_actions();
  REQUIRE(actions.size() == 1);
  CHECK(std::get<GiveUp>(actions[0]).why == GiveUp::Why::kAgent);
}

TEST_CASE(
    "an agent of the driver before that has ended is lost at once, and another one is there") {
  DriverScript script;
  script.peers.expect(AgentNumber{2}, "former", 7, script.now);
  script.machine.on_agent_expected("former", script.now);
  script.machine.on_agent_started("own", script.now);
  script.machine.on_agent_ended("former", "it has ended");
  script.machine.on_agent_ended("", "there was none");
  const std::vector<Event> events = script.turn();
  REQUIRE(events.size() == 1);
  CHECK(std::get<AgentLost>(events[0]).agent == AgentNumber{2});
  CHECK(script.machine.take_actions().empty());
}

}  // namespace
}  // namespace tune::testing
