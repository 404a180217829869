// UsageLog: what each attempt uses of processors, memory and GPUs, as lines of usage.jsonl in its
// trial's folder (described in tune/README.md, "Results"): for the page's pictures. It decides
// nothing, and a line that cannot be written is left out.
//
// A file grows ever more slowly: its lines lie two seconds apart up to 16 KiB, four seconds up to
// 32 KiB, and so on, each with the mean or the most of its time. So a day takes about 130 KiB and a
// year 260, over all attempts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/platform/group_meter.h"
#include "core/platform/nvml.h"
#include "core/spawn.h"

namespace tune {

// An attempt that runs now.
struct UsedBy {
  AttemptNumber attempt;
  Duration begun{};
  std::filesystem::path folder;                    // the trial's
  std::set<pid_t> groups = {};                     // its ranks', each the leader of one
  std::map<std::uint32_t, std::string> gpus = {};  // the node's index, and the id that NVML knows
};

class UsageLog {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(2);
  static constexpr std::uintmax_t kBytesAtOnePace = 16u << 10;

  using ReadGpu = std::function<std::optional<GpuLoad>(const std::string& uuid)>;
  explicit UsageLog(GroupMeter meter = GroupMeter(), ReadGpu read_gpu = {});

  // By attempt_key. Reads once, and appends the lines that are due. Never throws.
  void look(Duration now, WallTime wall, const std::map<std::uint64_t, UsedBy>& attempts) noexcept;

 private:
  struct Sum {
    double value = 0;
    int count = 0;
    void add(double one) { value += one, ++count; }
  };
  struct Gpu {
    Sum busy;
    std::int64_t memory_bytes = 0;
  };
  struct Since {  // the attempt's last line
    Duration begun{};
    Duration due{};
    Duration cpu{};
    std::int64_t memory_bytes = 0;  // the most
    std::map<std::uint32_t, Gpu> gpus;
  };
  void add(Since& since, const UsedBy& one, const std::map<pid_t, GroupUsage>& usage);
  static std::string line(const Since& since, const UsedBy& one, Duration now, WallTime wall);

  GroupMeter meter_;
  ReadGpu read_gpu_;
  std::map<std::uint64_t, Since> since_;
};

}  // namespace tune
