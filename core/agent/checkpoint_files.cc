#include "core/agent/checkpoint_files.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <set>
#include <string>

#include "core/ids.h"
#include "core/platform/files.h"
#include "core/spawn.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

// Of all names that an attempt writes under before they are final.
std::string ending_of(AttemptNumber attempt) {
  return ".tmp-" + std::to_string(attempt.value);
}

}  // namespace

void promote_checkpoint(const fs::path& trial_directory, const CheckpointSaved& saved) {
  const fs::path fresh =
      trial_directory / temporary_checkpoint_name(saved.iteration, saved.attempt);
  const fs::path final = trial_directory / checkpoint_name(saved.iteration);
  if (::rename(fresh.c_str(), final.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) throw file_error("renaming", fresh, errno);
    // Swapped, so that a whole checkpoint stands there all the time; where the file system cannot,
    // there is none for a moment, but never a part of one.
    fs::path old = fresh;
    if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) != 0) {
      old = trial_directory / (".checkpoint_old" + ending_of(saved.attempt));
      if (::rename(final.c_str(), old.c_str()) != 0) throw file_error("renaming", final, errno);
      if (::rename(fresh.c_str(), final.c_str()) != 0) throw file_error("renaming", fresh, errno);
    }
    std::error_code ignored;
    fs::remove_all(old, ignored);
  }
  flush_path(trial_directory);
}

void remove_unrecorded(const fs::path& trial_directory,
                       const std::vector<CheckpointRecord>& records) {
  std::set<std::string> recorded;
  for (const CheckpointRecord& record : records) recorded.insert(checkpoint_name(record.iteration));
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(trial_directory, ignored)) {
    const std::string name = entry.path().filename();
    const bool is_checkpoint = name.starts_with("checkpoint_") || name.starts_with(".checkpoint_");
    if (is_checkpoint && !recorded.contains(name)) fs::remove_all(entry.path(), ignored);
  }
}

void remove_half_written(const fs::path& trial_directory, AttemptNumber attempt) {
  const std::string ending = ending_of(attempt);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(trial_directory, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(".checkpoint_") && name.ends_with(ending)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace tune
