// Keys of several experiments, and machines that stay for the next of them.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "core/refusal.h"
#include "process/joinable.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// A file with keys, and a machine that was there before any experiment.
struct SharedKeys {
  SharedKeys() {
    const Finished token = box.tune({"token", "--keys", "keys", "--address", "127.0.0.1:" + port});
    INFO(token.err);
    REQUIRE(token.code == 0);
    box.set("TUNE_JOIN", lines_of(token.out).at(0));
    agent.reset(new Running(box.start_tune({"agent", "--stay", "--cpus", "1"})));
  }
  std::unique_ptr<Running> run(const std::string& name, int step_ms = 40) {
    box.write("sweep.yaml", joinable_sweep(6, step_ms));
    return std::unique_ptr<Running>(
        new Running(box.start_tune({"run", "sweep.yaml", "--name", name, "--cpus", "1", "--keys",
                                    "keys", "--listen", "lo:" + port})));
  }
  std::string events(const std::string& name) const {
    return box.read("results/" + name + "/events.jsonl");
  }
  bool has_joined(const std::string& name) const {
    return Sandbox::eventually([&] {
      const std::string text = events(name);
      const std::size_t first = text.find("\"node_joined\"");  // the driver's own
      return first != text.npos && text.find("\"node_joined\"", first + 1) != text.npos;
    });
  }
  void finish(Running& run, const std::string& name) const {
    const Finished finished = run.wait(seconds(100));
    INFO(finished.err);
    CHECK(finished.code == 0);
    check_complete(box, "results/" + name, 6, 8);
  }
  void end_agent() const {
    agent->signal(SIGTERM);
    CHECK(agent->wait(seconds(20)).code == 0);
  }

  std::string port = std::to_string(20000 + ::getpid() % 12000);
  Sandbox box;
  std::unique_ptr<Running> agent;
};

TEST_CASE("a machine that stays takes part in one experiment after the other") {
  SharedKeys shared;
  struct stat status {};
  REQUIRE(::stat((shared.box.path() / "keys").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  for (const std::string name : {"a", "b"}) {
    auto run = shared.run(name);
    CHECK(shared.has_joined(name));
    shared.finish(*run, name);
  }
  shared.end_agent();
}

TEST_CASE("what is missing for a token of several experiments is said") {
  const Sandbox box;
  CHECK_HAS(box.tune({"token", "--keys", "keys"}).err, "wants --address HOST:PORT");
  CHECK_HAS(box.tune({"token"}).err, "give DIR, or --keys FILE");
  box.write("keys", "{}");
  const Finished open = box.tune({"token", "--keys", "keys", "--address", "127.0.0.1:7000"});
  CHECK(open.code == 2);
  CHECK_HAS(open.err, "others may read it");
}

}  // namespace
}  // namespace tune
