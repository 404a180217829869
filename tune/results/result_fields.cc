#include "tune/results/result_fields.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

constexpr const char* kDateFormat = "{:%Y-%m-%d_%H-%M-%S}";

void append_short(std::string& out, PackReader in) {
  switch (in.peek()) {
    case PackReader::Type::kFloat:
      out += fmt::format("{:.4g}", in.number());
      return;
    case PackReader::Type::kText:
      out += in.text();
      return;
    default:
      append_packed_json(out, in);
  }
}

// The value at a key path of a packed map; false when there is none.
bool seek(PackReader& in, std::string_view path) {
  const std::size_t slash = path.find('/');
  const std::string_view key = path.substr(0, slash);
  if (in.peek() != PackReader::Type::kMap) return false;
  for (std::size_t left = in.map(); left > 0; --left) {
    if (in.text() != key) {
      in.skip();
      continue;
    }
    return slash == path.npos || seek(in, path.substr(slash + 1));
  }
  return false;
}

}  // namespace

void make_result(ResultText& text, const Reported& report, const ResultOrigin& origin,
                 ResultFields skipped) {
  using enum ResultField;
  text.clear();
  try {
    text.add_members(report.result.bytes, skipped.with(kDone));
  } catch (const Error&) {
    text.clear();  // damaged by its worker: that there was a result still counts
  }
  text.skip(skipped);
  const auto whole = [](std::uint64_t count) { return static_cast<std::int64_t>(count); };
  text.add(kTrainingIteration, whole(report.iteration));
  text.add(kDone, origin.done);
  text.add(kTrialId, origin.trial_id);
  text.add(kExperimentTag, origin.experiment_tag);
  text.add(kTimeThisIter, seconds(report.time_this_iter));
  text.add(kTimeTotal, seconds(report.time_total));
  text.add(kTimeSinceRestore, seconds(report.time_since_restore));
  text.add(kIterationsSinceRestore, whole(report.iterations_since_restore));
  if (const std::optional<double>& steps = report.timesteps_total) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (*steps == std::floor(*steps) && std::abs(*steps) < kExact) {
      text.add(kTimestepsTotal, static_cast<std::int64_t>(*steps));
    } else {
      text.add(kTimestepsTotal, *steps);
    }
  }
  text.add(kTimestamp, origin.second);
  text.add(kDate, origin.date);
  text.add(kHostname, origin.hostname);
  text.add(kNodeIp, origin.node_ip);
  text.add(kPid, origin.pid);
}

std::int64_t unix_second(WallTime wall) {
  return std::chrono::floor<std::chrono::seconds>(wall).count();
}

std::string local_date(std::int64_t second) {
  return fmt::format(fmt::runtime(kDateFormat), fmt::localtime(static_cast<std::time_t>(second)));
}

const std::string& LocalDates::of(std::int64_t second) {
  if (second != second_) {
    second_ = second;
    date_ = local_date(second);
  }
  return date_;
}

std::pair<std::string_view, std::int64_t> split_location(std::string_view location) {
  const std::size_t colon = location.rfind(':');
  if (colon == std::string_view::npos) return {location, 0};
  std::int64_t pid = 0;
  std::from_chars(location.data() + colon + 1, location.data() + location.size(), pid);
  return {location.substr(0, colon), pid};
}

ExperimentTags::ExperimentTags(const ExperimentSpec& spec)
    : searched_(spec.options.config.searched_paths()) {}

bool any_below(const std::vector<std::string>& paths, std::string_view path) {
  return std::any_of(paths.begin(), paths.end(), [&](std::string_view one) {
    return one.size() > path.size() && one.starts_with(path) && one[path.size()] == '/';
  });
}

std::string ExperimentTags::of(TrialNumber trial, const Packed& config) const {
  std::string tag = fmt::format("{}", trial.value);
  char separator = '_';
  for (const std::string& path : searched_) {
    PackReader in(config.bytes);
    if (!seek(in, path)) continue;
    if (in.peek() == PackReader::Type::kMap && any_below(searched_, path)) continue;
    tag.append(1, separator).append(path).append(1, '=');
    append_short(tag, in);
    separator = ',';
  }
  return tag;
}

}  // namespace tune
