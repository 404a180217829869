#include "core/platform/transport.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <zmq.hpp>

#include "core/link.h"
#include "core/refusal.h"
#include "platform/endpoints.h"
#include "platform/surroundings.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

using std::chrono::seconds;
using Texts = std::vector<std::string>;

TEST_CASE("events arrive in order, commands go back, and acknowledgements free what was kept") {
  const TemporaryFolder folder;
  Driver driver(folder);
  driver.start(1);
  Agent agent(driver);
  Texts said;
  for (int i = 0; i < 1000; ++i) agent.say(said.emplace_back(std::to_string(i)));
  const std::size_t kept = agent.endpoint.unacknowledged_bytes();
  CHECK(kept > 1000);
  CHECK(eventually([&] {
    agent.turn();
    driver.turn(false);
    return driver.received.size() == said.size();
  }));
  CHECK(driver.received == said);
  CHECK(agent.endpoint.unacknowledged_bytes() == kept);  // not in the journal yet
  for (std::uint32_t i = 0; i < 100; ++i) driver.endpoint->send(driver.last_agent, numbered(i));
  CHECK(eventually([&] {
    driver.turn();
    agent.turn();
    return agent.received.size() == 100 && agent.endpoint.unacknowledged_bytes() == 0;
  }));
  for (std::uint32_t i = 0; i < 100; ++i) CHECK(agent.received[i] == i);
}

TEST_CASE("an agent may speak before there is a driver") {
  const TemporaryFolder folder;
  Driver driver(folder);
  Agent agent(driver);
  agent.say("early");
  for (int i = 0; i < 5; ++i) agent.turn();
  driver.start(1);
  CHECK(eventually([&] {
    agent.turn();
    driver.turn();
    return driver.received == Texts{"early"};
  }));
}

TEST_CASE("agents are numbered as they are first heard, and each is heard apart") {
  const TemporaryFolder folder;
  Driver driver(folder);
  driver.start(1);
  Agent first(driver, "a");
  Agent second(driver, "b");
  for (const auto& [agent, text] : {std::pair{&first, "1"}, {&second, "2"}, {&first, "3"}}) {
    agent->say(text);
    const std::size_t before = driver.received.size();
    REQUIRE(eventually([&, spoken = agent] {
      spoken->turn();
      driver.turn();
      return driver.received.size() > before;
    }));
    CHECK(driver.last_agent == AgentNumber{agent == &first ? 0u : 1u});
  }
  CHECK(driver.endpoint->peers().size() == 2);
  driver.endpoint->send({1}, numbered(7));
  CHECK(eventually([&] {
    driver.turn();
    first.turn();
    second.turn();
    return second.received == std::vector<std::uint32_t>{7};
  }));
  CHECK(first.received.empty());
}

TEST_CASE("a next driver is told what the former one has not put into the journal, once") {
  const TemporaryFolder folder;
  Driver driver(folder);
  driver.start(1);
  Agent agent(driver);
  agent.say("a");
  REQUIRE(eventually([&] {
    agent.turn();
    driver.turn();
    return agent.endpoint.unacknowledged_bytes() == 0;
  }));
  agent.say("b");
  REQUIRE(eventually([&] {
    agent.turn();
    driver.turn(false);
    return driver.received == Texts{"a", "b"};
  }));
  driver.end();
  driver.received.clear();
  agent.say("c");
  agent.turn();
  driver.start(2);
  agent.say("d");
  CHECK(eventually([&] {
    agent.turn(std::chrono::milliseconds(100));
    driver.turn();
    return driver.received.size() >= 3 && agent.endpoint.unacknowledged_bytes() == 0;
  }));
  CHECK(driver.received == Texts{"b", "c", "d"});
}

TEST_CASE("frames that cannot be read are dropped with a complaint, and nobody is remembered") {
  const TemporaryFolder folder;
  Driver driver(folder);
  driver.start(1);
  zmq::context_t context;
  zmq::socket_t stranger(context, zmq::socket_type::dealer);
  stranger.set(zmq::sockopt::linger, 0);
  stranger.connect(driver.address);
  stranger.send(zmq::str_buffer("GET / HTTP/1.1"));
  stranger.send(zmq::message_t(), zmq::send_flags::sndmore);
  stranger.send(zmq::str_buffer("two parts"));
  CHECK(eventually([&] {
    driver.turn();
    return !driver.endpoint->peers().last_complaint().empty();
  }));
  CHECK_HAS(driver.endpoint->peers().last_complaint(), "was dropped");
  CHECK(driver.endpoint->peers().size() == 0);
  Agent agent(driver);
  agent.say("still here");
  CHECK(eventually([&] {
    agent.turn();
    driver.turn();
    return driver.received == Texts{"still here"};
  }));
  CHECK(driver.last_agent == AgentNumber{0});
}

TEST_CASE("a message that cannot be read becomes a warning, those beside it arrive") {
  const TemporaryFolder folder;
  Driver driver(folder);
  driver.start(1);
  zmq::context_t context;
  zmq::socket_t peer(context, zmq::socket_type::dealer);
  peer.set(zmq::sockopt::linger, 0);
  peer.connect(driver.address);
  Link link(5);
  link.send(encoded(AgentEvent(Warning{"before"})));
  link.send("\xc1");
  link.send(encoded(AgentEvent(Warning{"after"})));
  for (const std::string& frame : link.frames()) peer.send(zmq::buffer(frame));
  CHECK(eventually([&] {
    driver.turn();
    return driver.received.size() == 3;
  }));
  CHECK(driver.received[0] == "before");
  CHECK_HAS(driver.received[1], "a message of 1 bytes was dropped");
  CHECK(driver.received[2] == "after");
  CHECK_HAS(driver.endpoint->peers().last_complaint(), "a message of 1 bytes was dropped");
}

TEST_CASE("an agent drops what it cannot read") {
  const TemporaryFolder folder;
  zmq::context_t context;
  zmq::socket_t router(context, zmq::socket_type::router);
  router.set(zmq::sockopt::linger, 0);
  router.set(zmq::sockopt::router_mandatory, 1);
  Driver driver(folder);
  router.bind(driver.address);
  Agent agent(driver);
  agent.say("hello");
  agent.turn();
  zmq::message_t identity;
  REQUIRE(router.recv(identity));
  router.send(identity, zmq::send_flags::sndmore);
  router.send(zmq::str_buffer("nonsense"));
  CHECK(eventually([&] {
    agent.turn();
    return !agent.endpoint.last_complaint().empty();
  }));
}

TEST_CASE("heartbeats show that the other side lives") {
  const TemporaryFolder folder;
  Driver driver(folder);
  driver.now = seconds(1);  // it may hear the agent in its first turn
  driver.start(1);
  Agent agent(driver);
  agent.say("x");
  REQUIRE(eventually([&] {
    agent.turn();
    driver.turn();
    return agent.endpoint.unacknowledged_bytes() == 0;
  }));
  const auto heard = driver.endpoint->peers().last_heard(driver.last_agent);
  const auto heard_by_agent = agent.endpoint.last_heard();
  CHECK(heard >= seconds(1));
  driver.now += seconds(5);
  agent.now += seconds(5);
  CHECK(eventually([&] {
    agent.turn();
    driver.turn();
    return driver.endpoint->peers().last_heard(driver.last_agent) >= heard + seconds(5) &&
           agent.endpoint.last_heard() >= heard_by_agent + seconds(5);
  }));
}

TEST_CASE("an address that cannot be listened at is an error that names it") {
  CHECK_HAS(
      refusal([] { DriverEndpoint endpoint("ipc:///nowhere/at/all/d", 1); }, ErrorCode::kProcess),
      "/nowhere/at/all/d");
}

}  // namespace
}  // namespace tune::testing
