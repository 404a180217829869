#include "core/resources.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

constexpr std::pair<std::string_view, double> kSuffixes[] = {
    {"", 1},         {"B", 1},      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
    {"TiB", 0x1p40}, {"kB", 1e3},   {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
    {"TB", 1e12},    {"K", 0x1p10}, {"M", 0x1p20},   {"G", 0x1p30},   {"T", 0x1p40}};

[[noreturn]] void refuse_resources(const std::string& why) {
  throw Error(ErrorCode::kBadInput, why);
}

void check_amount(const char* name, double amount) {
  if (!std::isfinite(amount) || amount < 0 || amount > 1e9) {
    refuse_resources(fmt::format("{} is {}: give a number from 0 up", name, amount));
  }
}

}  // namespace

MemorySize::MemorySize(std::string_view text) {
  double amount = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, amount);
  std::string_view suffix(read.ptr, static_cast<std::size_t>(end - read.ptr));
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  for (const auto& [name, factor] : kSuffixes) {
    if (read.ec != std::errc() || suffix != name) continue;
    if (!(amount >= 0) || amount * factor > 0x1p62) break;
    bytes_ = static_cast<std::int64_t>(amount * factor);
    return;
  }
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("'{}' is not an amount of memory: write bytes, or 512MiB, 8GiB, 8GB", text));
}

std::int64_t to_units(double amount) {
  // 0.3 * 10000 is 2999.9999999999995 in binary: take the nearest 1e-9 before rounding down.
  return static_cast<std::int64_t>(std::floor(amount * static_cast<double>(kUnit) + 1e-5));
}

ResourceRequest to_request(const Resources& resources) {
  const int ranks = resources.ranks;
  if (ranks < 1 || ranks > 65536)
    refuse_resources(fmt::format("ranks is {}: give at least 1", ranks));
  const double cpu = resources.cpu.value_or(ranks);
  check_amount("cpu", cpu);
  check_amount("gpu", resources.gpu);
  if (resources.memory.bytes() < 0) {
    refuse_resources(fmt::format("memory is {}: give bytes from 0 up", resources.memory.bytes()));
  }
  ResourceRequest request;
  request.cpu_units = to_units(cpu);
  request.gpu_units = to_units(resources.gpu);
  request.memory_bytes = resources.memory.bytes();
  request.ranks = ranks;
  if (request.cpu_units / ranks == 0) {
    refuse_resources(fmt::format("cpu {} over {} ranks leaves a rank none", cpu, ranks));
  }
  const double share = resources.gpu / ranks;
  const std::int64_t share_units = to_units(share);
  const bool whole = share_units % kUnit == 0 && request.gpu_units == share_units * ranks;
  if (resources.gpu > 0 && share_units == 0) {
    refuse_resources(fmt::format("gpu {} over {} ranks is less than {} a rank", resources.gpu,
                                 ranks, 1.0 / static_cast<double>(kUnit)));
  }
  if (!whole && share_units >= kUnit) {
    refuse_resources(fmt::format("gpu {} over {} ranks is {} a rank: it must be whole, or below 1",
                                 resources.gpu, ranks, share));
  }
  return request;
}

}  // namespace tune
