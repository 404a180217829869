#include "tune/view/usage_blob.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/spawn.h"
#include "tune/results/result_lines.h"
#include "tune/view/columns_blob.h"

namespace tune::view {

namespace {

constexpr std::size_t kMostLines = 100'000;  // a century
constexpr std::size_t kMostPoints = 4000;
constexpr std::size_t kMostGpus = 64;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number_or_nan(const Value& from, std::string_view key) {
  const Value* found = from.find(key);
  return found != nullptr && found->is_number() ? found->number() : kNone;
}

struct Columns {
  std::vector<double> time, attempt, cpus, memory_bytes;
  struct Gpu {
    std::vector<double> busy, memory_bytes;
  };
  std::map<std::uint64_t, Gpu> gpus;

  void add(const Value& line) {
    const std::size_t at = time.size();
    time.push_back(number_or_nan(line, "time"));
    attempt.push_back(number_or_nan(line, "attempt"));
    cpus.push_back(number_or_nan(line, "cpus"));
    memory_bytes.push_back(number_or_nan(line, "memory_bytes"));
    const Value* list = line.find("gpus");
    if (list == nullptr || !list->is_list()) return;
    for (const Value& one : list->list()) {
      const double index = number_or_nan(one, "gpu");
      if (!(index >= 0 && index < 1e6)) continue;
      const auto number = static_cast<std::uint64_t>(index);
      if (!gpus.contains(number) && gpus.size() >= kMostGpus) continue;
      Gpu& gpu = gpus[number];
      gpu.busy.resize(at, kNone);
      gpu.memory_bytes.resize(at, kNone);
      gpu.busy.push_back(number_or_nan(one, "busy"));
      gpu.memory_bytes.push_back(number_or_nan(one, "memory_bytes"));
    }
  }
};

Columns read_usage(const std::filesystem::path& folder) {
  std::vector<std::string> lines;
  for_each_line(folder / kUsageFile, [&](std::string_view line, std::size_t) {
    if (lines.size() < kMostLines) lines.emplace_back(line);
  });
  Columns columns;
  const std::size_t stride =
      std::max<std::size_t>(1, (lines.size() + kMostPoints - 1) / kMostPoints);
  for (std::size_t i = lines.empty() ? 0 : (lines.size() - 1) % stride; i < lines.size();
       i += stride) {
    try {
      const Value line = parse_json(lines[i], kUsageFile);
      if (line.is_map()) columns.add(line);
    } catch (const Error&) {  // cut by a full disk
    }
  }
  return columns;
}

}  // namespace

std::string usage_blob(const Experiment& experiment, std::size_t row) {
  Columns columns = read_usage(experiment.trial_directory(row));
  const std::size_t size = columns.time.size();
  ColumnsBlob blob;
  blob.add("time", columns.time);
  blob.add("attempt", columns.attempt);
  blob.add("cpus", columns.cpus);
  blob.add("memory_bytes", columns.memory_bytes);
  Value::List numbers;
  for (auto& [number, gpu] : columns.gpus) {
    gpu.busy.resize(size, kNone);
    gpu.memory_bytes.resize(size, kNone);
    blob.add("busy " + std::to_string(number), gpu.busy);
    blob.add("memory " + std::to_string(number), gpu.memory_bytes);
    numbers.emplace_back(number);
  }
  return blob.finish(Value{{"gpus", Value::make_list(std::move(numbers))}});
}

}  // namespace tune::view
