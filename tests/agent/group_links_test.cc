// What a rank of a group over several nodes is told of its node's network.
#include "core/agent/group_links.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "agent/machine_script.h"
#include "core/platform/join_keys.h"

namespace tune::testing {
namespace {

constexpr const char* kGloo = "GLOO_SOCKET_IFNAME";
constexpr const char* kNccl = "NCCL_SOCKET_IFNAME";
const std::uint64_t kAttempt = attempt_key({0}, {1});

// This node as its driver's own agent finds it, at an address of the loopback.
struct LinksScene {
  explicit LinksScene(const std::string& address = "127.0.0.1") {
    ::unsetenv(kGloo);
    ::unsetenv(kNccl);
    JoinedSetup setup;
    setup.group_key = make_keys().group_secret;
    setup.driver_addresses = {address};
    links.set_up(setup, {});
  }
  ~LinksScene() { ::unsetenv(kNccl); }
  void lead() {
    OpenGroup open{kAttempt, 1};
    links.act({}, open);
  }
  std::map<std::string, std::string> variables(
      const std::map<std::string, std::string>& of_user = {}) const {
    StartWorker start;
    start.launch.trial = {0};
    start.launch.attempt = {1};
    links.complete(start, of_user);
    return start.environment;
  }

  MachineScript script;
  GroupMeeting meeting;
  GroupLinks links{script.machine, meeting};
};

TEST_CASE("NCCL and Gloo go by the one interface that leads to the other nodes") {
  LinksScene scene;
  CHECK(scene.variables().empty());  // of no group over several nodes
  scene.lead();
  // "=": exactly this one, where "lo" would be every one whose name begins so.
  CHECK(scene.variables() == std::map<std::string, std::string>{{kGloo, "lo"}, {kNccl, "=lo"}});
  CloseGroup close{kAttempt};
  scene.links.act({}, close);
  CHECK(scene.variables().empty());
}

TEST_CASE("an interface that the user or the machine names stays") {
  LinksScene scene;
  scene.lead();
  CHECK(scene.variables({{kGloo, "ib0"}}) ==
        std::map<std::string, std::string>{{kNccl, "=lo"}});  // it is in `env` already
  ::setenv(kNccl, "ib1", 1);
  CHECK(scene.variables() == std::map<std::string, std::string>{{kGloo, "lo"}});
}

TEST_CASE("none is named where no interface has the address") {
  LinksScene scene("127.0.0.77");
  scene.lead();
  CHECK(scene.variables().empty());
}

TEST_CASE("a node whose lead is on the loopback goes by that, and meets rank 0 by its own port") {
  LinksScene scene;
  JoinLead join{kAttempt, 1, "127.0.0.1:9"};
  scene.links.act({}, join);
  const auto variables = scene.variables();
  CHECK(variables.at(kGloo) == "lo");
  CHECK(variables.at(kNccl) == "=lo");
  CHECK(variables.at("MASTER_ADDR") == "127.0.0.1");
  CHECK(std::stoi(variables.at("MASTER_PORT")) > 0);
}

}  // namespace
}  // namespace tune::testing
