#include "core/link.h"

#include <doctest/doctest.h>

#include <deque>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "core/wire.h"

namespace tune {
namespace {

using std::chrono::seconds;
using Texts = std::vector<std::string>;

Texts pass_on(const Texts& frames, Link& to) {
  Texts fresh;
  for (const std::string& frame : frames) {
    for (std::string& message : to.receive(frame)) fresh.push_back(std::move(message));
  }
  return fresh;
}

TEST_CASE("messages queued together travel in one frame and arrive in order") {
  Link sender(1), receiver(1);
  sender.send("a");
  sender.send("");
  sender.send("c");
  const Texts frames = sender.frames(seconds(0));
  CHECK(frames.size() == 1);
  CHECK(pass_on(frames, receiver) == Texts{"a", "", "c"});
  CHECK(sender.frames(seconds(0)).empty());
}

TEST_CASE("a frame holds at most its payload, or one message that is larger") {
  Link sender(1), receiver(1);
  const std::string half(Link::kMaxFramePayload / 2, 'x');
  const std::string large(2 * Link::kMaxFramePayload, 'y');
  for (const std::string& message : {half, half, half, large, half}) sender.send(message);
  const Texts frames = sender.frames(seconds(0));
  CHECK(frames.size() == 4);  // two halves, one half, the large one, one half
  CHECK(pass_on(frames, receiver) == Texts{half, half, half, large, half});
}

TEST_CASE("a message is kept and counted until the other side acknowledges it") {
  Link sender(1), receiver(1);
  sender.send("four");
  sender.send("ty");
  CHECK(sender.unacknowledged_bytes() == 6);
  pass_on(sender.frames(seconds(0)), receiver);
  CHECK(receiver.frames(seconds(0)).empty());  // it has not said that it may be acknowledged
  CHECK_FALSE(receiver.owes_acknowledgement());
  receiver.acknowledge();
  CHECK(receiver.owes_acknowledgement());
  pass_on(receiver.frames(seconds(0)), sender);
  CHECK_FALSE(receiver.owes_acknowledgement());
  CHECK(sender.unacknowledged_bytes() == 0);
}

TEST_CASE("what is not acknowledged is offered again after a while, and dropped when seen") {
  Link sender(1), receiver(1);
  sender.send("a");
  const Texts first = sender.frames(seconds(10));
  CHECK(sender.frames(seconds(11)).empty());
  const Texts again = sender.frames(seconds(10) + Link::kResendAfter);
  REQUIRE(again.size() == 1);
  CHECK(pass_on(first, receiver) == Texts{"a"});
  CHECK(pass_on(again, receiver).empty());
}

TEST_CASE("while acknowledgements come in nothing is offered again") {
  Link sender(1), receiver(1);
  for (int i = 0; i < 3; ++i) sender.send("m");
  Texts frames = sender.frames(seconds(0));
  for (int second = 1; second < 10; ++second) {
    pass_on(frames, receiver);
    receiver.acknowledge();
    pass_on(receiver.frames(seconds(second)), sender);
    sender.send("m");
    frames = sender.frames(seconds(second));
    CHECK(frames.size() == 1);
    CHECK(sender.unacknowledged_bytes() == 1);
  }
}

TEST_CASE("after a reconnect everything unacknowledged is due at once") {
  Link sender(1), receiver(1);
  sender.send("lost");
  sender.frames(seconds(0));
  sender.send("new");
  sender.reconnected();
  CHECK(pass_on(sender.frames(seconds(0)), receiver) == Texts{"lost", "new"});
}

TEST_CASE("after a gap messages wait until what is missing comes again") {
  Link sender(1), receiver(1);
  sender.send("lost");
  sender.frames(seconds(0));
  sender.send("early");
  CHECK(pass_on(sender.frames(seconds(1)), receiver).empty());
  CHECK(pass_on(sender.frames(seconds(4)), receiver) == Texts{"lost", "early"});
}

TEST_CASE("an acknowledgement that got lost is said again when the message comes again") {
  Link sender(1), receiver(1);
  sender.send("a");
  pass_on(sender.frames(seconds(0)), receiver);
  receiver.acknowledge();
  receiver.frames(seconds(0));  // lost
  pass_on(sender.frames(seconds(5)), receiver);
  pass_on(receiver.frames(seconds(5)), sender);
  CHECK(sender.unacknowledged_bytes() == 0);
}

TEST_CASE("a heartbeat carries the acknowledgement") {
  Link sender(1), receiver(1);
  sender.send("a");
  pass_on(sender.frames(seconds(0)), receiver);
  receiver.acknowledge();
  CHECK(sender.receive(receiver.heartbeat()).empty());
  CHECK(sender.unacknowledged_bytes() == 0);
}

TEST_CASE("a new life of the other side is given what the former one has not acknowledged") {
  Link agent(9), driver(1);
  for (const char* message : {"a", "b", "c"}) agent.send(message);
  CHECK(pass_on(agent.frames(seconds(0)), driver) == Texts{"a", "b", "c"});
  driver.acknowledge();
  driver.send("to the agent");
  pass_on(driver.frames(seconds(0)), agent);
  agent.send("d");
  const Texts to_the_old_one = agent.frames(seconds(0));

  Link next(2);
  CHECK(pass_on(to_the_old_one, next).empty());  // meant for another life
  const Texts answer = next.frames(seconds(1));  // says who it is
  REQUIRE(answer.size() == 1);
  pass_on(answer, agent);
  CHECK(agent.peer_epoch() == 2);
  CHECK(pass_on(agent.frames(seconds(1)), next) == Texts{"d"});
  agent.send("e");
  CHECK(pass_on(agent.frames(seconds(1)), next) == Texts{"e"});
  next.acknowledge();
  pass_on(next.frames(seconds(1)), agent);
  CHECK(agent.unacknowledged_bytes() == 0);
}

TEST_CASE("frames of a former life are dropped") {
  Link former(1), next(2), agent(9);
  former.send("late");
  const Texts late = former.frames(seconds(0));
  next.send("new");
  CHECK(pass_on(next.frames(seconds(0)), agent) == Texts{"new"});
  CHECK(pass_on(late, agent).empty());
  CHECK(agent.peer_epoch() == 2);
}

TEST_CASE("an acknowledgement of what was never sent removes nothing") {
  Link sender(1);
  sender.send("a");
  PackWriter frame;
  frame.array(5);
  for (const std::uint64_t field : {7, 1, 1000, 0}) frame.unsigned_integer(field);
  frame.array(0);
  sender.receive(frame.bytes());
  CHECK(sender.unacknowledged_bytes() == 1);
}

TEST_CASE("a malformed frame is refused and nothing of it counts as received") {
  Link sender(1), receiver(1);
  sender.send("first");
  sender.send("second");
  const std::string frame = sender.frames(seconds(0))[0];
  for (std::size_t length = 0; length < frame.size(); ++length) {
    CHECK_THROWS_AS(receiver.receive(frame.substr(0, length)), Error);
  }
  CHECK_THROWS_AS(receiver.receive(frame + "x"), Error);
  CHECK_THROWS_AS(receiver.receive("GET / HTTP/1.1"), Error);
  CHECK(receiver.peer_epoch() == 0);
  CHECK(receiver.receive(frame) == Texts{"first", "second"});
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
    now_ += std::chrono::milliseconds(below(700));
    for (int side = 0; side < 2; ++side) {
      if (talking && random_.uniform() < 0.5) {
        sent[side].push_back(std::to_string(sent[side].size()));
        links[side].send(sent[side].back());
      }
      for (std::string& frame : links[side].frames(now_)) wire_[side].push_back(std::move(frame));
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
      if (random_.uniform() < 0.5) links[side].reconnected();
    } else if (event < 0.2 && !wire.empty()) {
      wire.push_back(wire[below(wire.size())]);
    } else if (event < 0.3 && wire.size() > 1) {
      std::swap(wire[below(wire.size())], wire[below(wire.size())]);
    }
  }
  void calm() {
    now_ += seconds(1);
    for (int side = 0; side < 2; ++side) {
      for (std::string& frame : links[side].frames(now_)) wire_[side].push_back(std::move(frame));
      while (!wire_[side].empty()) deliver(side);
    }
  }
  void deliver(int side) {
    for (std::string& message : links[1 - side].receive(wire_[side].front())) {
      received[side].push_back(std::move(message));
    }
    wire_[side].pop_front();
    if (random_.uniform() < 0.8) links[1 - side].acknowledge();
  }

  RandomStream random_;
  Link::Time now_{};
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

}  // namespace
}  // namespace tune
