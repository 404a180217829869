#include "tune/results/own_agent.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <fstream>
#include <functional>
#include <utility>

#include "core/agent/agent.h"
#include "core/platform/files.h"
#include "core/platform/node.h"
#include "core/platform/runtime_directory.h"
#include "core/platform/transport.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

// A process that holds a runtime folder, and shows that it stays.
struct StandIn {
  explicit StandIn(const std::function<void()>& body = [] {}) {
    ::setenv("XDG_RUNTIME_DIR", base.path().c_str(), 1);
    fs::create_directory(experiment());
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const FileDescriptor told(ends[0]);
    FileDescriptor tell(ends[1]);
    pid = ::fork();
    if (pid == 0) be(body, tell.get());
    tell.reset();
    std::array<char, PIPE_BUF> path{};
    const auto size = ::read(told.get(), path.data(), path.size());
    REQUIRE(size > 0);
    runtime = std::string(path.data(), static_cast<std::size_t>(size));
  }
  [[noreturn]] static void be(const std::function<void()>& body, int tell) {
    std::signal(SIGTERM, SIG_DFL);  // doctest has a handler
    body();
    const RuntimeDirectory folder;
    std::ofstream(folder.path() / kStaysFile);
    const std::string path = folder.path();
    if (::write(tell, path.data(), path.size()) < 0) ::_exit(1);
    for (;;) ::pause();
  }
  ~StandIn() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  fs::path experiment() const { return base.path() / "s"; }
  OwnAgent agent(const std::string& name = "node-1") const {
    const OwnAgent agent(pid, joined_identity(name), runtime);
    agent.write(experiment());
    return OwnAgent::of(experiment()).value();
  }

  TemporaryFolder base;
  fs::path runtime;
  pid_t pid = 0;
};

TEST_CASE("the next driver finds the agent that the one before has left, as long as it lives") {
  StandIn lives;
  CHECK_FALSE(OwnAgent::of(lives.experiment()).has_value());
  const OwnAgent agent = lives.agent();
  CHECK(agent.pid() == lives.pid);
  CHECK(agent.identity() == joined_identity("node-1"));
  CHECK_FALSE(agent.is_gone());
  CHECK(agent.process().has_value());
  CHECK(agent.why_not_kept(lives.experiment()).empty());
  ::kill(lives.pid, SIGKILL);
  ::waitpid(std::exchange(lives.pid, 0), nullptr, 0);
  CHECK(agent.is_gone());
  CHECK_FALSE(agent.process().has_value());
  OwnAgent::remove(lives.experiment());
  CHECK_FALSE(OwnAgent::of(lives.experiment()).has_value());
}

TEST_CASE("an agent that ends, is of another build or works elsewhere is not kept") {
  const StandIn lives;
  fs::create_directory(lives.base.path() / "other");
  CHECK_HAS(lives.agent().why_not_kept(lives.base.path() / "other"), "it works in");
  OwnAgent(lives.pid, "join/1/0.0.1/node-1", lives.runtime).write(lives.experiment());
  const OwnAgent old = OwnAgent::of(lives.experiment()).value();
  CHECK_HAS(old.why_not_kept(lives.experiment()), "0.0.1");
  fs::remove(lives.runtime / kStaysFile);
  CHECK(lives.agent().why_not_kept(lives.experiment()) == "it ends");
}

TEST_CASE("an agent of before this host was started is gone, and a broken sign is none") {
  const StandIn lives;
  lives.agent();
  const fs::path sign = lives.experiment() / "nodes" / ("own-" + hostname());
  std::string text = read_file(sign);
  text.replace(text.find(boot_id()), boot_id().size(), "of another start");
  write_file_atomically(sign, text);
  CHECK(OwnAgent::of(lives.experiment()).value().is_gone());
  for (const char* broken : {"{", "[1]", "{\"pid\": \"x\"}"}) {
    write_file_atomically(sign, broken);
    CHECK_FALSE(OwnAgent::of(lives.experiment()).has_value());
  }
}

TEST_CASE("an agent that is to go is told to end, and is killed when it takes too long") {
  for (const bool obeys : {true, false}) {
    CAPTURE(obeys);
    StandIn lives([obeys] {
      if (!obeys) std::signal(SIGTERM, SIG_IGN);
    });
    const OwnAgent agent = lives.agent();
    std::string told;
    int waits = 0;
    agent.end(
        std::chrono::milliseconds(1), [&](const std::string& text) { told = text; },
        [&] { ++waits; });
    CHECK(agent.is_gone());
    CHECK(told.empty() == obeys);
    if (!obeys) CHECK(waits > 2);
    if (!obeys) CHECK_HAS(told, "(process " + std::to_string(lives.pid) + ")");
  }
}

}  // namespace
}  // namespace tune::testing
