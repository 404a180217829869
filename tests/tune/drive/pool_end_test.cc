// The end of a pool whose engine does not answer any more.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <string>

#include "core/platform/files.h"
#include "core/platform/transport.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"
#include "tune/control/scene.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/pool.h"
#include "tune/drive/ticking_clock.h"

namespace tune {
namespace {

using namespace std::chrono_literals;

// Lists what is in its file `jobs`. With a file `stalls` it hangs, whatever it is asked; with a
// file `refuses` it says that it has started nothing.
constexpr const char* kEngine = R"(#!/bin/sh
echo "$@" >>"$0.asked"
[ ! -e "$0.stalls" ] || exec sleep 1000
[ "$1" != list ] || [ ! -e "$0.jobs" ] || cat "$0.jobs"
[ "$1" != start ] || [ ! -e "$0.refuses" ]
)";

struct Ended {
  Ended() {
    write_file_atomically(engine, kEngine);
    REQUIRE(::chmod(engine.c_str(), 0755) == 0);
    spec.name = "s";
    spec.store_prefix = "tune:s:x";
    spec.options.pool.engine = "command";
    spec.options.pool.start = {engine, "start", "${name}"};
    spec.options.pool.list = {engine, "list"};
    spec.options.pool.stop = {engine, "stop", "${id}"};
  }
  std::string asked() const { return read_file(engine + ".asked"); }

  const testing::TemporaryFolder folder;
  const std::string engine = (folder.path() / "engine").string();
  ExperimentSpec spec;
  std::string told;
  const Pool::Say say = [this](const std::string& text) { told += text + "\n"; };
};

TEST_CASE("a pool whose engine hangs has one patience for all that its end asks for") {
  Ended ended;
  const testing::TickingClock clock(500ms);
  Pool pool(ended.spec, ended.folder.path(), checked_engine(ended.spec), ended.say, clock);
  write_file_atomically(ended.engine + ".stalls", "");
  PoolBook book;
  book.change({1, AllocationState::kRunning, "7", "", ""}, {});
  book.change({2, AllocationState::kRequested, "", "", ""}, {});  // its id is to be asked for
  const auto begin = clock.now();
  pool.end(book, 20s);
  // 3 steps that wait, each with two looks at the clock before it and one past its end.
  CHECK(clock.now() - begin <= 20s + 9 * 500ms);
  CHECK_HAS(ended.asked(), "list\n");
  CHECK_HAS(ended.asked(), "stop 7\n");
  // What may still be there is told by the names that the engine knows.
  CHECK_HAS(ended.told, "did not answer in time");
  CHECK_HAS(ended.told, "stopping tune-x-1, 7");
  CHECK_HAS(ended.told, "listing what is named tune-x-*");
}

TEST_CASE("a job whose start was called refused is looked for at the end, and stopped") {
  Ended ended;
  write_file_atomically(ended.engine + ".refuses", "");
  Pool pool(ended.spec, ended.folder.path(), checked_engine(ended.spec), ended.say);
  testing::Scene scene({.num_samples = 1, .cpus = 0, .has_pool = true});
  DriverMachine machine({});
  machine.begin(0s, 0s);
  DriverEndpoint endpoint("ipc://" + (ended.folder.path() / "d").string(), 1);
  while (scene.controller_.pool().bad_submissions() == 0) {
    pool.look(scene.controller_, machine, endpoint, 0s);
    const auto turn = machine.next_turn(0s, {}, endpoint.peers());
    if (!turn) continue;
    machine.on_turn_done();
    for (const Event& event : turn->events) scene.give(event);
  }
  write_file_atomically(ended.engine + ".jobs", "tune-x-1|7|RUNNING||\n");
  pool.end(scene.controller_.pool(), 20s);
  CHECK_HAS(ended.asked(), "stop 7\n");
  CHECK_FALSE(testing::has(ended.told, "did not answer"));
}

}  // namespace
}  // namespace tune
