// The driver's own agent, where it outlives its driver.
#include "core/agent/own_stay.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <array>

#include "agent/joined_script.h"
#include "core/agent/agent.h"
#include "core/platform/process.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

struct OwnScript : JoinedScript {
  OwnScript() : JoinedScript({}, true, true) {}
};

TEST_CASE(
    "an own agent that hears no driver keeps its trial for its patience, then saves and ends") {
  OwnScript script;
  CHECK(script.one().stays());
  CHECK(script.live(29min, false).empty());
  CHECK(script.one().stays());
  CHECK(script.live(1min, false) ==
        Lines{"driver: node out: no driver was heard for 1800 s", "worker 1: stop"});
  CHECK_FALSE(script.one().stays());
  script.save_and_go();
  script.one().on_backlog(script.now, 4000);  // nobody acknowledges
  CHECK(script.one().is_over());
}

TEST_CASE("a signal to an own agent may be one to its driver as well, which orders then") {
  OwnScript script;
  script.one().on_signal(script.now, "SIGTERM");
  CHECK_FALSE(script.one().stays());
  CHECK(script.live(1s).empty());
  CHECK(script.live(1s) ==
        Lines{"driver: node out: its agent was told to end (SIGTERM)", "worker 1: stop"});
}

TEST_CASE("an own agent greets the next driver as its own") {
  OwnScript script;
  script.one().on_other_driver(script.now, 2);
  std::vector<AgentAction> actions;
  script.one().take_actions(actions);
  REQUIRE(!actions.empty());
  const AgentHello hello =
      *std::get<Apart<AgentHello>>(std::get<TellDriver>(actions.front()).event);
  CHECK(hello.joined);
  CHECK(hello.own);
  CHECK(hello.live.size() == 1);
}

TEST_CASE("an agent that is to end at once waits for no acknowledgement") {
  OwnScript script;
  script.one().on_command(script.now, Shutdown{{}, false, true});
  CHECK(script.said_by() == Lines{"end zygote", "signal 15 to 101"});
  CHECK(script.live(AgentMachine::kAbandonedGrace) == Lines{"signal 9 to 101"});
  script.one().on_exit(script.now, 101, {true, 9, "killed by signal 9 (SIGKILL)"});
  script.said_by();
  script.one().on_concluded(script.now, MachineScript::end_of(0));
  script.one().on_zygote_died(script.now, "killed by signal 9");
  script.live(1ms);
  script.one().on_backlog(script.now, 4000);
  CHECK(script.one().is_over());
}

TEST_CASE("a driver tells its own agent a token, and its end") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const FileDescriptor read(ends[0]);
  FileDescriptor write(ends[1]);
  const JoinToken token{"0a1b2", std::string(kCurveKeyBytes, 'd'), std::string(kCurveKeyBytes, 'j'),
                        std::vector<std::string>(40, "255.255.255.255:65535")};
  const std::string text = to_text(token);
  REQUIRE(::write(write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  CHECK(token_of_driver(read.get()) == token);
  REQUIRE(::write(write.get(), "nonsense", 8) == 8);
  CHECK_HAS(refusal([&] { token_of_driver(read.get()); }), "reading the token");
  write.reset();
  CHECK(token_of_driver(read.get()) == std::nullopt);
}

TEST_CASE("the sign that an agent stays is there as long as it stays") {
  const TemporaryFolder folder;
  const std::string runtime = folder.path();
  show_that_it_ends(runtime);
  show_that_it_stays(runtime);
  CHECK(std::filesystem::exists(folder.path() / kStaysFile));
  show_that_it_ends(runtime);
  CHECK_FALSE(std::filesystem::exists(folder.path() / kStaysFile));
}

}  // namespace
}  // namespace tune::testing
