// Keys of several experiments, and machines that stay for the next of them.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

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
  std::unique_ptr<Running> run(const std::string& name, int step_ms = 40,
                               const std::string& rest = "", bool is_fresh = false) {
    box.write("sweep.yaml", joinable_sweep(6, step_ms, rest));
    std::vector<std::string> words = {"run", "sweep.yaml", "--name", name,       "--cpus",
                                      "1",   "--keys",     "keys",   "--listen", "lo:" + port};
    if (is_fresh) words.emplace_back("--fresh");
    return std::unique_ptr<Running>(new Running(box.start_tune(words)));
  }
  std::string events(const std::string& name) const {
    return box.read("results/" + name + "/events.jsonl");
  }
  bool has_two_nodes(const std::string& name) const {
    const std::string text = events(name);
    const std::size_t first = text.find("\"node_joined\"");  // the driver's own
    return first != text.npos && text.find("\"node_joined\"", first + 1) != text.npos;
  }
  bool has_joined(const std::string& name) const {
    return Sandbox::eventually([&] { return has_two_nodes(name); }, seconds(60));
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

// The driver is killed while the machine runs a trial of it.
void kill_driver(SharedKeys& shared, Running& run, const std::string& name) {
  CHECK(shared.has_joined(name));
  CHECK(Sandbox::eventually([&] { return has_results(shared.box, "results/" + name, 4); }));
  run.signal(SIGKILL);
  run.wait();
}

TEST_CASE("a machine whose driver was killed waits for it, and then takes part in the next sweep") {
  SharedKeys shared;
  for (const std::string name : {"b", "a"}) {  // the second has the name of the killed one
    CAPTURE(name);
    auto killed = shared.run("a", 200, "patience_s: 8\n", name == "a");
    kill_driver(shared, *killed, "a");
    const std::string before = shared.events("a");
    auto run = shared.run(name, 200, "", true);
    CHECK(shared.has_joined(name));
    shared.finish(*run, name);
    if (name != "a") CHECK(shared.events("a") == before);
  }
  shared.end_agent();
}

TEST_CASE("a machine trains on for its driver while another experiment comes and goes") {
  SharedKeys shared;
  auto killed = shared.run("a", 400);
  kill_driver(shared, *killed, "a");
  auto other = shared.run("b", 10);
  shared.finish(*other, "b");
  CHECK_FALSE(shared.has_two_nodes("b"));
  auto again =
      std::unique_ptr<Running>(new Running(shared.box.start_tune({"resume", "results/a"})));
  shared.finish(*again, "a");
  CHECK_HAS(shared.events("a"), "\"node_returned\"");
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
