#include "tune/results/experiment_head.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <exception>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "tune/results/experiment_folder.h"
#include "tune/spec/experiment_version.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

std::string key_of(std::string_view folder) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char byte : folder) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return fmt::format("{:016x}", hash);
}

double change_of(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return 0;
  return static_cast<double>(status.st_mtim.tv_sec) +
         static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
}

std::string text_at(const Value& spec, std::string_view key) {
  const Value* found = spec.find(key);
  return found != nullptr && found->is_string() ? found->string() : std::string();
}

// The first of several objectives, where there are several.
std::string first_text(const Value& spec, std::string_view key) {
  const Value* found = spec.find(key);
  if (found != nullptr && found->is_list() && !found->list().empty() &&
      found->list().front().is_string()) {
    return found->list().front().string();
  }
  return text_at(spec, key);
}

// The name of a part that is a map of one key, {"asha": {...}}, or a text.
std::string part_name(const Value& spec, std::string_view key) {
  const Value* found = spec.find(key);
  if (found == nullptr) return {};
  if (found->is_string()) return found->string();
  return found->is_map() && !found->map().empty() ? found->map().front().key : std::string();
}

bool is_log_domain(std::string_view name) {
  static constexpr std::array<std::string_view, 3> kNames = {"loguniform", "qloguniform",
                                                             "lograndint"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Options of a choice stand in the place of the choice.
void find_log_paths(const Value& node, const std::string& path, std::set<std::string>& found) {
  if (node.is_list()) {
    for (const Value& option : node.list()) find_log_paths(option, path, found);
    return;
  }
  if (!node.is_map()) return;
  const Value::Map& map = node.map();
  if (map.size() == 1 && is_log_domain(map.front().key) && map.front().value.is_list()) {
    found.insert(path);
    return;
  }
  if (map.size() == 1 && map.front().key == "choice") {
    return find_log_paths(map.front().value, path, found);
  }
  for (const Member& member : map) {
    find_log_paths(member.value, path.empty() ? member.key : path + "/" + member.key, found);
  }
}

void fill(ExperimentHead& head) {
  const fs::path file = head.directory / kSpecFile;
  head.spec = parse_json(read_file(file), file.string());
  const Value* version = head.spec.find("version");
  if (version == nullptr || version->type() != Value::Type::kInt) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} names no version of its format", file.string()));
  }
  if (version->integer() > kExperimentVersion) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format(
            "a newer tune made it: the version of its experiment.json is {}, this program reads "
            "up to {}: use the newer one",
            version->integer(), kExperimentVersion));
  }
  head.name = text_at(head.spec, "name");
  if (head.name.empty()) head.name = head.folder;
  head.trainable = text_at(head.spec, "trainable");
  head.metric = first_text(head.spec, "metric");
  head.mode = first_text(head.spec, "mode") == "min" ? Mode::kMin : Mode::kMax;
  head.scheduler = part_name(head.spec, "scheduler");
  head.searcher = part_name(head.spec, "searcher");
  const Value* samples = head.spec.find("num_samples");
  if (samples != nullptr && samples->type() == Value::Type::kInt)
    head.num_samples = samples->integer();
  if (const Value* space = head.spec.find("config")) find_log_paths(*space, "", head.log_paths);
}

}  // namespace

std::string state_of(const fs::path& directory) try {
  const std::optional<RunRecord> record = read_record(directory);
  if (!record) return is_live(directory) ? "running" : "not begun";
  switch (record->state) {
    case RunState::kRunning:
      return is_live(directory) ? "running" : "killed";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kFinished:
      return "finished";
    case RunState::kFailed:
      return "failed";
  }
  return "killed";
} catch (const std::exception&) {  // a damaged run.json
  return "killed";
}

bool is_experiment(const fs::path& directory) {
  std::error_code unreadable;
  return fs::is_regular_file(directory / kSpecFile, unreadable);
}

ExperimentHead read_head(const fs::path& directory) {
  ExperimentHead head;
  head.directory = directory;
  head.folder = directory.filename().string();
  head.key = key_of(head.folder);
  head.name = head.folder;
  for (const char* file : {kSpecFile, "run.json", "events.jsonl", "results.csv"}) {
    head.changed = std::max(head.changed, change_of(directory / file));
  }
  try {
    fill(head);
  } catch (const std::exception& error) {
    head.problem = error.what();
  }
  return head;
}

ExperimentHead checked_head(const fs::path& directory) {
  if (!is_experiment(directory)) refuse_no_experiment(directory);
  ExperimentHead head = read_head(directory);
  if (head.problem.empty()) return head;
  throw Error(ErrorCode::kBadInput,
              fmt::format("reading {}: {}", directory.string(), head.problem));
}

SearchSpace space_of(const ExperimentHead& head) {
  const Value* described = head.spec.find("config");
  if (described == nullptr) return {};
  std::vector<SpaceComplaint> ignored;
  SpaceReading reading{.is_stored = true};
  reading.function = [](const Config&) { return Value(); };
  return search_space_from_value(*described, ignored, reading);
}

}  // namespace tune
