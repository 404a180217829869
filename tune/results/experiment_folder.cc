#include "tune/results/experiment_folder.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/journal_format.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/store_address.h"
#include "core/strings.h"
#include "tune/results/experiment_head.h"
#include "tune/results/own_agent.h"
#include "tune/results/warm_start.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr const char* kRecordFile = "run.json";
constexpr const char* kTableFile = "results.csv";
constexpr const char* kLockFile = "lock";
constexpr const char* kStoreFolder = "store";  // the journal of a private server
constexpr const char* kZygoteLog = "zygote.log";
constexpr const char* kKeysFile = "keys.json";  // of agents that outlive their driver
constexpr const char* kNodesFolder = "nodes";   // and what they need to know
constexpr std::chrono::seconds kLockWait{15};
constexpr const char* kStateNames[] = {"running", "interrupted", "finished", "failed"};

std::string dated_name(const std::string& trainable, const fs::path& storage) {
  const std::string name =
      fmt::format("{}_{:%Y-%m-%d_%H-%M-%S}", trainable, fmt::localtime(std::time(nullptr)));
  std::string unused = name;
  for (int i = 2; fs::exists(storage / unused); ++i) unused = fmt::format("{}_{}", name, i);
  return unused;
}

// A different prefix for each folder that was ever made.
std::string drawn_prefix(const std::string& name) {
  std::random_device random;
  return fmt::format("tune:{}:{:08x}{:08x}", name, random(), random());
}

void make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || access(directory.c_str(), W_OK | X_OK) != 0) {
    const std::string cause =
        error ? error.message() : std::error_code(errno, std::generic_category()).message();
    throw Error(ErrorCode::kBadInput,
                fmt::format("making the results folder {}: {}: choose another with --storage",
                            directory.string(), cause));
  }
}

// The number of missing folders that are to hold it.
int missing_parents(const fs::path& directory) {
  int missing = 0;
  std::error_code unknown;  // a folder that cannot be looked at cannot be made either
  fs::path parent = fs::absolute(directory).parent_path();
  for (; !fs::exists(parent, unknown) && !unknown; parent = parent.parent_path()) ++missing;
  return missing;
}

// A file that holds the store's password is for its owner only.
Readers readers_of(const std::string& store) {
  const bool is_secret = !store.empty() && !parse_store_address(store).password.empty();
  return is_secret ? Readers::kOwnerOnly : Readers::kAsUsual;
}

// Refuses the folder of an earlier experiment, with the ways out.
[[noreturn]] void refuse_existing(const fs::path& directory) {
  const std::optional<RunRecord> record = read_record(directory);
  if (record && (record->state == RunState::kFinished || record->state == RunState::kFailed)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} holds an experiment that {}: choose another name, or --fresh to "
                            "move it to {}.old-N and begin anew",
                            directory.string(),
                            record->state == RunState::kFinished ? "is finished" : "has failed",
                            directory.filename().string()));
  }
  if (is_live(directory)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} holds an experiment that is running ({}): follow it with `tune "
                            "status {}`, or choose another name",
                            directory.string(), describe_holders(directory / kLockFile),
                            shell_word(directory.string())));
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} holds an experiment that was interrupted: resume it with `tune "
                          "resume {}`, choose another name, or --fresh to move it aside and begin "
                          "anew",
                          directory.string(), shell_word(directory.string())));
}

// Processes of a driver that was killed may still be ending.
ExperimentLock lock_of(const fs::path& directory) {
  return {directory / kLockFile, kLockWait, [&](const std::string& holders) {
            fmt::print(stderr, "{} is in use: waiting up to {} s for {}\n", directory.string(),
                       kLockWait.count(), holders);
          }};
}

// Its trials would save into the folder that takes the place of theirs.
void end_own_agent(const fs::path& directory, Duration grace, ExperimentLock& lock) {
  const auto agent = OwnAgent::of(directory);
  if (!agent || agent->is_gone()) return;
  agent->end(
      grace, [](const std::string& text) { fmt::print(stderr, "{}\n", text); },
      [&lock] { lock.show_life(); });
}

// The journal tells it as well. But before a driver can read that, it has written files for nodes
// and has ended an agent that is not of its version.
void refuse_newer(const fs::path& directory) try {
  if (const auto record = read_record(directory)) refuse_newer_format(record->journal_format);
} catch (const Error& error) {
  if (error.code() != ErrorCode::kProtocol) return;  // it cannot be read, or does not say
  throw Error(error.code(), fmt::format("resuming {}: {}", directory.string(), error.what()));
}

// The temporary file of a killed driver.
bool is_broken_write(const std::string& name) {
  const auto is_of = [&](const char* file) {
    return name.starts_with(fmt::format("{}.tmp-", file));
  };
  return is_of(kSpecFile) || is_of(kRecordFile) || is_of(kTableFile) || is_of(kWarmStartFile) ||
         is_of(kKeysFile);
}

// The remains of a driver that was killed while it started: everything that is made before the
// spec.
bool is_of_false_start(const std::string& name) {
  return name == kLockFile || name == kStoreFolder || name == kZygoteLog || name == kKeysFile ||
         name == kNodesFolder || name == kWarmStartFile || is_broken_write(name);
}

bool holds_something_else(const fs::path& path) {
  if (!fs::is_directory(path)) return fs::exists(path);
  return !std::all_of(fs::directory_iterator(path), fs::directory_iterator(),
                      [](const auto& entry) { return is_of_false_start(entry.path().filename()); });
}

// But not the lock: it is held.
void remove_all_of(const fs::path& directory, bool (*is_wanted)(const std::string& name)) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name != kLockFile && is_wanted(name)) found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove_all(path);
}

// Returns the new place.
fs::path move_aside(const fs::path& directory) {
  for (int i = 1;; ++i) {
    const fs::path old = fmt::format("{}.old-{}", directory.string(), i);
    if (fs::exists(fs::symlink_status(old))) continue;
    std::error_code error;
    fs::rename(directory, old, error);
    if (error) throw file_error("renaming", directory, error.value());
    return old;
  }
}

// Undoes move_aside, unless the place is taken or the old experiment is in use meanwhile.
void put_back(const fs::path& old, const fs::path& directory) try {
  if (old.empty()) return;
  const ExperimentLock lock(old / kLockFile, std::chrono::milliseconds(0));
  fs::rename(old, directory);
} catch (const std::exception& error) {
  fmt::print(stderr, "the earlier {} is now {}: {}\n", directory.string(), old.string(),
             error.what());
}

}  // namespace

ExperimentFolder::ExperimentFolder(fs::path path, ExperimentLock lock)
    : path_(std::move(path)), absolute_(fs::absolute(path_)), lock_(std::move(lock)) {}

ExperimentFolder ExperimentFolder::create(ExperimentSpec& spec) {
  const fs::path storage = spec.options.storage;
  if (spec.name.empty()) {
    spec.name = spec.name_given ? spec.options.name : dated_name(spec.trainable, storage);
  }
  const fs::path directory = storage / spec.name;
  fs::path replaced;
  if (fs::exists(directory / kSpecFile)) {
    if (spec.options.if_exists != IfExists::kFresh) refuse_existing(directory);
    ExperimentLock old = lock_of(directory);
    end_own_agent(directory, from_seconds(spec.options.save_grace_s), old);
    replaced = move_aside(directory);
  } else if (holds_something_else(directory)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} is there and holds no experiment: choose another name or storage",
                            directory.string()));
  }
  spec.store_prefix = drawn_prefix(spec.name);
  try {
    ExperimentFolder folder = make(directory);
    if (!replaced.empty()) folder.replaced_ = fs::absolute(replaced);
    return folder;
  } catch (const Error&) {
    put_back(replaced, directory);
    throw;
  }
}

ExperimentFolder ExperimentFolder::make(const fs::path& directory) {
  const int made = missing_parents(directory);
  make_directory(directory);
  ExperimentFolder folder(directory, lock_of(directory));
  folder.made_parents_ = made;
  if (fs::exists(directory / kSpecFile)) refuse_existing(directory);  // another was quicker
  remove_all_of(directory, is_of_false_start);
  return folder;
}

void ExperimentFolder::withdraw() const {
  std::error_code ignored;
  fs::remove_all(absolute_, ignored);
  put_back(replaced_, absolute_);
  fs::path parent = absolute_.parent_path();
  // A folder that holds something by now belongs to another as well.
  for (int i = 0; i < made_parents_ && fs::remove(parent, ignored); ++i) {
    parent = parent.parent_path();
  }
}

ExperimentFolder ExperimentFolder::open(const fs::path& directory) {
  read_spec(directory);
  refuse_newer(directory);
  ExperimentFolder folder(directory, lock_of(directory));
  remove_all_of(directory, is_broken_write);
  for (const char* part : {kNodesFolder, "callbacks"}) {
    if (!fs::exists(directory / part)) continue;
    remove_all_of(directory / part,
                  [](const std::string& name) { return name.find(".tmp-") != std::string::npos; });
  }
  return folder;
}

std::string ExperimentFolder::taken_over() const {
  if (lock_.taken_from().empty()) return {};
  return fmt::format("{} was held by {}, which gives no sign of life any more: taken over",
                     path_.string(), lock_.taken_from());
}

void ExperimentFolder::write_spec(const ExperimentSpec& spec) const {
  keep_earlier(path_, spec);
  write_file_atomically(path_ / kSpecFile, to_json(to_value(spec), 2) + "\n",
                        readers_of(spec.options.store));
}

void ExperimentFolder::write_record(const RunRecord& record) const {
  const Config value{{"state", kStateNames[static_cast<int>(record.state)]},
                     {"driver_pid", record.driver_pid},
                     {"hostname", record.hostname},
                     {"store", record.store},
                     {"prefix", record.prefix},
                     {"requests", record.requests},
                     {"journal_format", kJournalFormat}};
  write_file_atomically(path_ / kRecordFile, to_json(value, 2) + "\n", readers_of(record.store));
  flush_path(absolute_);
}

void ExperimentFolder::link_latest() const {
  const fs::path latest = absolute_.parent_path() / "latest";
  const fs::path temporary = absolute_.parent_path() / fmt::format(".latest-{}", getpid());
  std::error_code error;
  if (fs::exists(fs::symlink_status(latest)) && !fs::is_symlink(latest)) return;  // somebody's own
  fs::remove(temporary, error);
  fs::create_directory_symlink(absolute_.filename(), temporary, error);
  if (!error) fs::rename(temporary, latest, error);  // file systems without links do without it
}

ExperimentSpec read_spec(const fs::path& directory) {
  const fs::path file = directory / kSpecFile;
  if (!fs::exists(file)) refuse_no_experiment(directory);
  ExperimentSpec spec = spec_from_value(parse_json(read_file(file), file.string()));
  spec.earlier = kept_earlier(directory, spec);
  return spec;
}

std::optional<RunRecord> read_record(const fs::path& directory) {
  const fs::path file = directory / kRecordFile;
  if (!fs::exists(file)) return std::nullopt;
  const Value value = parse_json(read_file(file), file.string());
  RunRecord record;
  const auto state = value.get<std::string>("state");
  for (int i = 0; i <= static_cast<int>(RunState::kLast); ++i) {
    if (state == kStateNames[i]) record.state = static_cast<RunState>(i);
  }
  record.driver_pid = value.get<std::uint32_t>("driver_pid");
  record.hostname = value.get<std::string>("hostname");
  record.store = value.get<std::string>("store");
  record.prefix = value.get<std::string>("prefix");
  if (value.contains("requests")) record.requests = value.get<std::string>("requests");
  record.journal_format = value.get_or("journal_format", 0u);
  return record;
}

bool is_live(const fs::path& directory) {
  return ExperimentLock::is_held(directory / kLockFile);
}

void refuse_no_experiment(const fs::path& directory) {
  const std::string folder = directory.string();
  if (is_live(directory)) {  // waiting for GPUs, say
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} holds no experiment yet: {} is about to begin it, and says there "
                            "what it waits for",
                            folder, describe_holders(directory / kLockFile)));
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} holds no experiment: there is no {} in it", folder, kSpecFile));
}

std::string how_to_resume(const fs::path& directory) {
  return "tune resume " + shell_word(directory.string());
}

}  // namespace tune
