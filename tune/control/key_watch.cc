#include "tune/control/key_watch.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "core/result_view.h"
#include "core/strings.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

constexpr std::uint64_t kPatience = 20;  // results

}  // namespace

KeyWatch::KeyWatch(std::vector<std::string> expected) : missing_(std::move(expected)) {
  std::erase_if(missing_, [](const std::string& path) { return path.empty(); });
  done_ = missing_.empty();
}

std::string KeyWatch::record(const Record& record) {
  const auto* result = std::get_if<ResultRecorded>(&record);
  if (done_ || result == nullptr) return {};
  std::erase_if(missing_, [&](const std::string& path) {
    return ResultView(result->report).number(path).has_value();
  });
  done_ = missing_.empty();
  if (done_ || (++results_ < kPatience && !result->done)) return {};
  done_ = true;
  return missing_keys(missing_, result->report);
}

std::string missing_keys(const std::vector<std::string>& paths, const Reported& report) {
  std::vector<std::string> present;
  const Value value = unpack(report.result);
  for (const auto& [path, leaf] : value.leaves()) present.push_back(path);
  std::string text;
  for (const std::string& path : paths) {
    const Value* found = value.find(path);
    const std::string what = found == nullptr
                                 ? "in no result so far" + did_you_mean(path, present)
                                 : fmt::format("{}, expected a number", describe_value(*found));
    text += fmt::format("{}'{}' is {}", text.empty() ? "" : "; ", path, what);
  }
  return fmt::format("{}; results have: {}", text,
                     present.empty() ? "nothing" : join(present, ", "));
}

}  // namespace tune
