#include "tune/results/file_logger.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <ctime>
#include <variant>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxOpenTrials = 256;  // two descriptors each
constexpr const char* kDateFormat = "{:%Y-%m-%d_%H-%M-%S}";

std::int64_t unix_second(WallTime wall) {
  return std::chrono::floor<std::chrono::seconds>(wall).count();
}

std::string local_date(std::int64_t second) {
  return fmt::format(fmt::runtime(kDateFormat), fmt::localtime(static_cast<std::time_t>(second)));
}

// "10.0.0.3:4711" (the address may hold colons itself).
std::pair<std::string_view, std::int64_t> split_location(std::string_view location) {
  const std::size_t colon = location.rfind(':');
  if (colon == std::string_view::npos) return {location, 0};
  std::int64_t pid = 0;
  std::from_chars(location.data() + colon + 1, location.data() + location.size(), pid);
  return {location.substr(0, colon), pid};
}

std::string short_value(const Value& value) {
  if (value.type() == Value::Type::kFloat) return fmt::format("{:.4g}", value.number());
  return value.is_string() ? value.string() : value.dump();
}

std::string failure_text(const AttemptFailed& failed, const std::string& when) {
  const Failure& failure = *failed.trial.failure;
  std::string text = fmt::format(
      "--- attempt {} failed at {}: {} ---\nrank {}: {}\n", failure.attempt.value, when,
      failed.retried ? "it is tried again" : "the trial is in ERROR", failure.rank, failure.cause);
  if (!failure.stderr_tail.empty()) {
    text += "its last lines on stderr:\n" + failure.stderr_tail;
    if (text.back() != '\n') text += '\n';
  }
  return text;
}

}  // namespace

FileLogger::FileLogger(fs::path directory, const ExperimentSpec& spec)
    : directory_(std::move(directory)), experiment_(experiment_id_of(spec)) {
  for (const auto& [path, domain] : spec.options.config.domains()) searched_.push_back(path);
}

fs::path FileLogger::trial_directory(TrialNumber trial) const {
  return directory_ / trial_id(experiment_, trial);
}

void FileLogger::record(const Record& record, WallTime wall) {
  std::visit([&](const auto& what) { on(what, wall); }, record);
}

void FileLogger::flush() {
  for (TrialNumber number : dirty_) {
    const auto open = open_.find(number.value);
    if (open != open_.end()) flush(number, *open->second);
  }
  dirty_.clear();
  for (TrialNumber number : ended_) {
    const auto open = open_.find(number.value);
    if (open == open_.end()) continue;
    if (open->second->place) used_.erase(*open->second->place);
    open_.erase(open);
  }
  ended_.clear();
}

void FileLogger::flush(TrialNumber number, Open& open) {
  open.dirty = false;
  open.files.flush();
  use(open);
  kept(number).lengths = open.files.lengths();
  kept(number).may_hold_more = false;
}

std::string FileLogger::save() {
  flush();
  PackWriter out;
  out.map(hostnames_.size());
  for (const auto& [agent, hostname] : hostnames_) encode(out, agent), out.text(hostname);
  encode(out, kept_);
  return out.take();
}

void FileLogger::restore(std::string_view state) {
  PackReader in(state);
  hostnames_.clear();
  for (std::size_t left = in.map(); left > 0; --left) {
    AgentNumber agent;
    decode(in, agent);
    decode(in, hostnames_[agent]);
  }
  decode(in, kept_);
  in.expect_end();
  for (Kept& trial : kept_) trial.may_hold_more = trial.error_may_hold_more = true;
}

// Keeps the descriptors of those that were written last.
void FileLogger::use(Open& trial) {
  if (trial.place) {
    used_.splice(used_.begin(), used_, *trial.place);
    return;
  }
  trial.place = used_.insert(used_.begin(), &trial);
  if (used_.size() <= kMaxOpenTrials) return;
  used_.back()->files.close();
  used_.back()->place.reset();
  used_.pop_back();
}

// ---- Records -----------------------------------------------------------------------------------

// A folder that is there already is of an earlier driver: what is in its files will be told again.
void FileLogger::on(const TrialAdded& added, WallTime) {
  const fs::path directory = trial_directory(added.trial.number);
  const bool is_new = mkdir(directory.c_str(), 0777) == 0;
  if (!is_new && errno != EEXIST) throw file_error("making the folder", directory, errno);
  std::string config;
  PackReader in(added.trial.config.bytes);
  append_packed_json(config, in);
  config += '\n';
  const fs::path params = directory / "params.json";
  if (is_new || !file_holds(params, config)) AppendFile(params, true).write(config);
  kept(added.trial.number) = {{}, 0, !is_new, !is_new};
  if (!is_new) mark_dirty(added.trial.number, open(added.trial));
}

void FileLogger::on(const ResultRecorded& recorded, WallTime wall) {
  Open& trial = open(recorded.trial);
  text_.clear();
  try {  // whether the trial is done is not only the user's business
    text_.add_members(recorded.report.result.bytes, ResultField::kDone);
  } catch (const Error&) {
    text_.clear();  // damaged by its worker: that there was a result still counts
  }
  add_fields(recorded, trial, wall);
  trial.files.append(text_);
  mark_dirty(recorded.trial.number, trial);
}

void FileLogger::on(const ResultsCut& cut, WallTime) {
  Open& trial = open(cut.trial);
  trial.files.cut(cut.iteration);
  mark_dirty(cut.trial.number, trial);
}

void FileLogger::on(const TrialChanged& changed, WallTime) {
  if (changed.trial.status == TrialStatus::kRunning) return;
  if (open_.contains(changed.trial.number.value)) ended_.push_back(changed.trial.number);
}

void FileLogger::on(const AttemptFailed& failed, WallTime wall) {
  const std::string text = failure_text(failed, local_date(unix_second(wall)));
  const fs::path file = trial_directory(failed.trial.number) / "error.txt";
  Kept& trial = kept(failed.trial.number);
  if (std::exchange(trial.error_may_hold_more, false)) cut_file(file, trial.error_bytes);
  AppendFile(file, false).write(text);
  trial.error_bytes += text.size();
}

void FileLogger::on(const NodeJoined& joined, WallTime) {
  hostnames_[joined.agent] = joined.hello.hostname;
}

// ---- Results -----------------------------------------------------------------------------------

FileLogger::Open& FileLogger::open(const Trial& trial) {
  std::unique_ptr<Open>& found = open_[trial.number.value];
  if (!found) {
    const Kept& known = kept(trial.number);
    found = std::make_unique<Open>(
        TrialFiles(trial_directory(trial.number), known.lengths, known.may_hold_more));
    found->id = trial_id(experiment_, trial.number);
    found->tag = tag_of(trial);
  }
  return *found;
}

FileLogger::Kept& FileLogger::kept(TrialNumber trial) {
  if (trial.value >= kept_.size()) kept_.resize(trial.value + 1);
  return kept_[trial.value];
}

void FileLogger::mark_dirty(TrialNumber number, Open& open) {
  if (!open.dirty) dirty_.push_back(number);
  open.dirty = true;
}

void FileLogger::add_fields(const ResultRecorded& recorded, const Open& trial, WallTime wall) {
  using enum ResultField;
  const Reported& report = recorded.report;
  const auto whole = [](std::uint64_t count) { return static_cast<std::int64_t>(count); };
  text_.add(kTrainingIteration, whole(report.iteration));
  text_.add(kDone, recorded.done);
  text_.add(kTrialId, std::string_view(trial.id));
  text_.add(kExperimentTag, std::string_view(trial.tag));
  text_.add(kTimeThisIter, seconds(report.time_this_iter));
  text_.add(kTimeTotal, seconds(report.time_total));
  text_.add(kTimeSinceRestore, seconds(report.time_since_restore));
  text_.add(kIterationsSinceRestore, whole(report.iterations_since_restore));
  if (const std::optional<double>& steps = report.timesteps_total) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (*steps == std::floor(*steps) && std::abs(*steps) < kExact) {
      text_.add(kTimestepsTotal, static_cast<std::int64_t>(*steps));
    } else {
      text_.add(kTimestepsTotal, *steps);
    }
  }
  const std::int64_t second = unix_second(wall);
  text_.add(kTimestamp, second);
  text_.add(kDate, std::string_view(date(second)));
  const auto host = recorded.trial.placement ? hostnames_.find(recorded.trial.placement->agent)
                                             : hostnames_.end();
  text_.add(kHostname, host == hostnames_.end() ? std::string_view() : host->second);
  const auto [ip, pid] = split_location(recorded.trial.location);
  text_.add(kNodeIp, ip);
  text_.add(kPid, pid);
}

const std::string& FileLogger::date(std::int64_t second) {
  if (second != date_second_) {
    date_second_ = second;
    date_ = local_date(second);
  }
  return date_;
}

// "3_lr=0.1,act=relu": the number and what was searched.
std::string FileLogger::tag_of(const Trial& trial) const {
  std::string tag = fmt::format("{}", trial.number.value);
  const Value config = unpack(trial.config);
  char separator = '_';
  for (const std::string& path : searched_) {
    const Value* value = config.find(path);
    if (value == nullptr) continue;
    tag += fmt::format("{}{}={}", separator, path, short_value(*value));
    separator = ',';
  }
  return tag;
}

}  // namespace tune
