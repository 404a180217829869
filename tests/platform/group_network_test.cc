// Links between agents of groups, and the way to the rendezvous through them, on the loopback.
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/agent/rendezvous_tunnel.h"
#include "core/platform/group_network.h"
#include "core/platform/join_keys.h"
#include "core/platform/rank_place.h"
#include "core/refusal.h"

namespace tune {
namespace {

using Clock = std::chrono::steady_clock;

// Everything that a network hears, until `is_done` or ten seconds are over.
struct Ear {
  explicit Ear(const std::string& key) : network(key) {}
  bool hear_until(const std::function<bool()>& is_done) {
    const auto end = Clock::now() + std::chrono::seconds(10);
    while (!is_done() && Clock::now() < end) {
      pollfd watched{network.descriptor(), POLLIN, 0};
      ::poll(&watched, 1, 20);
      for (const GroupNetwork::Heard& heard : network.receive()) {
        for (const std::string& frame : heard.frames) frames += frame + ";";
        is_broken = is_broken || heard.is_broken;
      }
    }
    return is_done();
  }
  GroupNetwork network;
  std::string frames;
  bool is_broken = false;
};

TEST_CASE("two agents with the key of a group speak, and a break is told after the last words") {
  const std::string key = make_keys().group_secret;
  Ear lead(key);
  auto node = std::make_unique<Ear>(key);
  const GroupNetwork::Listening listening = lead.network.listen("127.0.0.1");
  const GroupNetwork::LinkId link = node->network.connect(listening.address);
  CHECK(node->network.send(link, "hello"));
  CHECK(lead.hear_until([&] { return lead.frames == "hello;"; }));
  CHECK(lead.network.send(listening.link, "go"));
  CHECK(node->hear_until([&] { return node->frames == "go;"; }));
  CHECK_FALSE(lead.is_broken);
  CHECK(node->network.send(link, "last"));
  node.reset();
  CHECK(lead.hear_until([&] { return lead.is_broken; }));
  CHECK(lead.frames == "hello;last;");
}

TEST_CASE("a stranger gets no word through, and breaks nothing") {
  const JoinKeys keys = make_keys();
  Ear lead(keys.group_secret);
  Ear stranger(make_keys().group_secret);
  const GroupNetwork::Listening listening = lead.network.listen("127.0.0.1");
  stranger.network.send(stranger.network.connect(listening.address), "let me in");
  CHECK_FALSE(stranger.hear_until([&] { return !lead.frames.empty() || stranger.is_broken; }));
  lead.hear_until(
      [end = Clock::now() + std::chrono::milliseconds(200)] { return Clock::now() > end; });
  CHECK(lead.frames.empty());
  CHECK_FALSE(lead.is_broken);
  Ear node(keys.group_secret);
  node.network.send(node.network.connect(listening.address), "hello");
  CHECK(lead.hear_until([&] { return lead.frames == "hello;"; }));
}

TEST_CASE("what is not an address or not a key is refused in words") {
  GroupNetwork network(make_keys().group_secret);
  CHECK_HAS(testing::refusal([&] { network.listen("no such host"); }, ErrorCode::kProcess),
            "no such host");
  CHECK_HAS(testing::refusal([&] { network.connect("nowhere"); }, ErrorCode::kProcess), "nowhere");
  testing::refusal([] { GroupNetwork("short"); }, ErrorCode::kBadInput);
}

// ---- The tunnel ---------------------------------------------------------------------------------

int connected_to(int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  return socket;
}

std::string read_some(int socket) {
  char text[64];
  const ssize_t count = ::recv(socket, text, sizeof text, 0);
  return {text, count > 0 ? static_cast<std::size_t>(count) : 0};
}

TEST_CASE("what a rank says to its own node's port comes out at rank 0, and back, and ends") {
  RendezvousTunnel here;
  RendezvousTunnel there;
  CHECK(here.descriptor() == -1);
  Listener rank_0 = listen_at("127.0.0.1", 0);
  there.lead_to(1, rank_0.port);
  const int rank = connected_to(here.listen(1));
  const auto carry = [&] {
    for (int i = 0; i < 20; ++i) {
      for (auto& [link, bytes] : here.look()) there.take(link, bytes);
      for (auto& [link, bytes] : there.look()) here.take(link, bytes);
      ::usleep(1000);
    }
  };
  REQUIRE(::send(rank, "key", 3, 0) == 3);
  carry();
  const int accepted = ::accept(rank_0.socket.get(), nullptr, nullptr);
  CHECK(read_some(accepted) == "key");
  REQUIRE(::send(accepted, "value", 5, 0) == 5);
  carry();
  CHECK(read_some(rank) == "value");
  ::close(accepted);
  carry();
  CHECK(read_some(rank).empty());  // the end
  ::close(rank);
}

TEST_CASE("a stream waits until rank 0 listens") {
  RendezvousTunnel there;
  int port = 0;
  { port = listen_at("127.0.0.1", 0).port; }
  there.lead_to(1, port);
  there.take(1, {7, "early"});
  CHECK(there.waits_for_rank_0());
  Listener rank_0 = listen_at("127.0.0.1", port);
  there.look();
  CHECK_FALSE(there.waits_for_rank_0());
  CHECK(read_some(::accept(rank_0.socket.get(), nullptr, nullptr)) == "early");
  there.take(2, {1, "of a link that leads nowhere"});
  there.close(1);
  CHECK(there.look().empty());
}

}  // namespace
}  // namespace tune
