// Machines that train on while their driver is away: it is killed and comes back.
#include <doctest/doctest.h>

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "core/join_token.h"
#include "core/platform/process.h"
#include "process/gated.h"
#include "process/joinable.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

// A sweep whose driver is killed and comes back.
struct Reattached : Joinable {
  using Joinable::Joinable;

  std::unique_ptr<Running> runner() {
    auto one = agent();
    CHECK(Sandbox::eventually([&] { return runs_a_trial(*one); }));
    return one;
  }
  void kill_driver() {
    run->signal(SIGKILL);
    run->wait();
  }
  void resume() { run.reset(new Running(box.start_tune({"resume", "results/s"}))); }
};

// Of the agent, but its zygote.
std::set<int> workers_below(const Reattached& sweep, const Running& agent) {
  std::vector<int> pids;
  for (const pid_t pid : sweep.box.processes("tune-worker")) {
    const std::string file = "/proc/" + std::to_string(pid) + "/stat";
    if (!fs::exists(file)) continue;
    const std::string stat = read_file(file);
    if (std::stoi(stat.substr(stat.rfind(')') + 4)) == agent.pid()) pids.push_back(pid);
  }
  if (!pids.empty()) pids.erase(pids.begin());  // the oldest: it forks the others
  return {pids.begin(), pids.end()};
}

// The machine has ended its trial while no driver was there, and tells it the next one, which then
// looks for the checkpoints.
TEST_CASE("while a look at a checkpoint stalls the driver that came back takes a signal") {
  Reattached sweep(gated_sweep(2));
  Sandbox& box = sweep.box;
  auto agent = sweep.runner();
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 28); }));
  sweep.kill_driver();
  open_gate(box);
  REQUIRE(Sandbox::eventually(
      [&] { return !box.of_trials("results/s", "checkpoint_000040").empty(); }));
  agent->signal(SIGSTOP);
  box.set("LD_PRELOAD", TUNE_STALLING_FILES);
  box.set("STALL_FILE", box.path() / "stall");
  box.set("STALL_CALL", "look");
  box.set("STALL_NAME", "checkpoint_*");
  sweep.resume();
  REQUIRE(Sandbox::eventually([&] { return testing::has(sweep.nodes(), "away"); }));
  box.write("stall", "");
  agent->signal(SIGCONT);
  REQUIRE(Sandbox::eventually([&] { return fs::exists(box.path() / "stall.met"); }));
  sweep.run->signal(SIGINT);
  CHECK(Sandbox::eventually(
      [&] { return testing::has(sweep.run->said(), "SIGINT: running trials save"); }));
  CHECK_FALSE(sweep.run->ends_within(std::chrono::seconds(0)));
  fs::remove(box.path() / "stall");
  CHECK(sweep.run->wait().code == 128 + SIGINT);
  agent->wait(seconds(20));
  sweep.resume();
  sweep.finish();
  check_complete(box, "results/s", 2, kGatedSteps);
  fs::remove(box.path() / "stall.met");
  check_nothing_left(box, "results/s");
}

TEST_CASE("a driver that is killed twice finds its machines again, and no trial there notices") {
  Reattached sweep(gated_sweep(3));
  auto one = sweep.runner();
  auto other = sweep.runner();
  std::set<int> running = workers_below(sweep, *one);
  running.merge(workers_below(sweep, *other));
  REQUIRE(running.size() == 2);
  sweep.kill_driver();
  sweep.resume();
  CHECK(Sandbox::eventually([&] { return count_events(sweep.box, "node_returned") == 3; }));
  for (const int pid : running) CHECK(::kill(pid, 0) == 0);
  sweep.kill_driver();
  open_gate(sweep.box);  // they train to their ends with nobody to tell
  sweep.resume();
  const Finished finished = sweep.finish();
  CHECK_HAS(finished.err, "machines that had joined: 3 are waited for");
  CHECK_FALSE(testing::has(finished.err, "is lost"));
  // A machine tells what it holds before it greets: the last one may end the experiment by that.
  CHECK(count_events(sweep.box, "node_returned") >= 4);
  check_complete(sweep.box, "results/s", 3, kGatedSteps);
  std::set<int> there;
  for (const auto& [trial, pids] : processes_of_trials(sweep.box)) {
    const bool ran_there = std::ranges::any_of(pids, [&](int pid) { return running.contains(pid); });
    CHECK_MESSAGE(pids.size() == 1, trial << " has results of several processes");
    if (ran_there) there.insert(pids.begin(), pids.end());
  }
  CHECK(there == running);
  for (const auto& agent : {one.get(), other.get()}) {
    const Finished over = agent->wait(seconds(20));
    CHECK_HAS(over.err, "the experiment is over");
    CHECK_FALSE(testing::has(over.err, "joining again"));
  }
  check_nothing_left(sweep.box, "results/s");

  Sandbox calm;
  calm.write("sweep.yaml", gated_sweep(3));
  calm.write("open", "");
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  CHECK(lasting_table(sweep.box, "results/s") == lasting_table(calm, "results/s"));
}

TEST_CASE("a machine that dies while the driver is away is lost after its lease, the other goes on") {
  Reattached sweep(gated_sweep(3, "lease_s: 2\n"));
  auto dies = sweep.runner();
  auto stays = sweep.runner();
  const std::set<int> running = workers_below(sweep, *stays);
  sweep.kill_driver();
  dies->signal(SIGKILL);
  dies->wait();
  sweep.resume();
  CHECK(Sandbox::eventually([&] { return count_events(sweep.box, "node_left") == 1; }));
  open_gate(sweep.box);
  const Finished finished = sweep.finish();
  CHECK_HAS(finished.err, "is lost: it has said nothing for 2 s");
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  check_complete(sweep.box, "results/s", 3, kGatedSteps);
  std::size_t undisturbed = 0;
  for (const auto& [trial, pids] : processes_of_trials(sweep.box)) undisturbed += pids == running;
  CHECK(undisturbed == 1);
  CHECK(stays->wait(seconds(20)).code == 0);
  check_nothing_left(sweep.box, "results/s");
}

// Holds the port of this address of this host.
FileDescriptor hold_port(const std::string& address) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  const bool is_held = Sandbox::eventually([&] {
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  });
  REQUIRE(is_held);
  ::listen(socket.get(), 1);
  return socket;
}

TEST_CASE("a driver that comes back at another port is found by the join file") {
  Reattached sweep(gated_sweep(2));
  auto agent = sweep.runner();
  const auto address = [&] {
    return token_of_text(sweep.box.read("results/s/nodes/join")).addresses.at(0);
  };
  const std::string former = address();
  sweep.kill_driver();
  const FileDescriptor held = hold_port(former);
  sweep.resume();
  CHECK(Sandbox::eventually([&] { return count_events(sweep.box, "node_returned") == 2; }));
  CHECK(address() != former);
  open_gate(sweep.box);
  CHECK_FALSE(testing::has(sweep.finish().err, "is lost"));
  check_complete(sweep.box, "results/s", 2, kGatedSteps);
  CHECK(agent->wait(seconds(20)).code == 0);
}

TEST_CASE("a machine that hears late that the experiment is over does not stay") {
  Reattached sweep(gated_sweep(2, "lease_s: 1\n"));
  auto agent = sweep.runner();
  agent->signal(SIGSTOP);
  open_gate(sweep.box);
  const Finished finished = sweep.finish();
  CHECK_HAS(finished.err, "is lost: it has said nothing for 1 s");
  agent->signal(SIGCONT);
  const Finished over = agent->wait(seconds(30));
  CHECK(over.code == 0);
  CHECK_HAS(over.err, "the experiment is over");
  check_complete(sweep.box, "results/s", 2, kGatedSteps);
  check_nothing_left(sweep.box, "results/s");
}

}  // namespace
}  // namespace tune
