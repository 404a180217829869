#include "core/link.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "core/wire.h"

namespace tune {
namespace {

using Texts = std::vector<std::string>;

Texts pass_on(const Texts& frames, Link& to) {
  Texts fresh;
  for (const std::string& frame : frames) {
    for (const std::string_view message : to.receive(frame)) fresh.emplace_back(message);
  }
  return fresh;
}

TEST_CASE("messages queued together travel in one frame and arrive in order") {
  Link sender(1), receiver(1);
  sender.send("a");
  sender.send("");
  sender.send("c");
  const Texts frames = sender.frames();
  CHECK(frames.size() == 1);
  CHECK(pass_on(frames, receiver) == Texts{"a", "", "c"});
  CHECK(sender.frames().empty());
}

TEST_CASE("a frame holds at most its payload, or one message that is larger") {
  Link sender(1), receiver(1);
  const std::string half(Link::kMaxFramePayload / 2, 'x');
  const std::string large(2 * Link::kMaxFramePayload, 'y');
  for (const std::string& message : {half, half, half, large, half}) sender.send(message);
  const Texts frames = sender.frames();
  CHECK(frames.size() == 4);  // two halves, one half, the large one, one half
  CHECK(pass_on(frames, receiver) == Texts{half, half, half, large, half});
}

TEST_CASE("a message is kept and counted until the other side acknowledges it") {
  Link sender(1), receiver(1);
  sender.send("four");
  sender.send("ty");
  CHECK(sender.unacknowledged_bytes() == 6);
  pass_on(sender.frames(), receiver);
  CHECK(receiver.frames().empty());  // it has not said that it may be acknowledged
  CHECK_FALSE(receiver.owes_acknowledgement());
  receiver.acknowledge();
  CHECK(receiver.owes_acknowledgement());
  pass_on(receiver.frames(), sender);
  CHECK_FALSE(receiver.owes_acknowledgement());
  CHECK(sender.unacknowledged_bytes() == 0);
}

TEST_CASE("a receiver that stands still is handed everything once") {
  Link sender(1), receiver(1);
  sender.send("a");
  const Texts first = sender.frames();
  std::size_t handed = 0;
  for (int second = 0; second < 3600; ++second) {
    for (const std::string& frame : sender.frames()) handed += frame.size();
    sender.heartbeat();
  }
  CHECK(handed == 0);
  CHECK(sender.unacknowledged_bytes() == 1);
  CHECK(pass_on(first, receiver) == Texts{"a"});
}

TEST_CASE("while acknowledgements come in nothing is offered again") {
  Link sender(1), receiver(1);
  for (int i = 0; i < 3; ++i) sender.send("m");
  Texts frames = sender.frames();
  for (int turn = 1; turn < 10; ++turn) {
    pass_on(frames, receiver);
    receiver.acknowledge();
    pass_on(receiver.frames(), sender);
    sender.send("m");
    frames = sender.frames();
    CHECK(frames.size() == 1);
    CHECK(sender.unacknowledged_bytes() == 1);
  }
}

TEST_CASE("what got lost is seen by the next heartbeat, asked for and offered again") {
  Link sender(1), receiver(1);
  sender.send("lost");
  sender.frames();
  CHECK(receiver.receive(sender.heartbeat()).empty());
  pass_on(receiver.frames(), sender);  // at once, not with its next heartbeat
  CHECK(pass_on(sender.frames(), receiver) == Texts{"lost"});
  receiver.receive(sender.heartbeat());
  CHECK(receiver.frames().empty());  // nothing is missing now
}

TEST_CASE("after a gap messages wait until what is missing comes again") {
  Link sender(1), receiver(1);
  sender.send("lost");
  sender.frames();
  sender.send("early");
  CHECK(pass_on(sender.frames(), receiver).empty());
  pass_on(receiver.frames(), sender);
  CHECK(pass_on(sender.frames(), receiver) == Texts{"lost", "early"});
}

TEST_CASE("frames under way that show the same gap have it filled once") {
  Link sender(1), receiver(1);
  sender.send("lost");
  sender.frames();
  Texts requests;
  for (const char* message : {"b", "c", "d"}) {
    sender.send(message);
    CHECK(pass_on(sender.frames(), receiver).empty());
    for (std::string& frame : receiver.frames()) requests.push_back(std::move(frame));
  }
  requests.push_back(receiver.heartbeat());
  REQUIRE(requests.size() > 2);
  Texts again;
  for (const std::string& request : requests) {
    sender.receive(request);
    for (std::string& frame : sender.frames()) again.push_back(std::move(frame));
  }
  CHECK(again.size() == 1);
  CHECK(pass_on(again, receiver) == Texts{"lost", "b", "c", "d"});
}

TEST_CASE("a request that got lost is repeated by the next heartbeat") {
  Link sender(1), receiver(1);
  sender.send("a");
  sender.frames();
  receiver.receive(sender.heartbeat());
  receiver.frames();  // lost
  sender.receive(receiver.heartbeat());
  CHECK(pass_on(sender.frames(), receiver) == Texts{"a"});
}

TEST_CASE("what is lost again is asked for again") {
  Link sender(1), receiver(1);
  sender.send("a");
  for (int time = 0; time < 3; ++time) {
    REQUIRE(sender.frames().size() == 1);  // lost
    receiver.receive(sender.heartbeat());
    pass_on(receiver.frames(), sender);
  }
  CHECK(pass_on(sender.frames(), receiver) == Texts{"a"});
}

TEST_CASE("a frame that is not taken is due again, with its messages and its acknowledgement") {
  Link sender(1), receiver(1);
  receiver.send("b");
  CHECK(pass_on(receiver.frames(), sender) == Texts{"b"});
  sender.acknowledge();
  sender.send("a");
  CHECK_FALSE(sender.next_frame().empty());
  sender.refused();
  pass_on({sender.heartbeat()}, receiver);
  CHECK(receiver.frames().empty());  // what was not handed over is not missed
  CHECK(receiver.unacknowledged_bytes() == 0);
  sender.heartbeat();
  sender.refused();
  CHECK(sender.owes_acknowledgement());
  CHECK(pass_on(sender.frames(), receiver) == Texts{"a"});
  CHECK(sender.frames().empty());
}

TEST_CASE("an acknowledgement that got lost is said again when the message comes again") {
  Link sender(1), receiver(1);
  sender.send("a");
  const Texts frames = sender.frames();
  pass_on(frames, receiver);
  receiver.acknowledge();
  receiver.frames();  // lost
  pass_on(frames, receiver);
  pass_on(receiver.frames(), sender);
  CHECK(sender.unacknowledged_bytes() == 0);
}

TEST_CASE("a heartbeat carries the acknowledgement") {
  Link sender(1), receiver(1);
  sender.send("a");
  pass_on(sender.frames(), receiver);
  receiver.acknowledge();
  CHECK(sender.receive(receiver.heartbeat()).empty());
  CHECK(sender.unacknowledged_bytes() == 0);
}

TEST_CASE("a new life of the other side is given what the former one has not acknowledged") {
  Link agent(9), driver(1);
  for (const char* message : {"a", "b", "c"}) agent.send(message);
  CHECK(pass_on(agent.frames(), driver) == Texts{"a", "b", "c"});
  driver.acknowledge();
  driver.send("to the agent");
  pass_on(driver.frames(), agent);
  agent.send("d");
  const Texts to_the_old_one = agent.frames();

  Link next(2);
  CHECK(pass_on(to_the_old_one, next).empty());  // meant for another life
  const Texts answer = next.frames();            // says who it is
  REQUIRE(answer.size() == 1);
  pass_on(answer, agent);
  CHECK(agent.peer_epoch() == 2);
  CHECK(pass_on(agent.frames(), next) == Texts{"d"});
  agent.send("e");
  CHECK(pass_on(agent.frames(), next) == Texts{"e"});
  next.acknowledge();
  pass_on(next.frames(), agent);
  CHECK(agent.unacknowledged_bytes() == 0);
}

TEST_CASE("frames of a former life are dropped") {
  Link former(1), next(2), agent(9);
  former.send("late");
  const Texts late = former.frames();
  next.send("new");
  CHECK(pass_on(next.frames(), agent) == Texts{"new"});
  CHECK(agent.is_in_touch());
  CHECK(pass_on(late, agent).empty());
  CHECK(agent.peer_epoch() == 2);
  CHECK_FALSE(agent.is_in_touch());
}

TEST_CASE("a heartbeat for a later life of this side is no sign of the other one") {
  Link former(3), next(4), agent(9);
  agent.receive(former.heartbeat());
  former.receive(agent.heartbeat());
  CHECK(former.is_in_touch());
  next.receive(agent.heartbeat());  // it does not know this life yet
  CHECK(next.is_in_touch());
  agent.receive(next.heartbeat());
  former.receive(agent.heartbeat());
  CHECK_FALSE(former.is_in_touch());
}

TEST_CASE("an acknowledgement of what was never sent removes nothing") {
  Link sender(1);
  sender.send("a");
  PackWriter frame;
  frame.array(8);
  for (const std::uint64_t field : {7, 1, 1000, 1, 0, 1, 0}) frame.unsigned_integer(field);
  frame.array(0);
  sender.receive(frame.bytes());
  CHECK(sender.unacknowledged_bytes() == 1);
}

TEST_CASE("a message keeps its number whichever life of the other side hears it") {
  Link sender(1);
  for (const char* text : {"a", "b", "c"}) sender.send(text);
  Link first(1);
  for (const std::string& frame : sender.frames()) first.receive(frame);
  CHECK(first.received_before() == 0);
  first.acknowledge({1, 2});
  sender.receive(first.heartbeat());
  Link second(2);
  sender.receive(second.heartbeat());
  sender.send("d");
  std::vector<std::string> heard;
  for (const std::string& frame : sender.frames()) {
    for (const std::string_view message : second.receive(frame)) heard.emplace_back(message);
  }
  CHECK(heard == std::vector<std::string>{"c", "d"});
  CHECK(second.received_before() == 2);
  CHECK(second.received().sequence == 2);
  second.acknowledge();
  sender.receive(second.heartbeat());
  Link third(3);
  sender.receive(third.heartbeat());
  third.receive(sender.heartbeat());
  CHECK(third.received_before() == 4);
}

TEST_CASE("a malformed frame is refused and nothing of it counts as received") {
  Link sender(1), receiver(1);
  sender.send("first");
  sender.send("second");
  const std::string frame = sender.frames()[0];
  for (std::size_t length = 0; length < frame.size(); ++length) {
    CHECK_THROWS_AS(receiver.receive(frame.substr(0, length)), Error);
  }
  CHECK_THROWS_AS(receiver.receive(frame + "x"), Error);
  CHECK_THROWS_AS(receiver.receive("GET / HTTP/1.1"), Error);
  CHECK(receiver.peer_epoch() == 0);
  CHECK(receiver.receive(frame) == std::vector<std::string_view>{"first", "second"});
}

// Two links, and between them connections that break: what is under way is then lost, or comes
// twice, or late.
class Storm {
 public:
  explicit Storm(std::uint64_t seed) : random_(seed, "link_storm", 0) {}

  void run(int turns) {
    for (int turn = 0; turn < turns; ++turn) step(turn < turns / 2);
    for (int turn = 0; turn < 20; ++turn) calm();
  }
  Texts sent[2];
  Texts received[2];  // by the other side
  Link links[2] = {Link(3), Link(5)};

 private:
  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(bound)));
  }
  void step(bool talking) {
    for (int side = 0; side < 2; ++side) {
      if (talking && random_.uniform() < 0.5) {
        sent[side].push_back(std::to_string(sent[side].size()));
        links[side].send(sent[side].back());
      }
      for (std::string& frame : links[side].frames()) wire_[side].push_back(std::move(frame));
      if (random_.uniform() < 0.1) wire_[side].push_back(links[side].heartbeat());
      disturb(side);
      const std::size_t through = below(wire_[side].size() + 1);
      for (std::size_t i = 0; i < through; ++i) deliver(side);
    }
  }
  void disturb(int side) {
    std::deque<std::string>& wire = wire_[side];
    const double event = random_.uniform();
    if (event < 0.1) {
      wire.clear();
    } else if (event < 0.2 && !wire.empty()) {
      wire.push_back(wire[below(wire.size())]);
    } else if (event < 0.3 && wire.size() > 1) {
      std::swap(wire[below(wire.size())], wire[below(wire.size())]);
    }
  }
  void calm() {
    for (int side = 0; side < 2; ++side) {
      for (std::string& frame : links[side].frames()) wire_[side].push_back(std::move(frame));
      wire_[side].push_back(links[side].heartbeat());
      while (!wire_[side].empty()) deliver(side);
    }
  }
  void deliver(int side) {
    for (const std::string_view message : links[1 - side].receive(wire_[side].front())) {
      received[side].emplace_back(message);
    }
    wire_[side].pop_front();
    if (random_.uniform() < 0.8) links[1 - side].acknowledge();
  }

  RandomStream random_;
  std::deque<std::string> wire_[2];
};

TEST_CASE("over connections that lose, repeat and swap frames all arrives once and in order") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Storm storm(seed);
    storm.run(200);
    for (int side = 0; side < 2; ++side) {
      REQUIRE(storm.received[side] == storm.sent[side]);
      CHECK(storm.links[side].unacknowledged_bytes() == 0);
    }
  }
}

// In order, as ZeroMQ has it: a break swallows what was on its way, the rest of the queue stays.
TEST_CASE(
    "no message waits in a queue more than twice, however connections break and stand still") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "link_queue", 0);
    Link sender(1), receiver(1);
    std::deque<std::string> queue, back;
    int said = 0;
    for (int turn = 0; turn < 300; ++turn) {
      const auto below = [&](std::size_t bound) {
        return static_cast<std::ptrdiff_t>(random.integer(0, static_cast<std::int64_t>(bound)));
      };
      if (random.uniform() < 0.3) sender.send('#' + std::to_string(++said) + '#');
      for (std::string& frame : sender.frames()) queue.push_back(std::move(frame));
      queue.push_back(sender.heartbeat());
      if (random.uniform() < 0.1) {
        queue.erase(queue.begin(), queue.begin() + below(queue.size() + 1));
        back.clear();
      }
      if (random.uniform() < 0.5) {  // else it stands still
        for (std::ptrdiff_t reads = below(queue.size() + 1); reads > 0; --reads) {
          receiver.receive(queue.front());
          queue.pop_front();
        }
        if (random.uniform() < 0.3) receiver.acknowledge();
        for (std::string& frame : receiver.frames()) back.push_back(std::move(frame));
        back.push_back(receiver.heartbeat());
      }
      std::string queued;
      for (const std::string& frame : queue) queued += frame;
      for (int message = 1; message <= said; ++message) {
        const std::string text = '#' + std::to_string(message) + '#';
        const std::size_t once = std::min(queued.find(text), queued.size());
        const std::size_t twice = std::min(queued.find(text, once + 1), queued.size());
        REQUIRE(queued.find(text, twice + 1) == std::string::npos);
      }
      for (; !back.empty(); back.pop_front()) sender.receive(back.front());
    }
  }
}

}  // namespace
}  // namespace tune
