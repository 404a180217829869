// tune logs.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/spawn.h"
#include "tune/cli/cli_commands.h"
#include "tune/results/experiment_folder.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLogsEvery{200};

// "2f1e0_00003": hexadecimal characters, '_', a counter of at least 5 digits. Its counter, or
// nothing.
std::optional<std::uint64_t> counter_of(const std::string& folder) {
  const std::size_t bar = folder.find('_');
  if (bar != 5 || folder.size() < bar + 6) return std::nullopt;
  for (std::size_t i = 0; i < bar; ++i) {
    if (!std::isxdigit(static_cast<unsigned char>(folder[i]))) return std::nullopt;
  }
  std::uint64_t counter = 0;
  const char* last = folder.data() + folder.size();
  const auto [end, error] = std::from_chars(folder.data() + bar + 1, last, counter);
  if (error != std::errc() || end != last) return std::nullopt;
  return counter;
}

std::vector<std::string> trial_folders(const fs::path& directory) {
  std::vector<std::string> ids;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::string name = entry.path().filename().string();
    if (counter_of(name) && entry.is_directory()) ids.push_back(std::move(name));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool is_meant(const std::string& id, const std::string& trial) {
  if (!trial.empty() && trial.find_first_not_of("0123456789") == std::string::npos) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(trial.data(), trial.data() + trial.size(), number);
    return error == std::errc() && counter_of(id) == number;
  }
  // The end of its id; or its name in the table, which ends with the id.
  return !trial.empty() && (id.ends_with(trial) || trial.ends_with("_" + id));
}

class File {
 public:
  explicit File(const fs::path& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  bool is_open() const { return descriptor_ >= 0; }

  // Copies what has come since to standard output.
  void copy_rest() {
    char buffer[1 << 16];
    ssize_t count = 0;
    while ((count = read(descriptor_, buffer, sizeof buffer)) > 0) {
      std::fwrite(buffer, 1, static_cast<std::size_t>(count), stdout);
    }
    if (std::fflush(stdout) != 0) {
      throw Error(ErrorCode::kIo, fmt::format("writing to stdout: {}", std::strerror(errno)));
    }
  }

 private:
  int descriptor_;
};

void follow(const fs::path& directory, const fs::path& file) {
  std::optional<File> source;
  while (true) {
    const bool live = is_live(directory);  // before reading: nothing comes after it is over
    if (!source && fs::exists(file)) source.emplace(file);
    if (source) source->copy_rest();
    if (!live) return;
    std::this_thread::sleep_for(kLogsEvery);
  }
}

// Every rank has its files once the trial has begun.
void check_rank(const fs::path& trial, std::uint32_t rank) {
  if (rank == 0 || !fs::exists(trial / rank_file_name("stdout", 0))) return;
  std::uint32_t ranks = 1;
  while (fs::exists(trial / rank_file_name("stdout", ranks))) ++ranks;
  if (rank < ranks) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("--rank {}: {} has {}", rank, trial.string(),
                          ranks == 1 ? "rank 0 only" : fmt::format("ranks 0 to {}", ranks - 1)));
}

}  // namespace

fs::path find_trial(const fs::path& directory, const std::string& trial) {
  if (!fs::exists(directory / "experiment.json")) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} holds no experiment: name its folder, as in results/latest",
                            directory.string()));
  }
  const std::vector<std::string> ids = trial_folders(directory);
  std::vector<std::string> meant;
  for (const std::string& id : ids) {
    if (is_meant(id, trial)) meant.push_back(id);
  }
  if (meant.size() == 1) return directory / meant.front();
  if (meant.size() > 1) {
    throw Error(ErrorCode::kBadInput, fmt::format("'{}' may be {} or {}: write more of the id",
                                                  trial, meant[0], meant[1]));
  }
  const std::string there =
      ids.empty() ? "none has begun"
                  : fmt::format("there are {}: {} to {}", ids.size(), ids.front(), ids.back());
  throw Error(ErrorCode::kBadInput,
              fmt::format("there is no trial '{}' in {}: {}", trial, directory.string(), there));
}

int logs_command(const LogsArguments& arguments) {
  const fs::path directory = arguments.directory;
  const fs::path trial = find_trial(directory, arguments.trial);
  const fs::path file =
      trial / rank_file_name(arguments.errors ? "stderr" : "stdout", arguments.rank);
  check_rank(trial, arguments.rank);
  if (arguments.follow) {
    follow(directory, file);
    return 0;
  }
  File source(file);
  if (!source.is_open()) {
    if (errno != ENOENT) {
      throw Error(ErrorCode::kIo,
                  fmt::format("reading {}: {}", file.string(), std::strerror(errno)));
    }
    fmt::print(stderr, "the trial has printed nothing yet: there is no {}\n", file.string());
    return 0;
  }
  source.copy_rest();
  return 0;
}

}  // namespace tune
