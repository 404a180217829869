#include "core/agent/usage_log.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <fstream>
#include <string>

#include <fmt/format.h>

#include "core/json.h"
#include "core/platform/files.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A made-up /proc.
struct Machine {
  TemporaryFolder proc;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);

  // `cpu_s` is half its own time, half that of children it has waited for.
  void process(pid_t pid, pid_t group, double cpu_s, std::int64_t pages) const {
    const fs::path folder = proc.path() / std::to_string(pid);
    fs::create_directories(folder);
    const auto quarter = static_cast<long>(cpu_s * ticks / 4);
    std::ofstream(folder / "stat") << fmt::format(
        "{} (a ) name) S 1 {} {} 0 -1 4194560 9 9 9 9 {} {} {} {} 20 0 1 0 77 123456 {} 18446\n",
        pid, group, group, quarter, quarter, quarter, quarter, pages);
  }
  void end(pid_t pid) const { fs::remove_all(proc.path() / std::to_string(pid)); }
};

struct Trial {
  TemporaryFolder folder;
  std::map<std::uint64_t, UsedBy> live = {
      {7,
       {.attempt = AttemptNumber{2},
        .begun = seconds(8),
        .folder = folder.path(),
        .groups = {40}}}};
  std::vector<Value> lines() const {
    std::vector<Value> all;
    std::ifstream in(folder.path() / "usage.jsonl");
    for (std::string line; std::getline(in, line);) all.push_back(parse_json(line, "a line"));
    return all;
  }
};

constexpr WallTime kWall = seconds(1'795'000'000);

TEST_CASE("a line tells the cores that an attempt's groups used, and the most memory") {
  const Machine machine;
  Trial trial;
  trial.live.at(7).groups = {40, 50};
  trial.live.at(7).begun = seconds(98);
  UsageLog log{GroupMeter(machine.proc.path())};
  machine.process(40, 40, 1, 100);
  machine.process(41, 40, 0, 20);   // a child of rank 0
  machine.process(50, 50, 1, 100);  // rank 1
  machine.process(60, 60, 9, 900);  // a stranger
  fs::create_directory(machine.proc.path() / "self");
  log.look(seconds(100), kWall, trial.live);
  machine.process(40, 40, 3, 50);
  machine.process(41, 40, 0.8, 20);
  log.look(seconds(102), kWall + milliseconds(2000), trial.live);
  const std::vector<Value> lines = trial.lines();
  REQUIRE(lines.size() == 2);
  // The first one is of the two seconds since the attempt began: 2 s of both ranks.
  CHECK(lines[0].at("cpus").number() == doctest::Approx(1));
  CHECK(lines[0].at("memory_bytes").number() == 220.0 * machine.page);
  CHECK(lines[0].at("attempt").number() == 2);
  CHECK(lines[0].at("time").number() == 1'795'000'000);
  CHECK_FALSE(lines[0].contains("gpus"));
  CHECK(lines[1].at("cpus").number() == doctest::Approx(1.4));  // 2 and 0.8 of 2 s
  CHECK(lines[1].at("memory_bytes").number() == 170.0 * machine.page);
  CHECK(lines[1].at("time").number() == 1'795'000'002);
}

TEST_CASE("an attempt that begins between two looks has its first line when it says something") {
  const Machine machine;
  Trial trial;
  UsageLog log{GroupMeter(machine.proc.path())};
  machine.process(40, 40, 1, 100);
  log.look(seconds(10), kWall, trial.live);
  TemporaryFolder folder;  // of one that begins long after the last look
  trial.live = {{8,
                 {.attempt = AttemptNumber{1},
                  .begun = seconds(99),
                  .folder = folder.path(),
                  .groups = {50}}}};
  machine.process(50, 50, 0.2, 100);
  log.look(milliseconds(99'010), kWall, trial.live);
  CHECK_FALSE(fs::exists(folder.path() / "usage.jsonl"));
  machine.process(50, 50, 2, 100);
  log.look(milliseconds(101'000), kWall, trial.live);
  std::ifstream in(folder.path() / "usage.jsonl");
  std::string line;
  REQUIRE(std::getline(in, line));
  // Of the two seconds that it has run, not of the time in which nothing ran here.
  CHECK(parse_json(line, "a line").at("cpus").number() == doctest::Approx(1));
}

TEST_CASE("an ended child that nobody waited for does not make the time negative") {
  const Machine machine;
  Trial trial;
  UsageLog log{GroupMeter(machine.proc.path())};
  machine.process(40, 40, 1, 100);
  machine.process(41, 40, 5, 20);
  log.look(seconds(10), kWall, trial.live);
  machine.end(41);
  log.look(seconds(12), kWall, trial.live);
  machine.process(40, 40, 2, 100);
  log.look(seconds(14), kWall, trial.live);
  const std::vector<Value> lines = trial.lines();
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].at("cpus").number() == 0);
  CHECK(lines[2].at("cpus").number() == doctest::Approx(0.5));
}

TEST_CASE("GPUs are told with the mean of their load and the most of their memory") {
  const Machine machine;
  Trial trial;
  trial.live.at(7).gpus = {{1, "GPU-b"}, {3, "MIG-c"}, {4, "GPU-gone"}};
  double busy = 0.5;
  UsageLog log{GroupMeter(machine.proc.path()),
               [&](const std::string& uuid) -> std::optional<GpuLoad> {
                 if (uuid == "GPU-b") return GpuLoad{busy, static_cast<std::int64_t>(busy * 1000)};
                 if (uuid == "MIG-c") return GpuLoad{std::nullopt, 7};
                 return std::nullopt;
               }};
  log.look(seconds(10), kWall, trial.live);
  log.look(milliseconds(10'500), kWall, trial.live);  // not due: counts for the next
  busy = 1;
  log.look(seconds(12), kWall, trial.live);
  const std::vector<Value> lines = trial.lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].at("gpus").dump() ==
        R"([{"gpu":1,"busy":0.75,"memory_bytes":1000},{"gpu":3,"memory_bytes":7}])");
}

TEST_CASE("the lines of a file lie further apart the longer it is") {
  const Machine machine;
  Trial trial;
  UsageLog log{GroupMeter(machine.proc.path())};
  constexpr int kDay = 24 * 3600;
  for (int second = 0; second < kDay; second += 2) log.look(seconds(second), kWall, trial.live);
  const auto size = fs::file_size(trial.folder.path() / "usage.jsonl");
  CHECK(size > 100'000);
  CHECK(size < 200'000);
}

TEST_CASE("a folder that is gone and a link in place of the file are left alone") {
  const Machine machine;
  Trial trial;
  UsageLog log{GroupMeter(machine.proc.path())};
  const fs::path other = trial.folder.path() / "other";
  fs::create_symlink(other, trial.folder.path() / "usage.jsonl");
  log.look(seconds(10), kWall, trial.live);
  CHECK_FALSE(fs::exists(other));
  trial.live.at(7).folder = trial.folder.path() / "gone";
  log.look(seconds(14), kWall, trial.live);
  CHECK_FALSE(fs::exists(trial.folder.path() / "gone"));
}

TEST_CASE("the meter finds this process in the machine's own /proc") {
  GroupMeter meter;
  const auto found = meter.read({::getpgrp()});
  REQUIRE(found.size() == 1);
  CHECK(found.at(::getpgrp()).memory_bytes > 1'000'000);
  CHECK(meter.read({}).empty());
}

}  // namespace
}  // namespace tune::testing
