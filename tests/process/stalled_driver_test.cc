// Two drivers of one experiment, where no lock can tell them of each other: the older one stood
// still (a suspended machine, say) while the newer took over.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/syscall.h>

#include <chrono>
#include <map>

#include "core/platform/files.h"
#include "core/platform/lock_sign.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// The contents of every file of a folder.
std::map<fs::path, std::string> contents(const Sandbox& box, const std::string& folder) {
  std::map<fs::path, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(box.path() / folder)) {
    const fs::path path = fs::relative(entry.path(), box.path());
    if (entry.is_regular_file()) all[path] = box.read(path);
  }
  return all;
}

bool helpers_wait(const std::string& process) {
  for (const auto& task : fs::directory_iterator(process + "/task")) {
    const std::string call = read_file(task.path() / "syscall");
    const std::string number = call.substr(0, call.find(' '));
    // One that was stopped before in a call with a time limit is in the rest of that.
    const bool waits =
        number == std::to_string(SYS_restart_syscall) || number == std::to_string(SYS_futex) ||
        number == std::to_string(SYS_poll) || number == std::to_string(SYS_ppoll) ||
        number == std::to_string(SYS_epoll_wait) || number == std::to_string(SYS_epoll_pwait);
    if (!waits) return false;
  }
  return true;
}

// Where it waits for events, and its helpers for work: what it journaled before is carried out by
// then.
void stop_between_turns(const Running& driver) {
  const std::string process = "/proc/" + std::to_string(driver.pid());
  const std::string waiting = std::to_string(SYS_ppoll) + " ";
  REQUIRE(Sandbox::eventually([&] {
    driver.signal(SIGSTOP);
    REQUIRE(Sandbox::eventually(
        [&] { return read_file(process + "/stat").find(") T ") != std::string::npos; }));
    if (read_file(process + "/syscall").starts_with(waiting) && helpers_wait(process)) return true;
    driver.signal(SIGCONT);
    return false;
  }));
}

// Its workers go on meanwhile and rename what they save.
void copy_folder(const Sandbox& box, const char* from, const char* to) {
  REQUIRE(Sandbox::eventually([&] {
    std::error_code moved;
    fs::remove_all(box.path() / to, moved);
    fs::copy(box.path() / from, box.path() / to, fs::copy_options::recursive, moved);
    return !moved;
  }));
}

// Of the sweep that stands still.
void check_untouched(std::map<fs::path, std::string> before,
                     std::map<fs::path, std::string> after) {
  for (const char* mine : {"stdout", "stderr", "state.json"}) {  // its workers' own, until they end
    std::erase_if(after, [&](const auto& file) {
      return file.first.filename() == mine && !before.contains(file.first);
    });
  }
  for (auto* files : {&before, &after}) files->erase("results/s/lock");  // its own sign, given back
  CHECK(after == before);
}

SweepText small_sweep() {
  return {.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 30}",
          .num_samples = 4,
          .rest = "stop: {training_iteration: 10}\ncheckpoint: {frequency: 2}\n"};
}

TEST_CASE("a driver that stood still while another took over is refused and touches nothing") {
  Sandbox box;
  const std::string socket = (box.path() / "tmp/r").string();
  Running server = box.start({"redis-server", "--port", "0", "--unixsocket", socket, "--appendonly",
                              "yes", "--dir", box.path()});
  REQUIRE(Sandbox::eventually([&] { return fs::exists(socket); }));
  box.write("sweep.yaml", yaml(small_sweep()));
  Running old = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet",
                                "--store", "unix://" + socket});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 6); }));
  stop_between_turns(old);
  fs::create_directory(box.path() / "other");
  copy_folder(box, "results/s", "other/s");
  const Finished newer = box.tune({"resume", "other/s", "--quiet"});
  INFO(newer.err);
  CHECK(newer.code == 0);
  check_complete(box, "other/s", 4, 10);

  const auto before = contents(box, "results/s");
  old.signal(SIGCONT);
  const Finished refused = old.wait(std::chrono::seconds(30));
  INFO(refused.err);
  CHECK(refused.code == 3);
  CHECK_HAS(refused.err, "another one has taken over");
  CHECK_FALSE(testing::has(refused.err, "tune resume"));
  check_untouched(before, contents(box, "results/s"));
  CHECK(box.tune({"resume", "other/s", "--quiet"}).code == 0);  // as complete as before
  server.signal(SIGTERM);
  server.wait();
  check_nothing_left(box, "results/s");
}

// Two private servers know nothing of each other's epochs. Here the other host has only signed, and
// the file system stalls when the driver looks.
TEST_CASE("a driver that stood still while another host took its folder writes nothing more") {
  constexpr std::chrono::seconds kSilence{11};  // after 10 s another host may take it
  Sandbox box;
  box.set("LD_PRELOAD", TUNE_STALLING_FILES);
  box.set("STALL_FILE", box.path() / "stall");
  box.set("STALL_CALL", "read");
  box.set("STALL_NAME", "lock");
  box.write("sweep.yaml", yaml(small_sweep()));
  Running old = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 6); }));
  stop_between_turns(old);
  CHECK_FALSE(old.ends_within(kSilence));
  const std::string sign =
      to_text({.pid = 12, .host = "node7", .boot = "another-kernel", .beats = 5});
  for (const char* lock : {"results/s/lock", "results/s/store/lock"}) box.write(lock, sign);

  const auto before = contents(box, "results/s");
  box.write("stall", "");
  old.signal(SIGCONT);
  CHECK(Sandbox::eventually([&] { return fs::exists(box.path() / "stall.met"); }));
  old.ends_within(std::chrono::seconds(1));
  check_untouched(before, contents(box, "results/s"));
  fs::remove(box.path() / "stall");
  const Finished refused = old.wait(std::chrono::seconds(30));
  INFO(refused.err);
  CHECK(refused.code == 3);
  // Of the folder or of its store, whichever is met first.
  const std::string taken = "process 12 of host node7 has taken over ";
  REQUIRE_MESSAGE(refused.err.find(taken) != std::string::npos, refused.err);
  CHECK_HAS(refused.err.substr(refused.err.find(taken)), "results/s");
  check_untouched(before, contents(box, "results/s"));
  CHECK(box.is_quiet());
}

}  // namespace
}  // namespace tune
