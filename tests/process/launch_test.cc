// tune launch: ranks of any program, here of a shell.
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/refusal.h"
#include "process/sandbox.h"

namespace tune {
namespace {

// A rank of `ranks` runs the script. Port 0: tests run beside each other.
std::vector<std::string> launch(int ranks, const std::string& script,
                                const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"launch", "--nproc-per-node", std::to_string(ranks),
                                    "--master-port", "0"};
  words.insert(words.end(), more.begin(), more.end());
  for (const char* word : {"sh", "-c"}) words.emplace_back(word);
  words.push_back(script);
  return words;
}

std::multiset<std::string> lines_as_set(const std::string& text) {
  const auto lines = lines_of(text);
  return {lines.begin(), lines.end()};
}

std::size_t count_lines(const Sandbox& box, const std::string& file) {
  return lines_of(box.read(file)).size();
}

TEST_CASE("ranks find the environment that torchrun gives, and print under their number") {
  Sandbox box;
  box.set("OMP_NUM_THREADS", "7");
  const Finished run = box.tune(
      launch(2,
             "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE "
             "$ROLE_RANK $ROLE_WORLD_SIZE $MASTER_ADDR $OMP_NUM_THREADS $TORCHELASTIC_RUN_ID "
             "$TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_USE_AGENT_STORE; "
             "test $MASTER_PORT -gt 0; echo port $? >&2"));
  CHECK(run.code == 0);
  CHECK(lines_as_set(run.out) ==
        std::multiset<std::string>{"[rank 0] 0 0 2 2 0 1 0 2 127.0.0.1 7 none 0 False",
                                   "[rank 1] 1 1 2 2 0 1 1 2 127.0.0.1 7 none 0 False"});
  CHECK(lines_as_set(run.err) == std::multiset<std::string>{"[rank 0] port 0", "[rank 1] port 0"});
  CHECK(box.is_quiet());
}

TEST_CASE("the ranks of a later node are numbered after those before it") {
  Sandbox box;
  const Finished run =
      box.tune({"launch", "--nproc_per_node=2", "--nnodes=3", "--node_rank=2", "--master_addr",
                "192.0.2.1", "--master_port", "29501", "sh", "-c",
                "echo $RANK $LOCAL_RANK $WORLD_SIZE $GROUP_RANK $MASTER_ADDR:$MASTER_PORT"});
  CHECK(run.code == 0);
  CHECK(lines_as_set(run.out) == std::multiset<std::string>{"[rank 4] 4 0 6 2 192.0.2.1:29501",
                                                            "[rank 5] 5 1 6 2 192.0.2.1:29501"});
}

TEST_CASE("what follows the program is the program's, whatever it looks like") {
  Sandbox box;
  box.write("show.sh", "echo \"$@\"\n");
  const Finished run = box.tune({"launch", "--local-rank-arg", "--master-port", "0", "sh",
                                 "show.sh", "--nnodes", "3", "--help", "-x", "--", "a b"});
  CHECK(run.code == 0);
  CHECK(run.out == "[rank 0] --nnodes 3 --help -x -- a b --local-rank=0\n");
}

TEST_CASE("the help of launch says where the program stands, and each default") {
  Sandbox box;
  const Finished run = box.tune({"launch", "--help"});
  CHECK(run.code == 0);
  CHECK_HAS(run.out, "Usage: tune launch [OPTIONS] PROGRAM [ARGS...]\n");
  for (const char* option : {"--nproc_per_node N|gpu=1", "--nnodes N=1", "--node_rank N=0",
                             "--master_addr ADDRESS", "--master_port PORT=29500"}) {
    CAPTURE(option);
    INFO(run.out);
    CHECK_HAS(run.out, option);
  }
}

TEST_CASE("two nodes can be tried on one machine when it is meant") {
  Sandbox box;
  const Finished run = box.tune({"launch", "--nnodes", "2", "--master-addr", "127.0.0.1",
                                 "--node-rank", "1", "sh", "-c", "echo $RANK $MASTER_ADDR"});
  CHECK(run.out == "[rank 1] 1 127.0.0.1\n");
}

TEST_CASE("lines of ranks are never mixed") {
  Sandbox box;
  const Finished run = box.tune(launch(
      3,
      "i=0; while [ $i -lt 300 ]; do printf 'begin '; echo \"of $RANK $i end\"; i=$((i+1)); done"));
  CHECK(run.code == 0);
  std::multiset<std::string> expected;
  for (const char* rank : {"0", "1", "2"}) {
    for (int i = 0; i < 300; ++i) {
      expected.insert(std::string("[rank ") + rank + "] begin of " + rank + " " +
                      std::to_string(i) + " end");
    }
  }
  CHECK(lines_as_set(run.out) == expected);
}

TEST_CASE("the first rank that fails ends the others, and its exit code is the launcher's") {
  Sandbox box;
  const Finished run =
      box.tune(launch(3, "[ $RANK = 1 ] && { echo cause >&2; exit 7; }; sleep 1000 & wait"));
  CHECK(run.code == 7);
  CHECK_HAS(run.err, "[rank 1] cause\n");
  CHECK_HAS(run.err, "error: rank 1 (pid ");
  CHECK_HAS(run.err, ") exited with code 7: all ranks were ended\n");
  CHECK(box.is_quiet());
}

TEST_CASE("a rank that is killed by a signal gives 128 + its number") {
  Sandbox box;
  const Finished run = box.tune(launch(2, "[ $RANK = 0 ] && kill -SEGV $$; sleep 1000"));
  CHECK(run.code == 128 + SIGSEGV);
  CHECK_HAS(run.err, "rank 0 (pid ");
  CHECK_HAS(run.err, "killed by signal 11 (SIGSEGV)");
  CHECK(box.is_quiet());
}

TEST_CASE("a rank that hangs after another failed is killed") {
  Sandbox box;
  Running run = box.start_tune(launch(
      2,
      "trap '' TERM; if [ $RANK = 1 ]; then until [ -e ready ]; do sleep 0.01; done; exit 9; fi; "
      "touch ready; while :; do sleep 0.1; done"));
  CHECK(run.wait(std::chrono::seconds(30)).code == 9);
  CHECK(box.is_quiet());
}

TEST_CASE("a signal is passed on to all ranks, which have time to end") {
  for (const int number : {SIGINT, SIGTERM}) {
    Sandbox box;
    Running run = box.start_tune(launch(
        2,
        "trap 'echo saved >> saved; exit 0' INT TERM; echo x >> ready; while :; do sleep 0.01; "
        "done"));
    REQUIRE(Sandbox::eventually([&] { return count_lines(box, "ready") == 2; }));
    run.signal(number);
    CHECK(run.wait(std::chrono::seconds(20)).code == 128 + number);
    CHECK(count_lines(box, "saved") == 2);
    CHECK(box.is_quiet());
  }
}

TEST_CASE("a second signal kills ranks that do not listen") {
  Sandbox box;
  Running run = box.start_tune(
      launch(2, "trap 'echo x >> heard' TERM; echo x >> ready; while :; do sleep 0.01; done"));
  REQUIRE(Sandbox::eventually([&] { return count_lines(box, "ready") == 2; }));
  run.signal(SIGTERM);
  REQUIRE(Sandbox::eventually([&] { return count_lines(box, "heard") >= 2; }));
  run.signal(SIGTERM);
  CHECK(run.wait(std::chrono::seconds(20)).code == 128 + SIGTERM);
  CHECK(box.is_quiet());
}

// Also what ranks started in sessions of their own.
constexpr const char* kFamily =
    "setsid sleep 1000 & sleep 1000 & trap '' TERM INT HUP; echo x >> ready; "
    "while :; do sleep 1; done";

TEST_CASE("nothing is left behind when the launcher is killed, or the process that looks after") {
  for (const bool launcher : {true, false}) {
    CAPTURE(launcher);
    Sandbox box;
    Running run = box.start_tune(launch(2, kFamily));
    REQUIRE(Sandbox::eventually([&] { return count_lines(box, "ready") == 2; }));
    pid_t victim = run.pid();
    if (!launcher) {
      const auto mine = box.processes("launch");
      const auto other =
          std::find_if(mine.begin(), mine.end(), [&](pid_t pid) { return pid != run.pid(); });
      REQUIRE(mine.size() == 2);
      victim = *other;
    }
    kill(victim, SIGKILL);
    const Finished finished = run.wait(std::chrono::seconds(20));
    CHECK(finished.code == 128 + SIGKILL);
    CHECK(box.is_quiet());
  }
}

TEST_CASE("nothing is left behind when all ranks have ended") {
  Sandbox box;
  const Finished run = box.tune(launch(2, "setsid sleep 1000 & sleep 1000 & echo done"));
  CHECK(run.code == 0);
  CHECK(lines_as_set(run.out) == std::multiset<std::string>{"[rank 0] done", "[rank 1] done"});
  CHECK(box.is_quiet());
}

TEST_CASE("a reader that goes away ends the ranks") {
  Sandbox box;
  const Finished run =
      box.run({"bash", "-c",
               "set -o pipefail; " TUNE_BINARY_DIR
               "/bin/tune launch --master-port 0 --nproc-per-node 2 yes | head -n 2"});
  CHECK(run.code == 128 + SIGPIPE);
  CHECK(lines_of(run.out).size() == 2);
  CHECK(box.is_quiet());
}

TEST_CASE("gpu is one rank for each GPU that is visible, which each rank is told of") {
  struct Row {
    const char* visible;
    std::multiset<std::string> lines;
  };
  for (const Row& row : {Row{"export CUDA_VISIBLE_DEVICES=2,3",
                             {"[rank 0] 2 2,3 of which 0", "[rank 1] 2 2,3 of which 1"}},
                         Row{"unset CUDA_VISIBLE_DEVICES",
                             {"[rank 0] 4 0,1,2,3 of which 0", "[rank 1] 4 0,1,2,3 of which 1",
                              "[rank 2] 4 0,1,2,3 of which 2", "[rank 3] 4 0,1,2,3 of which 3"}},
                         // Split GPUs: each rank is to see its own instance alone.
                         Row{"unset CUDA_VISIBLE_DEVICES; export FAKE_GPUS=2 FAKE_MIG=2",
                             {"[rank 0] 4 MIG-1-1 of which 0", "[rank 1] 4 MIG-1-2 of which 0",
                              "[rank 2] 4 MIG-2-1 of which 0", "[rank 3] 4 MIG-2-2 of which 0"}},
                         Row{"export CUDA_VISIBLE_DEVICES=MIG-2-1,MIG-1-2 FAKE_MIG=2",
                             {"[rank 0] 2 MIG-2-1 of which 0", "[rank 1] 2 MIG-1-2 of which 0"}}}) {
    CAPTURE(row.visible);
    Sandbox box;
    box.set("LD_LIBRARY_PATH", std::string(TUNE_BINARY_DIR) + "/tests/fake_nvml");
    box.set("FAKE_GPUS", "4");
    box.set("TUNE_DEVICE_INDEX", "7");  // of the trial that starts ranks
    const Finished run =
        box.run({"bash", "-c",
                 std::string(row.visible) +
                     "; exec " TUNE_BINARY_DIR
                     "/bin/tune launch --nproc-per-node gpu --master-port 0 sh -c "
                     "'echo $WORLD_SIZE $CUDA_VISIBLE_DEVICES of which $TUNE_DEVICE_INDEX'"});
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK(lines_as_set(run.out) == row.lines);
  }
}

TEST_CASE("without GPUs a rank is told of none, and of no list where there was none") {
  Sandbox box;
  const Finished run = box.run({"bash", "-c",
                                "unset CUDA_VISIBLE_DEVICES; exec " TUNE_BINARY_DIR
                                "/bin/tune launch --nproc-per-node 1 --master-port 0 sh -c "
                                "'echo ${CUDA_VISIBLE_DEVICES-none}'"});
  CHECK(run.out == "[rank 0] none\n");
}

TEST_CASE("what cannot be launched is refused before anything starts") {
  Sandbox box;
  struct Row {
    std::vector<std::string> arguments;
    const char* message;
  };
  const std::vector<Row> rows = {
      {{}, "which program?"},
      {{"--nproc-per-node", "2"}, "which program?"},
      {{"--nproc-per-node", "0", "touch", "x"}, "'0': expected 1 to 4096, or gpu"},
      {{"--nproc-per-node", "-1", "touch", "x"}, "'-1': expected 1 to"},
      {{"--nproc-per-node", "2x", "touch", "x"}, "'2x': expected 1 to"},
      {{"--nproc-per-node", "5000", "touch", "x"}, "'5000': expected 1 to"},
      {{"--nproc-per-node", "gpu", "touch", "x"}, "there is no GPU here"},
      {{"--nnodes", "0", "touch", "x"}, "--nnodes 0: expected 1 to"},
      {{"--nnodes", "2", "--node-rank", "2", "touch", "x"},
       "--node-rank 2: expected 0 to 1 of --nnodes 2"},
      {{"--master-port", "65536", "touch", "x"}, "expected 0 to 65535"},
      {{"--nnodes", "2", "--master-port", "0", "touch", "x"}, "of which other nodes know nothing"},
      {{"--nnodes", "2", "touch", "x"}, "--nnodes 2 without --master-addr: ranks of other nodes"},
      {{"--master-addr", "192.0.2.1", "touch", "x"}, "give an address and a port of the node"},
      {{"--nnode", "2", "touch", "x"}, "unknown option --nnode (did you mean '--nnodes'?)"},
      {{"no-such-program"}, "starting no-such-program: No such file or directory"},
      {{"./no-such-program"}, "starting ./no-such-program: No such file or directory"},
  };
  box.set("CUDA_VISIBLE_DEVICES", "");
  for (const Row& row : rows) {
    std::vector<std::string> arguments = {"launch"};
    arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
    const Finished run = box.tune(arguments);
    INFO(run.err);
    CAPTURE(row.message);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK_HAS(run.err, row.message);
    CHECK(!std::filesystem::exists(box.path() / "x"));
  }
  CHECK(box.is_quiet());
}

TEST_CASE("ranks that cannot be started for want of descriptors are not bad input") {
  Sandbox box;
  const std::string launches =
      std::string(TUNE_BINARY_DIR) + "/bin/tune launch --master-port 0 --nproc-per-node ";
  const Finished files = box.run({"bash", "-c", "ulimit -n 60; exec " + launches + "40 touch x"});
  INFO(files.err);
  CHECK(files.code == 3);
  CHECK_HAS(files.err, "starting 40 ranks takes ");
  CHECK_HAS(files.err, " open files, the limit is 60: raise it (ulimit -n ");
  CHECK(!std::filesystem::exists(box.path() / "x"));
}

TEST_CASE("a port that another program has is refused, with the remedy") {
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(taken, 1) == 0);
  socklen_t size = sizeof address;
  getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string port = std::to_string(ntohs(address.sin_port));
  Sandbox box;
  const Finished run = box.tune({"launch", "--master-port", port, "touch", "x"});
  CHECK(run.code == 2);
  CHECK_HAS(run.err, "listening on 127.0.0.1:" + port + ": Address already in use");
  CHECK_HAS(run.err, "give another one, or 0");
  CHECK(!std::filesystem::exists(box.path() / "x"));
  close(taken);
}

}  // namespace
}  // namespace tune
