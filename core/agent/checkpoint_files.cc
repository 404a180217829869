#include "core/agent/checkpoint_files.h"

#include <set>
#include <string>

#include "core/ids.h"
#include "core/platform/files.h"
#include "core/spawn.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

// Under its final name it is whole until it is gone. What cannot be renamed or removed stays.
void remove_whole(const fs::path& checkpoint) {
  const fs::path gone =
      checkpoint.parent_path() / ("." + checkpoint.filename().string() + ".tmp-gone");
  std::error_code error;
  fs::remove_all(gone, error);  // of a removal that was cut short
  fs::rename(checkpoint, gone, error);
  if (!error) fs::remove_all(gone, error);
}

// Of all names that an attempt writes under before they are final.
std::string ending_of(AttemptNumber attempt) {
  return ".tmp-" + std::to_string(attempt.value);
}

}  // namespace

void promote_checkpoint(const fs::path& trial_directory, const CheckpointSaved& saved) {
  const fs::path fresh =
      trial_directory / temporary_checkpoint_name(saved.iteration, saved.attempt);
  const fs::path final = trial_directory / checkpoint_name(saved.iteration);
  put_folder_in_place(fresh, final,
                      trial_directory / (".checkpoint_old" + ending_of(saved.attempt)));
  flush_path(trial_directory);
}

void remove_checkpoint(const fs::path& trial_directory, std::uint64_t iteration) {
  remove_whole(trial_directory / checkpoint_name(iteration));
}

void remove_unrecorded(const fs::path& trial_directory,
                       const std::vector<CheckpointRecord>& records) {
  std::set<std::string> recorded;
  for (const CheckpointRecord& record : records) recorded.insert(checkpoint_name(record.iteration));
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(trial_directory, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(".checkpoint_")) fs::remove_all(entry.path(), ignored);
    if (name.starts_with("checkpoint_") && !recorded.contains(name)) remove_whole(entry.path());
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
