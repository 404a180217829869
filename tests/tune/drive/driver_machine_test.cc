#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "tune/drive/driver_script.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using Time = DriverMachine::Time;
using Script = testing::DriverScript;
using testing::is;
using testing::joined_hello;
using testing::text_of;

// ---- Turns

TEST_CASE("an answer of the searcher is in the next turn, after what agents have told") {
  Script script;
  script.machine.on_proposed({3, {}, {"bytes"}, {}});
  script.hear_text("a", "told");
  script.machine.on_room(false);
  CHECK_FALSE(script.machine.has_more(script.peers));
  CHECK(script.turn().empty());
  script.machine.on_room(true);
  CHECK(script.machine.has_more(script.peers));
  const std::vector<Event> events = script.turn();
  REQUIRE(events.size() == 2);
  CHECK(text_of(events[0]) == "told");
  CHECK(std::get<Proposed>(events[1]).question == 3);
  CHECK(std::get<Proposed>(events[1]).answer.bytes == "bytes");
  CHECK_FALSE(script.machine.has_more(script.peers));
  CHECK(script.turn().empty());
}

TEST_CASE("without news there is no turn") {
  Script script;
  CHECK(script.turn().empty());
  CHECK_FALSE(script.machine.has_more(script.peers));
  script.hear("a");  // a heartbeat
  CHECK(script.turn().empty());
}

TEST_CASE("what the driver has said is in the next turn, alone or with what else is there") {
  Script script;
  script.machine.on_notice("one");
  script.machine.on_notice("two");
  CHECK(script.machine.has_more(script.peers));
  CHECK(script.turn().empty());
  CHECK(script.contents.notices == std::vector<std::string>{"one", "two"});
  CHECK_FALSE(script.machine.next_turn(script.now, {}, script.peers));
  script.machine.on_room(false);
  script.hear_text("a", "waits for room");
  script.machine.on_notice("does not");
  CHECK(script.turn().empty());
  CHECK(script.contents.notices == std::vector<std::string>{"does not"});
  script.machine.on_room(true);
  script.machine.on_notice("three");
  CHECK(script.turn().size() == 1);
  CHECK(script.contents.notices == std::vector<std::string>{"three"});
}

TEST_CASE("when all is over the driver's last words are a turn, and nothing else is") {
  Script script;
  script.hear_text("a", "too late");
  script.machine.on_signal(SIGINT);
  CHECK_FALSE(script.machine.last_turn());
  script.machine.on_notice("said meanwhile");
  const auto last = script.machine.last_turn();
  REQUIRE(last);
  CHECK(last->events.empty());
  CHECK(last->heard.empty());
  CHECK(last->notices == std::vector<std::string>{"said meanwhile"});
  CHECK_FALSE(script.machine.last_turn());
}

TEST_CASE("a turn says of each agent up to where it was heard") {
  Script script;
  script.hear_text("a", "1");
  script.hear_text("b", "1");
  script.hear_text("b", "2");
  CHECK(script.turn().size() == 3);
  CHECK(script.contents.heard.at(AgentNumber{0}).sequence == 1);
  CHECK(script.contents.heard.at(AgentNumber{1}).sequence == 2);
}

TEST_CASE("a deadline is told when its time has come, in experiment time") {
  Script script;
  script.machine.begin(script.now, 50s);  // of an earlier driver
  CHECK(script.turn(60s).empty());
  CHECK(script.machine.idle_time(script.now, 60s, script.peers) <= DriverMachine::kLookEvery);
  script.now += 9999ms;
  CHECK(script.turn(60s).empty());
  CHECK(script.machine.idle_time(script.now, 60s, script.peers) == 1ms);
  script.now += 1ms;
  const std::vector<Event> events = script.turn(60s);
  REQUIRE(events.size() == 1);
  CHECK(is<DeadlineReached>(events[0]));
}

// ---- Signals

TEST_CASE("a signal goes before what agents told, though that came first") {
  Script script;
  AttemptEnded ended;
  ended.outcome = Outcome::kSignal;
  script.hear("a", {ended});
  CHECK(script.machine.on_signal(SIGTERM));
  const std::vector<Event> events = script.turn();
  REQUIRE(events.size() == 2);
  CHECK(is<InterruptRequested>(events[0]));
  CHECK(std::get<InterruptRequested>(events[0]).signal == SIGTERM);
  CHECK(is<FromAgent>(events[1]));
  CHECK(script.turn().empty());
}

TEST_CASE("a second signal ends at once") {
  Script script;
  CHECK(script.machine.on_signal(SIGINT));
  CHECK_FALSE(script.machine.ends_at_once());
  CHECK_FALSE(script.machine.on_signal(SIGTERM));
  CHECK(script.machine.ends_at_once());
  CHECK(script.machine.signal() == SIGTERM);
}

TEST_CASE("the end of its caller is a first signal that is not counted") {
  Script script;
  SUBCASE("alone") {
    script.machine.on_caller_gone(SIGTERM);
    const std::vector<Event> events = script.turn();
    REQUIRE(events.size() == 1);
    CHECK(std::get<InterruptRequested>(events[0]).signal == SIGTERM);
  }
  SUBCASE("before a signal") {
    script.machine.on_caller_gone(SIGTERM);
    CHECK(script.machine.on_signal(SIGINT));
  }
  SUBCASE("after a signal") {
    CHECK(script.machine.on_signal(SIGINT));
    script.machine.on_caller_gone(SIGTERM);
  }
  CHECK_FALSE(script.machine.ends_at_once());
  CHECK(script.machine.signal() != 0);
}

// ---- Agents

TEST_CASE("the end of the only agent ends the driver, after what it told") {
  Script script;
  script.machine.on_agent_started("a", script.now);
  script.hear_text("a", "last words");
  script.machine.on_agent_ended("a", "killed");
  CHECK(script.turn().size() == 1);
  CHECK(script.machine.take_actions().empty());
  CHECK(script.machine.has_more(script.peers));
  CHECK(script.turn().empty());
  const std::vector<DriverAction> actions = script.machine.take_actions();
  REQUIRE(actions.size() == 1);
  CHECK(std::get<GiveUp>(actions[0]).how == "killed");
  CHECK_FALSE(script.machine.has_more(script.peers));
}

TEST_CASE("an agent that ends after a signal is lost, and the interrupt goes on") {
  Script script;
  script.machine.on_agent_started("a", script.now);
  script.hear_text("a", "x");
  script.turn();
  script.machine.on_agent_ended("a", "killed by signal 15 (SIGTERM)");
  script.machine.on_signal(SIGTERM);
  const std::vector<Event> events = script.turn();
  REQUIRE(events.size() == 2);
  CHECK(is<InterruptRequested>(events[0]));
  CHECK(is<AgentLost>(events[1]));
  CHECK(script.machine.take_actions().empty());
}

TEST_CASE("one of several agents that ends is lost, and does not join again") {
  Script script(false);
  script.machine.on_agent_started("a", script.now);
  script.machine.on_agent_started("b", script.now);
  script.hear("a", {AgentHello{}});
  script.hear("b", {AgentHello{}});
  CHECK(script.turn().size() == 2);
  script.machine.on_agent_ended("b", "killed");
  const std::vector<Event> events = script.turn();
  REQUIRE(events.size() == 1);
  CHECK(std::get<AgentLost>(events[0]).agent == AgentNumber{1});
  CHECK(std::get<AgentLost>(events[0]).cause == "killed");
  script.hear("b", {AgentHello{}, Warning{"late"}});
  const std::vector<Event> late = script.turn();
  REQUIRE(late.size() == 1);
  CHECK(text_of(late[0]) == "late");
  CHECK(script.contents.heard.at(AgentNumber{1}).sequence == 3);
}

// ---- Machines that joined

TEST_CASE("a machine that joined is lost after a lease of silence, and its driver is not") {
  Script script({.ends_with_agent = false, .lease = 60s});
  script.hear("a", {joined_hello()});
  script.pass(1s);
  CHECK(script.turn().size() == 1);
  for (int i = 0; i < 10; ++i) {
    script.pass(50s);
    script.hear("a");  // a heartbeat is enough
  }
  script.pass(59s);
  CHECK(script.turn().empty());
  script.pass(2s);
  const std::vector<Event> events = script.turn();
  REQUIRE(events.size() == 1);
  CHECK(std::get<AgentLost>(events[0]).cause.starts_with("it has said nothing for 60 s"));
  CHECK(script.machine.take_actions().empty());  // there is no process to end
}

TEST_CASE("a machine that is heard again after its lease is dismissed once") {
  Script script({.ends_with_agent = false, .lease = 60s});
  script.hear("a", {joined_hello()});
  script.pass(62s);
  CHECK(script.turn().size() == 1);
  const std::vector<Event> lost = script.turn();
  REQUIRE(lost.size() == 1);
  CHECK(is<AgentLost>(lost[0]));
  script.pass(10s);
  CHECK(script.machine.take_actions().empty());
  script.hear("a");
  script.pass(1s);
  const std::vector<DriverAction> actions = script.machine.take_actions();
  REQUIRE(actions.size() == 1);
  CHECK(std::get<Dismiss>(actions[0]).agent == AgentNumber{0});
  script.hear("a", {Warning{"late"}});
  script.pass(1s);
  CHECK(script.machine.take_actions().empty());
  CHECK(script.turn().size() == 1);  // acknowledged, so that it can end
}

TEST_CASE("a machine that said it is gone is not missed") {
  Script script({.ends_with_agent = false, .lease = 60s});
  script.hear("a", {joined_hello()});
  script.pass(1s);
  script.hear("a", {NodeOut{"drained", true}});
  script.pass(5min);
  CHECK(script.turn().size() == 2);
  CHECK(script.turn().empty());
  script.hear("b", {joined_hello(), NodeOut{"drained", true}});  // all in one word
  script.pass(5min);
  CHECK(script.turn().size() == 2);
  CHECK(script.turn().empty());
}

TEST_CASE("a machine of the driver before is lost when it does not come back within its lease") {
  Script script({.ends_with_agent = false, .lease = 60s});
  for (const auto& [number, name] : {std::pair(2u, "a"), std::pair(5u, "b")}) {
    script.peers.expect(AgentNumber{number}, name, 7, script.now);
    script.machine.on_agent_expected(name, script.now);
  }
  script.pass(59s);
  script.hear("b", {joined_hello()});
  script.pass(2s);
  const std::vector<Event> events = script.turn();
  REQUIRE(events.size() == 1);  // the hello of the other was told to the driver before
  CHECK(std::get<AgentLost>(events[0]).agent == AgentNumber{2});
}

TEST_CASE("a driver that stood still gives its machines time to be heard") {
  Script script({.ends_with_agent = false, .lease = 60s});
  script.hear("a", {joined_hello()});
  script.pass(1s);
  CHECK(script.turn().size() == 1);
  script.now += 1h;
  script.machine.on_time(script.now, script.peers);
  CHECK(script.turn().empty());
}

TEST_CASE("an agent's first word may come after its end") {
  Script script(false);
  script.machine.on_agent_started("a", script.now);
  script.machine.on_agent_ended("a", "killed");
  CHECK_FALSE(script.machine.has_more(script.peers));
  CHECK(script.turn().empty());
  script.hear("a", {AgentHello{}});
  CHECK(script.turn().size() == 1);
  const std::vector<Event> events = script.turn();
  REQUIRE(events.size() == 1);
  CHECK(is<AgentLost>(events[0]));
}

TEST_CASE("an agent that is silent is ended, also one that was never heard") {
  for (const bool was_heard : {true, false}) {
    CAPTURE(was_heard);
    Script script;
    script.machine.on_agent_started("a", script.now);
    if (was_heard) script.hear("a");
    script.pass(DriverMachine::kAgentSilence);
    CHECK(script.machine.take_actions().empty());
    script.pass(2 * DriverMachine::kLookEvery);
    const std::vector<DriverAction> actions = script.machine.take_actions();
    REQUIRE(actions.size() == 1);
    CHECK(std::get<EndAgent>(actions[0]).identity == "a");
    CHECK_FALSE(script.machine.has_more(script.peers));  // it is not gone yet
    script.machine.on_agent_ended("a", "killed by signal 9 (SIGKILL)");
    CHECK(script.turn().empty());
    const std::vector<DriverAction> last = script.machine.take_actions();
    REQUIRE(last.size() == 1);
    CHECK(std::get<GiveUp>(last[0]).why == GiveUp::Why::kAgent);
    CHECK(std::get<GiveUp>(last[0]).how.find("a has said nothing for 20 s") == 0);
  }
}

TEST_CASE("a silent agent that cannot be ended is taken for gone") {
  Script script;
  script.machine.on_agent_started("a", script.now);
  script.pass(DriverMachine::kAgentSilence + DriverMachine::kAgentEnd);
  CHECK_FALSE(script.machine.has_more(script.peers));
  script.pass(1s);
  CHECK(script.machine.has_more(script.peers));
}

TEST_CASE("agents that send a word now and then are left alone") {
  Script script;
  script.machine.on_agent_started("a", script.now);
  for (int i = 0; i < 10; ++i) {
    script.pass(DriverMachine::kAgentSilence - 1s);
    script.hear("a");
  }
  CHECK(script.machine.take_actions().empty());
}

TEST_CASE("a driver that stood still does not hold it against its agents") {
  Script script;
  script.machine.on_agent_started("a", script.now);
  script.hear("a");
  for (int i = 0; i < 10; ++i) {
    script.now += 1h;  // and what they said meanwhile is read later
    script.machine.on_time(script.now, script.peers);
  }
  CHECK(script.machine.take_actions().empty());
}

// ---- The store

std::string said(const std::vector<DriverAction>& actions) {
  std::string text;
  for (const DriverAction& action : actions) {
    if (const auto* say = std::get_if<Say>(&action)) text += "[" + say->text + "]";
    if (std::holds_alternative<StartStore>(action)) text += "[start]";
    if (const auto* give_up = std::get_if<GiveUp>(&action))
      text += "[give up: " + give_up->how + "]";
  }
  return text;
}

TEST_CASE("a silent store is waited for, which is told, and so is its answer") {
  Script script;
  script.machine.on_store_silent("the store at s: no answer");
  CHECK(script.machine.store_is_silent());
  script.pass(800ms);
  CHECK(said(script.machine.take_actions()) == "");
  script.pass(200ms);
  CHECK(said(script.machine.take_actions()) ==
        "[the store at s: no answer: waiting up to 300 s for it, meanwhile trials go on to where "
        "they need a verdict]");
  script.pass(280s);
  CHECK(said(script.machine.take_actions()) == "");
  script.machine.on_store_answered();
  CHECK(said(script.machine.take_actions()) == "[the store answers again after 281 s]");
  script.pass(600s);
  CHECK(said(script.machine.take_actions()) == "");
}

TEST_CASE("a store that answers soon is not spoken of") {
  Script script;
  script.machine.on_store_silent("the store at s: no answer");
  script.pass(800ms);
  script.machine.on_store_answered();
  CHECK(said(script.machine.take_actions()) == "");
}

TEST_CASE("a store is given up when its patience is over, once") {
  Script script;
  script.machine.on_store_silent("the store at s: no answer");
  script.pass(300s);
  script.machine.take_actions();
  script.pass(10s);
  CHECK(said(script.machine.take_actions()) ==
        "[give up: the store at s: no answer (waited for 300 s)]");
}

TEST_CASE("a store whose patience has no end is waited for") {
  Script script(DriverMachine::Options{.store_patience = 0s});
  script.machine.on_store_silent("the store at s: no answer");
  script.pass(1000s);
  CHECK(said(script.machine.take_actions()) ==
        "[the store at s: no answer: waiting for it, meanwhile trials go on to where they need a "
        "verdict]");
}

TEST_CASE("a driver that stood still does not hold it against its store") {
  Script script;
  script.machine.on_store_silent("the store at s: no answer");
  script.now += 1h;
  script.machine.on_time(script.now, script.peers);
  CHECK(said(script.machine.take_actions()).find("give up") == std::string::npos);
}

TEST_CASE("after a signal a silent store is waited for a little only") {
  Script script;
  script.machine.on_store_silent("the store at s: no answer");
  script.pass(5s);
  script.machine.take_actions();
  script.machine.on_signal(SIGTERM);
  script.pass(DriverMachine::kStoreFarewell);
  CHECK(said(script.machine.take_actions()) == "");
  script.pass(1s);
  CHECK(said(script.machine.take_actions()) ==
        "[give up: the store at s: no answer (waited for 15 s)]");
}

TEST_CASE("a signal to a driver whose store answers leaves it time to end in order") {
  Script script;
  script.machine.on_signal(SIGTERM);
  script.pass(60s);
  script.machine.on_store_silent("the store at s: no answer");
  script.pass(5s);
  CHECK(said(script.machine.take_actions()).find("give up") == std::string::npos);
}

TEST_CASE("while the store is silent turns are tried again and agents are heard") {
  Script script;
  script.machine.on_agent_started("a", script.now);
  script.machine.on_store_silent("the store at s: no answer");
  for (int second = 0; second < 250; ++second) {
    script.hear_text("a", "1");
    script.pass(1s);
  }
  CHECK(script.machine.idle_time(script.now, {}, script.peers) == DriverMachine::kStoreRetry);
  for (const DriverAction& action : script.machine.take_actions()) {
    CHECK_FALSE(std::holds_alternative<EndAgent>(action));
  }
  CHECK(script.turn().size() == 250);
}

TEST_CASE("a private server that ends is started again at once") {
  Script script;
  script.machine.on_server_ended("redis-server was killed");
  script.pass(200ms);
  CHECK(said(script.machine.take_actions()) ==
        "[redis-server was killed: the store is started again][start]");
  script.pass(600s);
  CHECK(said(script.machine.take_actions()) == "");
  // Much later another one is the first of its kind.
  script.machine.on_turn_done();
  script.machine.on_server_ended("redis-server was killed");
  script.pass(200ms);
  CHECK(said(script.machine.take_actions()) ==
        "[redis-server was killed: the store is started again][start]");
}

TEST_CASE("a private server that ends once an hour is started at once, with or without turns") {
  Script script;
  for (int hour = 0; hour < 5; ++hour) {
    script.machine.on_server_ended("redis-server was killed");
    script.pass(200ms);
    CHECK(said(script.machine.take_actions()) ==
          "[redis-server was killed: the store is started again][start]");
    script.pass(3600s);
  }
}

TEST_CASE("a private server that ends each time is started after longer and longer pauses") {
  Script script;
  int starts = 0;
  std::string last;
  script.machine.on_server_ended("no space");
  for (int i = 0; i < 400 * 5 && last.empty(); ++i) {
    script.machine.on_store_silent("the store at s: refused");
    script.pass(200ms);
    for (const DriverAction& action : script.machine.take_actions()) {
      if (const auto* give_up = std::get_if<GiveUp>(&action)) last = give_up->how;
      if (!std::holds_alternative<StartStore>(action)) continue;
      ++starts;
      script.machine.on_server_ended("no space");
    }
  }
  CHECK(last == "no space (waited for 300 s)");
  // 0 + 0.2 + 0.4 + 0.8 + 1.6 + 3.2 s, and then every 5 s
  CHECK(starts >= 60);
  CHECK(starts <= 66);
}

// ---- What is shown

TEST_CASE("the status is shown soon after a change, and now and then anyway") {
  Script script;
  script.machine.on_shown(script.now);
  script.now += DriverMachine::kStatusEvery;
  CHECK_FALSE(script.machine.show_is_due(script.now));
  script.machine.on_turn_done();
  CHECK(script.machine.show_is_due(script.now));
  script.machine.on_shown(script.now);
  script.now += DriverMachine::kStatusAnyway;
  CHECK(script.machine.show_is_due(script.now));
}

}  // namespace
}  // namespace tune
