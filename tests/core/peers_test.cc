#include "core/peers.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace tune {
namespace {

using namespace std::chrono_literals;

struct PeersFixture {
  std::vector<Peers::Told> hear(const std::string& identity, Link& link, Link::Time now = 0s) {
    std::vector<Peers::Told> told;
    for (const std::string& frame : link.frames()) peers.receive(identity, frame, now, told);
    return told;
  }
  // The frames and their receivers; `links` hear them.
  std::vector<std::string> flush(Link::Time now) {
    std::vector<std::string> to;
    peers.flush(now, [&](const std::string& identity, const std::string& frame) {
      to.push_back(identity);
      if (identity == "a") a.receive(frame);
      if (identity == "b") b.receive(frame);
      return true;
    });
    return to;
  }
  Peers peers{1};
  Link a{1};
  Link b{1};
};

using Names = std::vector<std::string>;

TEST_CASE_FIXTURE(PeersFixture, "agents are numbered as they are first heard") {
  a.send(encoded(AgentEvent(Warning{"1"})));
  b.send(encoded(AgentEvent(Warning{"2"})));
  CHECK(hear("b", b).at(0).agent == AgentNumber{0});
  CHECK(hear("a", a).at(0).agent == AgentNumber{1});
  CHECK(peers.number_of("a") == AgentNumber{1});
  CHECK_FALSE(peers.number_of("c"));
  CHECK(peers.size() == 2);
}

TEST_CASE_FIXTURE(PeersFixture, "what an agent told is acknowledged up to where it is kept") {
  for (const char* text : {"1", "2", "3"}) a.send(encoded(AgentEvent(Warning{text})));
  const std::size_t each = a.unacknowledged_bytes() / 3;
  const std::vector<Peers::Told> told = hear("a", a);
  REQUIRE(told.size() == 3);
  CHECK(told[0].bytes == each);
  flush(2s);
  CHECK(a.unacknowledged_bytes() == 3 * each);
  peers.acknowledge(AgentNumber{0}, told[1].position);
  CHECK(flush(2s) == Names{"a"});
  CHECK(a.unacknowledged_bytes() == each);
  peers.acknowledge(AgentNumber{0}, told[2].position);
  peers.acknowledge(AgentNumber{0}, told[0].position);  // late: it says nothing new
  flush(2s);
  CHECK(a.unacknowledged_bytes() == 0);
}

TEST_CASE_FIXTURE(PeersFixture,
                  "what an earlier life told does not acknowledge what this one says") {
  for (const char* text : {"1", "2"}) a.send(encoded(AgentEvent(Warning{text})));
  const std::vector<Peers::Told> told = hear("a", a);
  a = Link(2);
  a.send(encoded(AgentEvent(Warning{"3"})));
  CHECK(hear("a", a).at(0).position.sequence == 1);
  peers.acknowledge(AgentNumber{0}, told[1].position);
  flush(2s);
  CHECK(a.unacknowledged_bytes() > 0);
}

TEST_CASE_FIXTURE(PeersFixture,
                  "a message that cannot be read is told as a warning, and acknowledged") {
  a.send("\xc1");
  const std::vector<Peers::Told> told = hear("a", a);
  REQUIRE(told.size() == 1);
  const auto& warning = std::get<Warning>(told[0].event);
  CHECK(warning.text.find("from a: a message of 1 bytes was dropped: ") == 0);
  peers.acknowledge(AgentNumber{0}, told[0].position);
  flush(2s);
  CHECK(a.unacknowledged_bytes() == 0);
}

TEST_CASE_FIXTURE(PeersFixture, "who sends nothing that can be read is not remembered") {
  std::vector<Peers::Told> told;
  peers.receive("stranger", "GET / HTTP/1.1", 0s, told);
  CHECK(told.empty());
  CHECK(peers.size() == 0);
  CHECK(peers.last_complaint().find("was dropped") != std::string::npos);
}

TEST_CASE_FIXTURE(PeersFixture, "an agent to whom nothing is said hears a heartbeat every second") {
  a.send(encoded(AgentEvent(Warning{"1"})));
  hear("a", a, 1s);
  flush(1s);
  CHECK(flush(1999ms).empty());
  CHECK(flush(2200ms) == Names{"a"});
  CHECK(peers.last_heard(AgentNumber{0}) == 1s);
}

TEST_CASE_FIXTURE(PeersFixture, "an agent that has found a newer driver falls silent for this one") {
  a.send(encoded(AgentEvent(Warning{"1"})));
  hear("a", a, 1s);
  a.receive(Link(2).heartbeat());
  a.send(encoded(AgentEvent(Warning{"2"})));
  CHECK(hear("a", a, 3s).empty());
  CHECK(peers.last_heard(AgentNumber{0}) == 1s);
}

TEST_CASE_FIXTURE(PeersFixture, "what a driver before has journaled is dropped when it comes again") {
  const auto say = [&](const char* text) { a.send(encoded(AgentEvent(Warning{text}))); };
  for (const char* text : {"1", "2", "3"}) say(text);
  const std::vector<Peers::Told> told = hear("a", a);
  REQUIRE(told.size() == 3);
  CHECK(told[2].number == 3);
  peers.acknowledge(AgentNumber{0}, told[0].position);  // of two that are in the journal
  flush(2s);
  peers = Peers(2);
  peers.expect(AgentNumber{5}, "a", 2, 10s);
  CHECK(peers.number_of("a") == AgentNumber{5});
  CHECK(peers.last_heard(AgentNumber{5}) == Link::Time(10s));
  CHECK(flush(12s) == Names{"a"});  // so that it learns of this driver, and nobody else does
  say("4");
  const std::vector<Peers::Told> again = hear("a", a);
  REQUIRE(again.size() == 2);
  CHECK(again[0].agent == AgentNumber{5});
  CHECK(std::get<Warning>(again[0].event).text == "3");
  CHECK(again[0].number == 3);
  CHECK(again[1].number == 4);
  peers.acknowledge(AgentNumber{5}, again[1].position);
  flush(14s);
  CHECK(a.unacknowledged_bytes() == 0);
  b.send(encoded(AgentEvent(Warning{"new"})));
  CHECK(hear("b", b).at(0).agent == AgentNumber{6});
}

TEST_CASE_FIXTURE(PeersFixture, "an agent that is waited for stays so when its frame cannot be read") {
  peers.expect(AgentNumber{0}, "a", 2, 0s);
  std::vector<Peers::Told> told;
  peers.receive("a", "nonsense", 1s, told);
  CHECK(told.empty());
  CHECK(peers.number_of("a") == AgentNumber{0});
  CHECK(peers.last_heard(AgentNumber{0}) == Link::Time(0s));
}

TEST_CASE_FIXTURE(PeersFixture, "a hello has the name of its connection, whatever the agent says") {
  AgentHello hello;
  hello.identity = "another";
  a.send(encoded(AgentEvent(hello)));
  CHECK(std::get<Apart<AgentHello>>(hear("a", a).at(0).event)->identity == "a");
}

}  // namespace
}  // namespace tune
