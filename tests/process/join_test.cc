// Machines that join a running sweep: agents of their own on this host, over loopback.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "core/platform/files.h"
#include "core/platform/join_keys.h"
#include "core/refusal.h"
#include "process/gated.h"
#include "process/joinable.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

std::string node_of(const Joinable& sweep, const Running& agent) {
  const std::string pid = ":" + std::to_string(agent.pid());
  for (const std::string& line : lines_of(sweep.nodes())) {
    if (testing::has(line, pid)) return line.substr(0, line.find(' '));
  }
  return {};
}

// The local addresses, as /proc/net has them, at which this process listens by tcp.
std::vector<std::string> listens_at(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::set<std::string> sockets;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(process + "/fd", gone)) {
    sockets.insert(fs::read_symlink(entry.path(), gone));
  }
  std::vector<std::string> found;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream lines(process + table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> inode;
      constexpr const char* kListens = "0A";
      if (state == kListens && sockets.contains("socket:[" + inode + "]")) found.push_back(local);
    }
  }
  return found;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("0100007F:") ||
         address.starts_with("00000000000000000000000001000000:");
}

TEST_CASE("a machine that has joined listens nowhere that another one could reach") {
  Joinable sweep(joinable_sweep(6, 60));
  auto agent = sweep.agent();
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*agent); }));
  CHECK_FALSE(listens_at(sweep.run->pid()).empty());
  std::vector<pid_t> all = sweep.box.processes("tune-worker");
  all.push_back(agent->pid());
  for (const pid_t pid : all) {
    for (const std::string& address : listens_at(pid)) CHECK_MESSAGE(is_loopback(address), address);
  }
  sweep.finish();
  CHECK(agent->wait(seconds(20)).code == 0);
}

TEST_CASE("machines that join late, are drained and are killed give the table of a calm run") {
  const std::string text = joinable_sweep(14, 40, "lease_s: 3\n");
  Joinable sweep(text);
  auto killed = sweep.agent();
  auto drained = sweep.agent();
  CHECK(Sandbox::eventually([&] { return sweep.count("joined") == 2; }));
  CHECK(Sandbox::eventually(
      [&] { return sweep.runs_a_trial(*killed) && sweep.runs_a_trial(*drained); }));
  const Finished drain = sweep.box.tune({"drain", "results/s", node_of(sweep, *drained)});
  INFO(drain.err);
  CHECK(drain.code == 0);
  killed->signal(SIGKILL);
  auto late = sweep.agent();
  const Finished left = drained->wait(seconds(30));
  CHECK(left.code == 0);
  CHECK_HAS(left.err, "drains it");
  const Finished finished = sweep.finish();
  CHECK_HAS(finished.err, "is lost: it has said nothing for 3 s");
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  const Finished over = late->wait(seconds(20));
  CHECK(over.code == 0);
  CHECK_HAS(over.err, "the experiment is over");
  killed->wait();
  check_complete(sweep.box, "results/s", 14, 8);
  check_nothing_left(sweep.box, "results/s");

  Sandbox calm;
  calm.write("sweep.yaml", text);
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  CHECK(lasting_table(sweep.box, "results/s") == lasting_table(calm, "results/s"));
}

TEST_CASE("the token is printed for people, and kept where nobody else can read it") {
  Joinable sweep(joinable_sweep(2, 60));
  const fs::path keys = sweep.box.path() / "results/s/keys.json";
  struct stat status {};
  REQUIRE(::stat(keys.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const std::string token = lines_of(sweep.box.tune({"token", "results/s"}).out).at(0);
  REQUIRE(::stat((sweep.box.path() / "results/s/nodes/join").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(sweep.box.read("results/s/nodes/join") == token + "\n");
  const Finished finished = sweep.finish();
  CHECK_HAS(finished.err, "TUNE_JOIN=" + token + " tune agent");
  const fs::path join_file = sweep.box.path() / "results/s/nodes/join";
  CHECK_FALSE(fs::exists(join_file));  // no driver is there
  // It stands in no file but that of the keys, not even a part of it.
  const std::string part = token.substr(token.size() - 40, 30);
  for (const auto& entry : fs::recursive_directory_iterator(sweep.box.path() / "results/s")) {
    if (!entry.is_regular_file() || entry.path() == keys) continue;
    CHECK_MESSAGE(!testing::has(read_file(entry.path()), part), entry.path());
  }
}

TEST_CASE("strangers are refused in words, and the sweep does not notice") {
  Joinable sweep(joinable_sweep(24, 60));
  Sandbox& box = sweep.box;
  box.set("TUNE_JOIN", "");
  CHECK_HAS(box.tune({"agent"}).err, "there is no token");
  box.set("TUNE_JOIN", "tune1.nonsense");
  CHECK_HAS(box.tune({"agent"}).err, "reading the token");
  sweep.take_token();
  const Finished rotated = box.tune({"token", "results/s", "--rotate"});
  CHECK(rotated.code == 0);
  CHECK(Sandbox::eventually([&] { return read_keys(box.path() / "results/s")->former.empty(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the driver has written that first
  const Finished old = box.tune({"agent"});                     // the token of before
  CHECK(old.code == 2);
  CHECK_HAS(old.err, "its token is no longer good");
  box.set("TUNE_JOIN", lines_of(rotated.out).at(0));
  auto agent = sweep.agent();
  CHECK(Sandbox::eventually([&] { return sweep.count("joined") == 1; }));
  const Finished finished = sweep.finish();
  const std::string refused = "a connection from 127.0.0.1 was refused";
  CHECK_HAS(finished.err, refused);
  CHECK(finished.err.find(refused) == finished.err.rfind(refused));
  check_complete(box, "results/s", 24, 8);
  CHECK(agent->wait(seconds(20)).code == 0);
  check_nothing_left(box, "results/s");
}

TEST_CASE("a machine that has joined keeps its place when the token is replaced") {
  Joinable sweep(joinable_sweep(6, 60));
  auto agent = sweep.agent();
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*agent); }));
  CHECK(sweep.box.tune({"token", "results/s", "--rotate"}).code == 0);
  const Finished finished = sweep.finish();
  CHECK_FALSE(testing::has(finished.err, "lost"));
  CHECK_FALSE(testing::has(finished.err, "refused"));
  const Finished over = agent->wait(seconds(20));
  CHECK_HAS(over.err, "the experiment is over");
  check_complete(sweep.box, "results/s", 6, 8);
}

TEST_CASE("with every node gone a sweep waits for a machine to join, and says so") {
  Joinable sweep(joinable_sweep(3, 60));
  // The driver's own agent is a fork of it.
  for (const pid_t pid : sweep.box.processes(std::string("run\0sweep.yaml", 14))) {
    if (pid != sweep.run->pid()) kill(pid, SIGKILL);
  }
  CHECK(Sandbox::eventually([&] { return sweep.count("own") == 0; }));
  auto agent = sweep.agent();
  const Finished finished = sweep.finish();
  CHECK_HAS(finished.err, "trials wait for one to join");
  check_complete(sweep.box, "results/s", 3, 8);
  CHECK(agent->wait(seconds(20)).code == 0);
}

TEST_CASE("a machine leaves before its time ends, and its trials go on elsewhere") {
  Joinable sweep(joinable_sweep(8, 80));
  auto agent = sweep.agent({"--until", "4s"});
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*agent); }));
  CHECK_HAS(sweep.nodes(), "in ");
  const Finished left = agent->wait(seconds(20));
  CHECK(left.code == 0);
  CHECK_HAS(left.err, "its time ends in");
  const Finished finished = sweep.finish();
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  check_complete(sweep.box, "results/s", 8, 8);
}

// The agent, its zygote, workers and what they have started; the agent first.
std::vector<pid_t> processes_of(const Sandbox& box, pid_t agent) {
  std::vector<pid_t> all = {agent};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const pid_t pid : box.processes()) {
      const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
      if (std::stoi(stat.substr(stat.rfind(')') + 4)) == all[i]) all.push_back(pid);
    }
  }
  return all;
}

// As a batch system that preempts a job; programs die of it before they could be stopped.
TEST_CASE("a signal to all processes of a machine is not a failure of the programs that run there") {
  Joinable sweep(
      "command: [sh, -c, 'for i in 1 2 3 4 5 6; do echo \"tune: {\\\"loss\\\": $i}\"; sleep 0.3; "
      "done', "
      "sh, '${x}']\nconfig: {x: {uniform: [0, 1]}}\nnum_samples: 4\nmetric: loss\nmode: min\n"
      "seed: 5\n");
  auto agent = sweep.agent();
  REQUIRE(Sandbox::eventually([&] { return sweep.runs_a_trial(*agent); }));
  std::vector<pid_t> all;
  const auto has_program = [&] {
    return (all = processes_of(sweep.box, agent->pid())).size() >= 5;
  };
  REQUIRE(Sandbox::eventually(has_program));  // agent, zygote, worker, sh, sleep
  for (const pid_t pid : all) ::kill(pid, SIGTERM);
  CHECK(agent->wait(seconds(20)).code == 0);
  const Finished finished = sweep.finish();
  CHECK_HAS(finished.err, "its agent was told to end (SIGTERM)");
  CHECK_FALSE(testing::has(sweep.box.read("results/s/events.jsonl"), "\"event\":\"failure\""));
  check_complete(sweep.box, "results/s", 4, 6);
}

TEST_CASE("without a driver a machine saves and ends, and resume goes on from there") {
  Joinable sweep(joinable_sweep(6, 60, "patience_s: 4\nlease_s: 2\n"));
  auto agent = sweep.agent();
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*agent); }));
  sweep.run->signal(SIGKILL);
  sweep.run->wait();
  const Finished left = agent->wait(seconds(20));
  CHECK(left.code == 0);
  CHECK_HAS(left.err, "no driver was heard for 4 s");
  CHECK(sweep.box.is_quiet());
  const Finished resumed = sweep.box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(sweep.box, "results/s", 6, 8);
}

TEST_CASE("a second signal ends the machines that have joined as well, and at once") {
  Joinable sweep(gated_sweep(2));
  auto agent = sweep.agent();
  CHECK(Sandbox::eventually([&] { return has_results(sweep.box, "results/s", 28); }));
  sweep.run->signal(SIGINT);
  CHECK(Sandbox::eventually([&] {
    return sweep.box.read("results/s/events.jsonl").find("once more ends at once") !=
           std::string::npos;
  }));
  sweep.run->signal(SIGINT);  // their trials wait in a step and save nothing
  CHECK_HAS(sweep.run->wait(seconds(20)).err, "interrupted; resume with");
  CHECK(agent->wait(seconds(20)).code == 0);
  CHECK_FALSE(fs::exists(sweep.box.path() / "results/s/nodes/join"));
  open_gate(sweep.box);
  const Finished resumed = sweep.box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(sweep.box, "results/s", 2, kGatedSteps);
  check_nothing_left(sweep.box, "results/s");
}

TEST_CASE("what cannot be done with machines is refused with the remedy") {
  Sandbox box;
  box.write("sweep.yaml", joinable_sweep(2, 1));
  CHECK_HAS(box.tune({"run", "sweep.yaml", "--listen", "nowhere9"}).err,
            "no interface or address nowhere9");
  CHECK_HAS(box.tune({"run", "sweep.yaml", "--listen", "lo:x"}).err, "write ADDRESS[:PORT]");
  CHECK(box.tune({"run", "sweep.yaml", "--name", "s"}).code == 0);
  CHECK_HAS(box.tune({"drain", "results/s", "a"}).err, "no driver runs it");
  CHECK_HAS(box.tune({"nodes", "results/s"}).err, "it has no nodes");
  CHECK_HAS(box.tune({"token", "results/s"}).err, "has not listened yet");
  CHECK_HAS(box.tune({"token", "results/s", "--address", "login"}).err, "has no port");
  CHECK(box.tune({"token", "results/s", "--address", "login:7000"}).out.starts_with("tune1."));
  CHECK_HAS(box.tune({"agent", "--join-file", "none"}).err, "none");
}

}  // namespace
}  // namespace tune
