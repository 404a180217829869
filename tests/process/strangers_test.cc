// Thousands of connections of strangers to a sweep that machines may join.
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "core/platform/join_keys.h"
#include "core/platform/process.h"
#include "platform/open_driver.h"
#include "process/joinable.h"
#include "process/sweep.h"

namespace tune {
namespace {

// Ten thousand take ten seconds and more: without TUNE_CLUSTER_TESTS there are fewer.
bool all_are_asked_for() {
  return std::getenv("TUNE_CLUSTER_TESTS") != nullptr;
}

// The most that may be open at the same time, here and in the driver.
std::size_t most_open(std::size_t strangers) {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(strangers, limit.rlim_cur - 500);
}

// The driver's own, and the one that takes checkpoints.
std::vector<int> ports_of(const JoinKeys& keys) {
  const std::string& address = keys.addresses.at(0);
  int port = 0;
  std::from_chars(address.data() + address.rfind(':') + 1, address.data() + address.size(), port);
  return {port, keys.relay_port};
}

std::size_t count_of_text(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++count;
  }
  return count;
}

constexpr const char* kRelayPort = ", which takes checkpoints: ";

// Told once for each port.
void check_told_once(const Finished& run, const std::string& text) {
  CHECK(count_of_text(run.err, text) == 2);
  CHECK(count_of_text(run.err, kRelayPort + text) == 1);
}

TEST_CASE("thousands of strangers are refused, told of once, and change nothing of a sweep") {
  const std::size_t strangers_in_all = all_are_asked_for() ? 10'000 : 1'000;
  const int trials = all_are_asked_for() ? 60 : 12;
  Joinable sweep(joinable_sweep(trials, 50));
  const std::vector<int> ports = ports_of(*read_keys(sweep.box.path() / "results/s"));
  const std::vector<std::string> says = {
      std::string(300, '\xff'), "GET / HTTP/1.1\r\n\r\n", "",
      std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\0CURVE", 17) + "garbage"};
  const std::size_t most = most_open(strangers_in_all);
  std::vector<FileDescriptor> strangers;
  for (std::size_t i = 0; i < strangers_in_all; ++i) {
    if (strangers.size() >= most) strangers.clear();
    strangers.emplace_back(testing::connected_socket(ports[i / says.size() % ports.size()]));
    REQUIRE(strangers.back().is_open());
    const std::string& text = says[i % says.size()];
    ::send(strangers.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  auto agent = sweep.agent();  // among them
  CHECK(Sandbox::eventually([&] { return sweep.count("joined") == 1; }));
  const Finished finished = sweep.finish();
  check_told_once(finished, "a connection was refused: it did not speak as a machine with a token");
  CHECK_FALSE(testing::has(finished.err, "lost"));
  check_complete(sweep.box, "results/s", trials, 8);
  CHECK(agent->wait(std::chrono::seconds(20)).code == 0);
  check_nothing_left(sweep.box, "results/s");
}

// Sockets of one context that know the driver's public key, and have join keys that are a former
// one or nobody's, in turn.
struct WrongKeys {
  WrongKeys(const JoinKeys& keys, const JoinKeys& former, std::size_t count) {
    most_open(count);
    context.set(zmq::ctxopt::max_sockets, static_cast<int>(count) + 10);
    const std::vector<int> ports = ports_of(keys);
    for (std::size_t i = 0; i < count; ++i) {
      const JoinKeys own = i % 2 == 0 ? former : make_keys();
      zmq::socket_t& socket = sockets.emplace_back(context, zmq::socket_type::dealer);
      socket.set(zmq::sockopt::linger, 0);
      socket.set(zmq::sockopt::curve_serverkey, zmq::buffer(keys.driver_public));
      socket.set(zmq::sockopt::curve_secretkey, zmq::buffer(own.join_secret));
      socket.set(zmq::sockopt::curve_publickey, zmq::buffer(own.join_public));
      socket.connect("tcp://127.0.0.1:" + std::to_string(ports[i / 2 % ports.size()]));
    }
  }
  zmq::context_t context;
  std::vector<zmq::socket_t> sockets;
};

TEST_CASE("a thousand machines with wrong and with rotated keys change nothing of a sweep") {
  const std::string text = joinable_sweep(12, 50);
  Joinable sweep(text);
  const std::filesystem::path experiment = sweep.box.path() / "results/s";
  const JoinKeys former = *read_keys(experiment);
  CHECK(sweep.box.tune({"token", "results/s", "--rotate"}).code == 0);
  CHECK(Sandbox::eventually([&] { return read_keys(experiment)->former.empty(); }));
  sweep.take_token();
  const WrongKeys strangers(*read_keys(experiment), former, 1'000);
  auto agent = sweep.agent();  // among them
  CHECK(Sandbox::eventually([&] { return sweep.count("joined") == 1; }));
  const Finished finished = sweep.finish();
  check_told_once(finished, "a connection from 127.0.0.1 was refused");
  CHECK_FALSE(testing::has(finished.err, "lost"));
  CHECK(agent->wait(std::chrono::seconds(20)).code == 0);
  check_nothing_left(sweep.box, "results/s");

  Sandbox calm;
  calm.write("sweep.yaml", text);
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  CHECK(lasting_table(sweep.box, "results/s") == lasting_table(calm, "results/s"));
}

}  // namespace
}  // namespace tune
