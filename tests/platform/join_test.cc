// Machines that join over tcp: who is admitted, who is not, and that no stranger is a disturbance.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "core/build.h"
#include "core/join_greeting.h"
#include "core/platform/files.h"
#include "core/platform/join_keys.h"
#include "core/refusal.h"
#include "platform/open_driver.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

TEST_CASE("a machine with the token is heard and answered, beside the driver's own agent") {
  const TemporaryFolder folder;
  OpenDriver driver(folder);
  Agent own(driver);
  own.say("own");
  CHECK(eventually([&] {
    own.turn();
    driver.turn();
    return driver.received == Texts{"own"};
  }));
  Joined machine(token_of_text(to_text(driver.token())));
  CHECK(is_heard(driver, machine, "joined"));
  CHECK(driver.last_agent == AgentNumber{1});
  CHECK(driver.endpoint->peers().identity_of({1}).ends_with("/node-1"));
  driver.endpoint->send({1}, numbered(7));
  driver.endpoint->send({0}, numbered(8));
  CHECK(eventually([&] {
    driver.turn();
    machine.turn();
    own.turn();
    return !machine.received.empty() && !own.received.empty();
  }));
  CHECK(machine.received == std::vector<std::uint32_t>{7});
  CHECK(own.received == std::vector<std::uint32_t>{8});
  CHECK(machine.endpoint.driver_epoch() == 1);
  CHECK(driver.positions.at({1}).life == 1);  // counted: it is not a time
  CHECK(driver.refused.empty());
}

TEST_CASE("what is said before there is a token is heard when there is one") {
  const TemporaryFolder folder;
  Joined machine("node-1");
  machine.endpoint.send(Warning{"early"});
  machine.turn();
  CHECK(machine.endpoint.unacknowledged_bytes() > 0);
  CHECK(machine.endpoint.address().empty());
  OpenDriver driver(folder);
  machine.endpoint.join_by(driver.token());
  CHECK(is_heard(driver, machine, "late"));
  CHECK(driver.received == Texts{"early", "late"});
  CHECK(driver.endpoint->peers().identity_of({0}) == joined_identity("node-1"));
}

TEST_CASE("tcp without keys is refused on both sides") {
  CHECK_HAS(refusal([] { DriverEndpoint("tcp://127.0.0.1:0", 1); }), "tcp needs keys");
  CHECK_HAS(refusal([] { AgentEndpoint("tcp://127.0.0.1:1", "a"); }), "tcp needs keys");
}

TEST_CASE("a machine with a replaced join key is told so, and the one with the new key is heard") {
  const TemporaryFolder folder;
  OpenDriver driver(folder);
  const JoinToken old = driver.token();
  Joined stays(old, "stays");
  REQUIRE(is_heard(driver, stays, "before"));
  replace_join_key(driver.keys);
  driver.endpoint->admit(driver.keys.join_public);
  Joined late(old, "late");
  CHECK(eventually([&] {
    late.turn();
    driver.turn();
    return !late.endpoint.refusal().empty();
  }));
  CHECK_HAS(late.endpoint.refusal(), "no longer good");
  driver.take_refused();
  REQUIRE(driver.refused.size() == 1);
  CHECK_HAS(driver.refused[0], "from 127.0.0.1 was refused");
  CHECK(is_heard(driver, stays, "after"));  // it is connected
  Joined fresh(driver.token(), "fresh");
  CHECK(is_heard(driver, fresh, "new"));
  CHECK(driver.refused.size() == 1);
}

TEST_CASE("a token of another experiment reaches no driver, and both sides say something") {
  const TemporaryFolder folder;
  OpenDriver driver(folder);
  JoinToken other = token_of(make_keys(), "ffffff");
  other.addresses = driver.keys.addresses;
  Joined machine(other);
  machine.endpoint.send(Warning{"hello"});
  CHECK(eventually([&] {
    machine.turn();
    driver.turn();
    driver.take_refused();
    return !driver.refused.empty() &&
           machine.endpoint.why_not_connected().find("another experiment") != std::string::npos;
  }));
  CHECK(driver.received.empty());
  CHECK(driver.endpoint->peers().size() == 0);
  for (int i = 0; i < 50; ++i) machine.turn(), driver.turn(), driver.take_refused();
  CHECK(driver.refused.size() == 1);  // it tries again and again
}

TEST_CASE("a machine of another build is told so in words, before anything it says is read") {
  const TemporaryFolder folder;
  OpenDriver driver(folder);
  zmq::context_t context;
  zmq::socket_t other(context, zmq::socket_type::dealer);
  other.set(zmq::sockopt::linger, 0);
  const JoinKeys pair = driver.keys;
  other.set(zmq::sockopt::curve_serverkey, zmq::buffer(pair.driver_public));
  other.set(zmq::sockopt::curve_publickey, zmq::buffer(pair.join_public));
  other.set(zmq::sockopt::curve_secretkey, zmq::buffer(pair.join_secret));
  other.set(zmq::sockopt::routing_id,
            to_text(Greeting{kAgentContract + 1, std::string(build_version()), "node-9"}));
  other.connect("tcp://" + pair.addresses.front());
  std::string answer;
  int sent = 0;
  CHECK(eventually([&] {
    other.send(zmq::buffer("what a later build says"), zmq::send_flags::dontwait);
    ++sent;
    driver.turn();
    driver.take_refused();
    zmq::message_t frame;
    if (other.recv(frame, zmq::recv_flags::dontwait)) answer = frame.to_string();
    return !answer.empty() && sent > 3;
  }));
  CHECK_HAS(refusal_in(answer).value_or(""), "install the same version of tune on both");
  REQUIRE(driver.refused.size() == 1);
  CHECK_HAS(driver.refused[0], "node-9");
  CHECK(driver.endpoint->peers().size() == 0);
  Joined machine(driver.token());
  CHECK(is_heard(driver, machine, "of this build"));
}

TEST_CASE("a machine tries the addresses of its token one after the other") {
  const TemporaryFolder folder;
  OpenDriver driver(folder);
  JoinToken token = driver.token();
  token.addresses.insert(token.addresses.begin(), "127.0.0.1:1");
  Joined machine(token);
  machine.endpoint.send(Warning{"found"});
  CHECK(eventually([&] {
    machine.now += std::chrono::milliseconds(100);
    machine.turn();
    driver.turn();
    return driver.received == Texts{"found"};
  }));
}

TEST_CASE("of another experiment's driver at its own driver's address a machine hears nothing") {
  const TemporaryFolder folder, other_folder;
  OpenDriver own(folder, "mark-a");
  Joined machine(own.token());
  REQUIRE(is_heard(own, machine, "first"));
  CHECK(eventually([&] {
    own.endpoint->send({0}, numbered(1));
    own.turn();
    machine.turn();
    return !machine.received.empty();
  }));
  CHECK(machine.endpoint.mark() == "mark-a");
  CHECK(machine.endpoint.other_driver().empty());
  const std::string identity = own.endpoint->peers().identity_of({0});
  own.endpoint.reset();

  // The same keys, port and number of the driver's life.
  std::optional<OpenDriver> other(std::in_place, other_folder, "mark-b", &own);
  machine.endpoint.send(Warning{"second"});
  CHECK(eventually([&] {
    machine.turn();
    other->turn();
    if (other->endpoint->peers().size() > 0) other->endpoint->send({0}, numbered(2));
    return machine.endpoint.other_driver() == "mark-b";
  }));
  machine.turn();
  const auto heard = machine.endpoint.last_heard();
  for (int i = 0; i < 20; ++i) machine.turn(), other->turn();
  CHECK(machine.endpoint.last_heard() == heard);
  CHECK(std::ranges::count(machine.received, 2u) == 0);
  CHECK(other->received.empty());  // what it has said before is missing there
  other.reset();

  // Its own driver's next life.
  const TemporaryFolder next_folder;
  OpenDriver next(next_folder, "mark-a", &own, 2);
  next.endpoint->expect({0}, identity, 1, {});
  CHECK(eventually([&] {
    machine.turn();
    next.turn();
    return next.received == Texts{"second"};
  }));
  CHECK(eventually([&] {
    machine.turn();
    next.turn();
    return machine.endpoint.driver_epoch() == 2;
  }));
  CHECK(machine.endpoint.other_driver().empty());
}

TEST_CASE("keys are kept in the experiment's folder, and others cannot read them") {
  const TemporaryFolder folder;
  CHECK_FALSE(read_keys(folder.path()));
  JoinKeys keys = make_keys();
  keys.addresses = {"10.0.0.1:7000"};
  write_keys(folder.path(), keys);
  const std::string file = folder.path() / "keys.json";
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const std::optional<JoinKeys> back = read_keys(folder.path());
  REQUIRE(back);
  CHECK(token_of(*back, "x") == token_of(keys, "x"));
  CHECK(back->driver_secret == keys.driver_secret);
  CHECK(back->join_public == keys.join_public);
  const std::string former = keys.join_secret;
  replace_join_key(keys);
  CHECK(keys.join_secret != former);
  CHECK(keys.driver_secret == back->driver_secret);
  ::chmod(file.c_str(), 0640);
  CHECK_HAS(refusal([&] { read_keys(folder.path()); }), "others may read it (mode 640)");
  ::chmod(file.c_str(), 0600);
  write_file_atomically(file, "{\"driver_public\": \"x\"}", Readers::kOwnerOnly);
  CHECK_HAS(refusal([&] { read_keys(folder.path()); }), "driver_public is not a key");
}

TEST_CASE("a token in a file that others may read is refused") {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "join";
  JoinKeys keys = make_keys();
  keys.addresses = {"10.0.0.1:7000"};
  write_file_atomically(file, to_text(token_of(keys, "x")) + "\n", Readers::kOwnerOnly);
  CHECK(read_token(file) == token_of(keys, "x"));
  ::chmod(file.c_str(), 0644);
  CHECK_HAS(refusal([&] { read_token(file); }), "chmod 600");
  ::chmod(file.c_str(), 0640);
  CHECK_HAS(refusal([&] { read_token(file); }), "chmod 600");
  CHECK_HAS(refusal([&] { read_token(folder.path() / "none"); }, ErrorCode::kIo), "none");
  if (::chown(file.c_str(), 65534, static_cast<gid_t>(-1)) != 0) return;  // not root
  CHECK(read_token(file) == token_of(keys, "x"));  // its owner gave it to a group
  for (const mode_t mode : {0644, 0660}) {
    ::chmod(file.c_str(), mode);
    CHECK_HAS(refusal([&] { read_token(file); }), "chmod 600");
  }
}

TEST_CASE("this machine's interfaces have the loopback one among them") {
  bool found = false;
  for (const Interface& one : network_interfaces()) {
    found = found || (one.address == "127.0.0.1" && one.is_loopback);
  }
  CHECK(found);
}

}  // namespace
}  // namespace tune::testing
