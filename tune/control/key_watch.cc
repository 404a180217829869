#include "tune/control/key_watch.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/result_view.h"
#include "core/strings.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

constexpr std::uint64_t kPatience = 20;  // results

void erase_numbers(std::vector<std::string>& paths, const Reported& report) {
  std::erase_if(paths,
                [&](const auto& path) { return ResultView(report).number(path).has_value(); });
}

// A function comes to its end after its last result, which does not know that it is the last.
bool has_just_completed(const TrialChanged& changed) {
  const Trial& trial = changed.trial;
  return changed.former && trial.status == TrialStatus::kTerminated && !trial.was_stopped &&
         trial.last;
}

}  // namespace

KeyWatch::KeyWatch(std::vector<std::string> expected, std::vector<std::string> metrics)
    : missing_(std::move(expected)), metrics_(std::move(metrics)) {
  std::erase_if(missing_, [](const std::string& path) { return path.empty(); });
}

std::string KeyWatch::record(const Record& record) {
  if (const auto* result = std::get_if<ResultRecorded>(&record)) {
    erase_numbers(missing_, result->report);
    ++results_;
    return look_at(result->trial, result->report, result->done);
  }
  const auto* changed = std::get_if<TrialChanged>(&record);
  if (changed == nullptr || !has_just_completed(*changed)) return {};
  return look_at(changed->trial, *changed->trial.last, true);
}

std::string KeyWatch::look_at(const Trial& trial, const Reported& report, bool is_last) {
  if (!missing_.empty() && (results_ >= kPatience || is_last)) {
    if (std::ranges::find_first_of(missing_, metrics_) != missing_.end()) metrics_.clear();
    return missing_keys(std::exchange(missing_, {}), report);
  }
  return is_last ? last_of(trial, report) : std::string();
}

std::string KeyWatch::last_of(const Trial& trial, const Reported& report) {
  std::vector<std::string> lacking = metrics_;
  erase_numbers(lacking, report);
  if (lacking.empty()) return {};
  metrics_.clear();
  std::string text;
  for (const std::string& path : lacking) {
    text += fmt::format("{}'{}' is not a number of the last result of trial {}",
                        text.empty() ? "" : "; ", path, trial.number.value);
  }
  return text;
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
