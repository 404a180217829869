// tune::Distributor, in programs (tests/programs/distributed.cc) whose ranks are real processes.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "core/refusal.h"
#include "process/sandbox.h"

namespace tune {
namespace {

const std::string kProgram = std::string(TUNE_BINARY_DIR) + "/tests/distributed";

Finished distributed(const Sandbox& box, const std::string& mode) {
  return box.run({kProgram, mode});
}

std::vector<std::string> sorted_lines(const std::string& text) {
  auto lines = lines_of(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  char state = 0;
  pid_t parent = -1;
  std::istringstream(text.substr(text.rfind(')') + 1)) >> state >> parent;
  return parent;
}

TEST_CASE("ranks of a Distributor find torchrun's environment, and rank 0 a listening socket") {
  Sandbox box;
  const Finished run = distributed(box, "environment");
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(sorted_lines(run.out) ==
        std::vector<std::string>{"[rank 0] 0/2 00220 127.0.0.1 [] listens",
                                 "[rank 1] 1/2 11220 127.0.0.1 [] connects"});
  CHECK(box.is_quiet());
}

TEST_CASE("ranks of a Distributor and of tune launch find the same") {
  Sandbox box;
  for (const Finished& run :
       {distributed(box, "variables"), box.tune({"launch", "--nproc-per-node", "2", "--master-port",
                                                 "0", kProgram, "launched"})}) {
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK(sorted_lines(run.out) ==
          std::vector<std::string>{"[rank 0] as torchrun's", "[rank 1] as torchrun's"});
  }
}

TEST_CASE("run gives back what rank 0 returned, of any size") {
  Sandbox box;
  const Finished run = distributed(box, "values");
  INFO(run.err);
  CHECK(run.code == 0);
  // 100,000 times 0.1, times 2, plus the 4 letters.
  CHECK(run.out == "20004\n1\ntext\n1\n{\"lr\":0.5,\"list\":{\"a\":1}}\n");
}

TEST_CASE("named results reach the caller while the ranks run") {
  Sandbox box;
  const Finished run = distributed(box, "named_results");
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(box.read("handed/worker/0") == "of rank 0");
  CHECK(box.read("handed/worker/1") == "of rank 1");
  CHECK_HAS(run.out, "worker/0 holds of rank 0\n");
  CHECK_HAS(run.out, "worker/1 holds of rank 1\n");
  CHECK_HAS(run.out, R"([rank 1] submitting the result "../1": '.' and '..' are not parts)");
  CHECK(!std::filesystem::exists(box.path() / "0"));
}

TEST_CASE("a trial's named results lie in its folder") {
  Sandbox box;
  const Finished run = distributed(box, "submit_in_trial");
  INFO(run.err);
  CHECK(run.code == 0);
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(box.path() / "results/trials")) {
    if (!std::filesystem::exists(entry.path() / "result.json")) continue;
    ++found;
    CHECK(box.read(std::filesystem::relative(entry.path() / "results/worker/0/data.json",
                                             box.path())) == "{}");
  }
  CHECK(found == 1);
  CHECK(std::filesystem::exists(box.path() / "prepared.of.1"));  // before its function is called
}

TEST_CASE("a rank that fails comes back with its number and cause, and nothing is left") {
  struct Row {
    const char* mode;
    int code;
    const char* message;
  };
  const std::vector<Row> rows = {
      {"hang_after_failure", 4, "rank error of 1: rank 1 threw: disk full"},
      {"killed", 4, " killed by signal 11 (SIGSEGV)"},
      {"exits", 4, " exited with code 5"},
      {"fails_by_another", 4, "rank error of 1: rank 1 exited with code 5"},
      {"ends_early", 4, "rank error of 0: rank 0 ended before its function returned"},
      {"no_folder", 4, "there is no folder for results: name one in the Distributor's `folder`"},
      {"throwing_listener", 5, "the listener threw"},
  };
  for (const Row& row : rows) {
    Sandbox box;
    const Finished run = distributed(box, row.mode);
    CAPTURE(row.mode);
    INFO(run.err);
    CHECK(run.code == row.code);
    CHECK_HAS(run.err, row.message);
    CHECK(box.is_quiet());
  }
}

TEST_CASE("a killed caller, or a killed process beside it, takes the ranks along") {
  for (const bool caller : {true, false}) {
    CAPTURE(caller);
    Sandbox box;
    Running run = box.start({kProgram, "ready_and_hang"});
    REQUIRE(Sandbox::eventually([&] {
      return std::filesystem::exists(box.path() / "ready.0") &&
             std::filesystem::exists(box.path() / "ready.1");
    }));
    const auto mine = box.processes();
    REQUIRE(mine.size() == 4);  // the caller, the one beside it, two ranks
    const auto beside = std::find_if(mine.begin(), mine.end(),
                                     [&](pid_t pid) { return parent_of(pid) == run.pid(); });
    REQUIRE(beside != mine.end());
    kill(caller ? run.pid() : *beside, SIGKILL);
    const Finished finished = run.wait();
    CHECK(finished.code == (caller ? 128 + SIGKILL : 2));
    if (!caller) CHECK_HAS(finished.err, "looks after the ranks killed by signal 9");
    CHECK(box.is_quiet());
  }
}

#if defined(__SANITIZE_THREAD__)  // which has one of its own
constexpr int kThreads = 3;
#else
constexpr int kThreads = 2;
#endif

TEST_CASE("settings that cannot hold are refused before a rank starts") {
  struct Row {
    const char* mode;
    std::string message;
  };
  const std::vector<Row> rows = {
      {"no_process", "num_processes 0: expected 1 to"},
      {"no_nodes", "local_mode false: there are no other nodes"},
      {"gpus", "use_gpu without GPUs"},
      {"threads", fmt::format("cannot be forked for the ranks (it runs {} threads): call it before",
                              kThreads)},
  };
  for (const Row& row : rows) {
    Sandbox box;
    box.set("CUDA_VISIBLE_DEVICES", "");
    const Finished run = distributed(box, row.mode);
    CAPTURE(row.mode);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK_HAS(run.err, row.message);
  }
}

TEST_CASE("ranks for which descriptors are lacking are refused with the numbers") {
  Sandbox box;
  const Finished run = box.run({"sh", "-c", "ulimit -n 12; exec " + kProgram + " values"});
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK_HAS(run.err, "error: tune::Distributor: starting 2 ranks takes ");
  CHECK_HAS(run.err, " open files, the limit is 12: raise it (ulimit -n ");
}

TEST_CASE("more processes than GPUs are reduced, and the warning says both numbers") {
  Sandbox box;
  box.set("LD_LIBRARY_PATH", std::string(TUNE_BINARY_DIR) + "/tests/fake_nvml");
  box.set("FAKE_GPUS", "4");
  box.set("CUDA_VISIBLE_DEVICES", "1,3");
  const Finished run = distributed(box, "gpus");
  CHECK(run.code == 0);
  CHECK(run.out == "2\n");
  CHECK(run.err == "warning: num_processes 3 but 2 GPUs are here: 2 ranks are started\n");
  box.set("CUDA_VISIBLE_DEVICES", "3");
  CHECK(distributed(box, "gpus").err ==
        "warning: num_processes 3 but 1 GPU is here: 1 rank is started\n");
  box.set("CUDA_VISIBLE_DEVICES", "0,1,2,3");
  const Finished enough = distributed(box, "gpus");
  CHECK(enough.out == "3\n");
  CHECK(enough.err.empty());
}

TEST_CASE("with MIG instances each rank is prepared to see its own alone") {
  Sandbox box;
  box.set("LD_LIBRARY_PATH", std::string(TUNE_BINARY_DIR) + "/tests/fake_nvml");
  box.set("FAKE_GPUS", "1");
  box.set("FAKE_MIG", "3");
  const Finished run =
      box.run({"bash", "-c", "unset CUDA_VISIBLE_DEVICES; " + std::string(kProgram) + " own_gpu"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_HAS(run.out, "[rank 0] MIG-1-1 of which 0\n");
  CHECK_HAS(run.out, "[rank 1] prepared to see MIG-1-2\n");
  CHECK_HAS(run.out, "[rank 1] MIG-1-2 of which 0\n");
}

TEST_CASE("with use_gpu the ranks are told of the node's GPUs, and which is their own") {
  for (const char* visible : {"", "CUDA_VISIBLE_DEVICES=0,1 "}) {
    CAPTURE(visible);
    Sandbox box;
    box.set("LD_LIBRARY_PATH", std::string(TUNE_BINARY_DIR) + "/tests/fake_nvml");
    box.set("FAKE_GPUS", "2");
    const Finished run = box.run({"bash", "-c",
                                  std::string("unset CUDA_VISIBLE_DEVICES; TUNE_DEVICE_INDEX=7 ") +
                                      visible + kProgram + " own_gpu"});
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK_HAS(run.out, "[rank 0] 0,1 of which 0\n");
    CHECK_HAS(run.out, "[rank 1] prepared to see 0,1\n");
    CHECK_HAS(run.out, "[rank 1] 0,1 of which 1\n");
  }
}

}  // namespace
}  // namespace tune
