#include "core/platform/group_meter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/platform/process.h"

namespace tune {

namespace {

struct ProcessLine {
  pid_t group = 0;
  std::uint64_t ticks = 0;
  std::uint64_t pages = 0;
};

// "4711 (a name) S 1 4711 ...": proc(5) numbers the fields from 1. The name may hold anything.
std::optional<ProcessLine> read_line(const std::filesystem::path& file) {
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const ssize_t count = opened.is_open() ? ::read(opened.get(), text.data(), text.size()) : -1;
  if (count <= 0) return std::nullopt;  // it has ended meanwhile
  std::string_view line(text.data(), static_cast<std::size_t>(count));
  const std::size_t name_end = line.rfind(')');
  if (name_end == line.npos || name_end + 2 >= line.size()) return std::nullopt;
  constexpr std::size_t kGroup = 5, kUser = 14, kChildrenSystem = 17, kResident = 24;
  std::array<std::uint64_t, kResident + 1> fields{};
  const std::string rest(line.substr(name_end + 2));
  const char* at = rest.c_str();
  for (std::size_t field = 3; field <= kResident; ++field) {
    char* end = nullptr;
    fields.at(field) = std::strtoull(at, &end, 10);
    while (*end != ' ' && *end != '\0') ++end;  // the state is a letter
    if (*end == '\0' && field < kResident) return std::nullopt;
    at = end + 1;
  }
  ProcessLine found{static_cast<pid_t>(fields[kGroup]), 0, fields[kResident]};
  for (std::size_t field = kUser; field <= kChildrenSystem; ++field) found.ticks += fields[field];
  return found;
}

bool is_number(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == name.npos;
}

}  // namespace

std::map<pid_t, GroupUsage> GroupMeter::read(const std::set<pid_t>& groups) {
  static const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const std::int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  std::map<pid_t, GroupUsage> found;
  if (!groups.empty()) {
    std::error_code error;
    std::filesystem::directory_iterator process(proc_, error);
    for (; !error && process != std::filesystem::directory_iterator(); process.increment(error)) {
      if (!is_number(process->path().filename().native())) continue;
      const auto line = read_line(process->path() / "stat");
      if (!line || !groups.contains(line->group)) continue;
      GroupUsage& usage = found[line->group];
      usage.cpu += from_seconds(static_cast<double>(line->ticks) / ticks_per_second);
      usage.memory_bytes += static_cast<std::int64_t>(line->pages) * page_bytes;
    }
  }
  std::map<pid_t, Duration> totals;
  for (auto& [group, usage] : found) {
    totals[group] = usage.cpu;
    const auto former = totals_.find(group);
    if (former != totals_.end()) usage.cpu = std::max(usage.cpu - former->second, Duration{});
  }
  totals_ = std::move(totals);
  return found;
}

}  // namespace tune
