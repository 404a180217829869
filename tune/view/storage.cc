#include "tune/view/storage.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune::view {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kListEvery{1};
constexpr std::chrono::seconds kIdlePollEvery{2};  // of an experiment that no driver holds
constexpr std::chrono::minutes kForgottenAfter{10};

std::vector<ExperimentHead> heads_below(const fs::path& directory) {
  std::vector<ExperimentHead> heads;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code unreadable;  // "latest" is a link
    if (entry->is_symlink(unreadable) || !is_experiment(entry->path())) continue;
    heads.push_back(read_head(entry->path()));
    if (heads.size() == kMaxListed) break;
  }
  return heads;
}

}  // namespace

Storage::Storage(fs::path directory) : directory_(std::move(directory)) {
  std::error_code error;
  const fs::path whole = fs::canonical(directory_, error);
  if (error) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("viewing {}: {}: name an experiment's folder, or the storage that holds "
                    "experiments",
                    directory_.string(), error.message()));
  }
  directory_ = whole;
  is_one_ = is_experiment(directory_);
  const std::vector<ExperimentHead>& found = list(Clock::now());
  if (found.empty()) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("{} is not an experiment, and no folder in it is one: name an experiment's "
                    "folder, or the storage that holds experiments",
                    directory_.string()));
  }
  if (is_one_ && !found.front().problem.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("viewing {}: {}", directory_.string(), found.front().problem));
  }
}

const std::vector<ExperimentHead>& Storage::list(Clock::time_point now) {
  if (listed_ != Clock::time_point() && now - listed_ < kListEvery) return heads_;
  listed_ = now;
  heads_ = is_one_ ? std::vector{read_head(directory_)} : heads_below(directory_);
  std::sort(heads_.begin(), heads_.end(), [](const auto& a, const auto& b) {
    return a.changed != b.changed ? a.changed > b.changed : a.folder < b.folder;
  });
  return heads_;
}

Experiment* Storage::open(std::string_view key, Clock::time_point now) {
  if (const auto found = opened_.find(key); found != opened_.end()) {
    found->second.asked = now;
    return found->second.experiment.get();
  }
  for (const ExperimentHead& head : list(now)) {
    if (head.key != key || !head.problem.empty()) continue;
    make_room();
    Opened& opened = opened_[head.key];
    opened.experiment = std::make_unique<Experiment>(head, change_);
    opened.asked = now;
    return opened.experiment.get();
  }
  return nullptr;
}

void Storage::open_running(Clock::time_point now) {
  std::vector<std::string> keys;
  for (const ExperimentHead& head : list(now)) {
    if (head.problem.empty() && state_of(head.directory) == "running") keys.push_back(head.key);
    if (keys.size() == kMaxOpenExperiments / 2) break;
  }
  for (const std::string& key : keys) open(key, now);
}

// The one that nobody has asked for longest goes.
void Storage::make_room() {
  if (opened_.size() < kMaxOpenExperiments) return;
  opened_.erase(std::min_element(opened_.begin(), opened_.end(), [](const auto& a, const auto& b) {
    return a.second.asked < b.second.asked;
  }));
}

bool Storage::load(Clock::time_point until) {
  bool more = false;
  for (auto& [key, opened] : opened_) more = !opened.experiment->load_some(until) || more;
  return more;
}

std::vector<std::string> Storage::poll(Clock::time_point now) {
  std::vector<std::string> changed;
  for (auto at = opened_.begin(); at != opened_.end();) {
    Opened& opened = at->second;
    if (now - opened.asked > kForgottenAfter) {
      at = opened_.erase(at);
      continue;
    }
    if (opened.experiment->is_live() || opened.experiment->is_behind() ||
        now - opened.polled >= kIdlePollEvery) {
      opened.polled = now;
      if (opened.experiment->poll(now)) changed.push_back(at->first);
    }
    ++at;
  }
  return changed;
}

}  // namespace tune::view
