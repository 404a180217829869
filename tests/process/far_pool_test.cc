// Pools whose nodes do not see the experiment's folder: each start is in a mount namespace of its
// own, where another file system stands on `results`.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "core/platform/files.h"
#include "core/refusal.h"
#include "process/far_machines.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::has;

// What $0 is given runs on such a node.
constexpr const char* kFar = R"sh(#!/bin/sh
cd "$(dirname "$0")" && TMPDIR=$(mktemp -d "$PWD/machines/XXXXXX") && export TMPDIR &&
  exec unshare -rm sh -c 'mount -t tmpfs none results && exec "$@"' sh "$@"
)sh";
// Of the engine command. The node's file system is another one when the script begins.
constexpr const char* kFarEngine = R"sh(#!/bin/sh
case "$1" in
start) cp "$3" seen_script; setsid ./far sh -c 'exec "$0" "$1" >>"$2" 2>&1 </dev/null' "$3" "$2" "$4" >>far.log 2>&1 & echo $! ;;
list) pgrep -f -- "[-]-name $2" | while read -r pid; do
    name=$(tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n '/^--name$/{n;p}')
    [ -n "$name" ] && echo "$name|$pid|RUNNING||here"
  done
  exit 0 ;;
stop) kill "$2" 2>/dev/null; exit 0 ;;
esac
)sh";
constexpr const char* kSsh = R"sh(#!/bin/sh
while [ $# -gt 2 ]; do shift; done
exec "$(dirname "$0")/../far" sh -c "$2"
)sh";

struct FarPool {
  explicit FarPool(const std::string& pool) {
    for (const char* folder : {"bin", "home", "machines", "results"}) {
      fs::create_directories(box.path() / folder);
    }
    write_program("far", kFar);
    write_program("engine.sh", kFarEngine);
    write_program("bin/ssh", kSsh);
    box.set("PATH", (box.path() / "bin").string() + ":" + std::getenv("PATH"));
    box.set("HOME", (box.path() / "home").string());
    box.write("sweep.yaml",
              yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 400}",
                    .num_samples = 6,
                    .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 1}\n"
                            "listen: lo\npool:\n  poll: 0.3\n  node: {cpu: 1}\n" +
                            pool}));
  }
  void write_program(const std::string& file, const char* text) const {
    box.write(file, text);
    ::chmod((box.path() / file).c_str(), 0755);
  }
  void start() { run.reset(new Running(box.start_tune({"run", "sweep.yaml", "--name", "s"}))); }
  bool has_started() const {
    return Sandbox::eventually([&] { return has_results(box, "results/s", 2); }, seconds(60));
  }
  // The one file of this name below the folder; empty: there is none.
  fs::path found(const std::string& folder, const std::string& name) const {
    for (const auto& entry : fs::recursive_directory_iterator(box.path() / folder)) {
      if (entry.path().filename() == name) return entry.path();
    }
    return {};
  }
  void check_token(const std::string& folder) const {
    const fs::path file = found(folder, "join");
    REQUIRE_FALSE(file.empty());
    struct stat status {};
    REQUIRE(::stat(file.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    CHECK(read_file(file) == box.read("results/s/nodes/join"));
    CHECK(box.processes("tune1.").empty());  // on no command line
  }
  void check_end() {
    const Finished finished = run->wait(seconds(150));
    INFO(finished.err);
    CHECK(finished.code == 0);
    check_complete(box, "results/s", 6, 8);
    check_nothing_left(box, "results/s");
    bool has_log = false;
    for (const auto& entry : fs::directory_iterator(box.path() / "results/s/nodes")) {
      const bool is_log = entry.path().filename().string().starts_with("tune-");
      has_log = has_log || (is_log && has(read_file(entry.path()), "joined the experiment"));
    }
    CHECK(has_log);  // what an agent had printed elsewhere
  }

  Sandbox box;
  std::unique_ptr<Running> run;
};

std::string by_command(const std::string& more) {
  return "  engine: command\n  max: 2\n"
         "  start: [./engine.sh, start, \"${name}\", \"${script}\", \"${log}\"]\n"
         "  list: [./engine.sh, list, \"${prefix}\"]\n"
         "  stop: [./engine.sh, stop, \"${id}\"]\n" +
         more;
}

TEST_CASE("a pool's nodes that do not see the experiment's folder join by another folder") {
  if (!has_mounts()) return;
  const Sandbox elsewhere;  // on every node: their own file systems hide the sweep's only
  const fs::path shared = elsewhere.path() / "shared";
  fs::create_directory(shared);
  FarPool pool(by_command("  folder: " + shared.string() + "\n"));
  pool.start();
  CHECK(pool.has_started());
  REQUIRE_FALSE(fs::is_empty(shared));
  const fs::path meet = fs::directory_iterator(shared)->path();
  struct stat status {};
  REQUIRE(::stat(meet.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(read_file(meet / "join") == pool.box.read("results/s/nodes/join"));
  REQUIRE(::stat((meet / "join").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK_FALSE(has(pool.box.read("seen_script"), "tune1."));
  // A new token is there soon.
  CHECK(pool.box.tune({"token", "results/s", "--rotate"}).code == 0);
  const std::string token = pool.box.read("results/s/nodes/join");
  CHECK(Sandbox::eventually([&] { return read_file(meet / "join") == token; }, seconds(10)));
  pool.check_end();
  CHECK(fs::is_empty(shared));
}

TEST_CASE("hosts of ssh that do not see the experiment's folder get the token by the connection") {
  if (!has_mounts()) return;
  FarPool pool("  engine: ssh\n  hosts: [alpha, beta]\n");
  pool.start();
  CHECK(pool.has_started());
  pool.check_token("home/.cache/tune");
  const std::string before = pool.box.read("results/s/nodes/join");
  CHECK(pool.box.tune({"token", "results/s", "--rotate"}).code == 0);
  const fs::path kept = pool.found("home/.cache/tune", "join");
  CHECK(pool.box.read("results/s/nodes/join") != before);
  CHECK(Sandbox::eventually(
      [&] { return read_file(kept) == pool.box.read("results/s/nodes/join"); }, seconds(10)));
  pool.check_end();
  CHECK(fs::is_empty(pool.box.path() / "home/.cache/tune"));
}

TEST_CASE("a pool whose nodes find no token ends with their words and the key that helps") {
  if (!has_mounts()) return;
  FarPool pool(by_command(""));
  // Its output is where the driver finds it.
  std::string engine = kFarEngine;
  const std::string inside =
      "sh -c 'exec \"$0\" \"$1\" >>\"$2\" 2>&1 </dev/null' \"$3\" \"$2\" \"$4\" "
      ">>far.log 2>&1";
  engine.replace(engine.find(inside), inside.size(),
                 "sh \"$PWD/seen_script\" \"$2\" >>\"$4\" 2>&1");
  pool.write_program("engine.sh", engine.c_str());
  pool.start();
  const Finished finished = pool.run->wait(seconds(100));
  CHECK(finished.code == 2);
  CHECK_HAS(finished.err, "does not find the join file");
  CHECK_HAS(finished.err, "results/s/nodes/join: name a folder that it sees by pool/folder");
  CHECK(pool.box.is_quiet());

  FarPool silent(by_command(""));  // nobody sees what its nodes print
  silent.start();
  const Finished ended = silent.run->wait(seconds(100));
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "nothing was printed to");
  CHECK_HAS(ended.err, "by pool/folder");
}

}  // namespace
}  // namespace tune
