// The end of a pool whose engine does not answer any more.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <string>

#include "core/platform/files.h"
#include "trainables/temporary_folder.h"
#include "tune/drive/pool.h"
#include "tune/drive/ticking_clock.h"

namespace tune {
namespace {

using namespace std::chrono_literals;

// Lists nothing, until there is a file `stalls`: from then on it hangs, whatever it is asked.
constexpr const char* kEngine = R"(#!/bin/sh
echo "$@" >>"$0.asked"
[ ! -e "$0.stalls" ] || exec sleep 1000
)";

TEST_CASE("a pool whose engine hangs has one patience for all that its end asks for") {
  const testing::TemporaryFolder folder;
  const std::string engine = (folder.path() / "engine").string();
  write_file_atomically(engine, kEngine);
  REQUIRE(::chmod(engine.c_str(), 0755) == 0);
  ExperimentSpec spec;
  spec.name = "s";
  spec.options.pool.engine = "command";
  spec.options.pool.start = {engine, "start", "${name}"};
  spec.options.pool.list = {engine, "list"};
  spec.options.pool.stop = {engine, "stop", "${id}"};
  const testing::TickingClock clock(500ms);
  Pool pool(
      spec, folder.path(), checked_engine(spec), [](const std::string&) {}, clock);
  write_file_atomically(engine + ".stalls", "");
  PoolBook book;
  book.change({1, AllocationState::kRunning, "7", "", ""}, {});
  book.change({2, AllocationState::kRequested, "", "", ""}, {});  // its id is to be asked for
  const auto begin = clock.now();
  pool.end(book, 20s);
  // 3 steps that wait, each with two looks at the clock before it and one past its end.
  CHECK(clock.now() - begin <= 20s + 9 * 500ms);
  const std::string asked = read_file(engine + ".asked");
  CHECK(asked.find("list\n") != std::string::npos);
  CHECK(asked.find("stop 7\n") != std::string::npos);
}

}  // namespace
}  // namespace tune
