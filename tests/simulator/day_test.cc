#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <vector>

#include "simulator/bare_cluster.h"

namespace tune::simulator {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kDay = 86'400;
constexpr std::size_t kLimit = 64u << 20;

struct Watched {
  std::vector<std::size_t> peaks;  // of the stream, from one snapshot to the next
  std::size_t snapshot_bytes = 0;
  std::size_t bytes_a_second = 0;  // of entries
};

// 1,000 trials of a driver's day, each reporting once a second, beginning at `begin` seconds, for
// this many snapshots. A snapshot waits half a minute for the disk.
Watched watch(std::uint64_t begin, std::size_t snapshots) {
  BareOptions options;
  options.nodes = 1000;  // an entry for each report
  options.slots_per_node = 1;
  options.begin = begin;
  options.iterations = kDay;
  options.snapshot_takes = seconds(30);
  BareSweep sweep(options);
  Watched watched;
  std::uint64_t rounds = 0;
  std::uint64_t before = sweep.store().written_bytes();
  for (; sweep.store().snapshots() < snapshots; ++rounds) {
    const std::uint64_t taken = sweep.store().snapshots();
    sweep.run_round();
    if (sweep.store().snapshots() > taken) watched.peaks.push_back(sweep.store().take_peak());
    REQUIRE(rounds < 10'000);
  }
  CHECK(sweep.driver().logger().results() > 1000 * (rounds - 3));
  watched.snapshot_bytes = sweep.store().snapshot_bytes();
  watched.bytes_a_second = (sweep.store().written_bytes() - before) / rounds;
  return watched;
}

// 86,400,000 results are too many for a test. The sizes of entries, which follow the digits of
// their numbers, settle how a stream grows from one snapshot to the next; so the day's first
// snapshots and its last are looked at. (bench_simulated_cluster --day 86400 runs all of it.)
TEST_CASE("a day of 1,000 trials that report once a second keeps the stream under 64 MiB") {
  const Watched first = watch(0, 3);
  const Watched last = watch(kDay - 1000, 3);
  for (const Watched& watched : {first, last}) {
    for (const std::size_t peak : watched.peaks) CHECK(peak < kLimit / 3);
    // The stream does not grow from one snapshot to the next by more than a few seconds' entries.
    const auto [least, most] = std::ranges::minmax(std::views::drop(watched.peaks, 1));
    CHECK(most - least < 5 * watched.bytes_a_second);
    CHECK(watched.snapshot_bytes < kLimit / 16);
  }
}

// Also when trials take ten minutes each, so that 144,000 have finished when the day ends: a stream
// may grow as large as its snapshot before the next one is taken, and for half a minute more.
TEST_CASE("what has finished in a day leaves the stream room under 64 MiB") {
  BareOptions options;
  options.trials = 20'000;
  options.snapshot_takes = seconds(30);
  BareSweep sweep(options);
  while (!sweep.driver().controller().is_over()) sweep.run_round();
  const std::size_t snapshot_bytes = sweep.driver().snapshot_bytes() / options.trials * 144'000;
  const std::size_t half_a_minute = 30 * 1000 * (200 + CountingStore::kEntryBytes);
  CHECK(snapshot_bytes + 2 * half_a_minute < kLimit);
  CHECK(snapshot_bytes > kLimit / 16);
}

}  // namespace
}  // namespace tune::simulator
