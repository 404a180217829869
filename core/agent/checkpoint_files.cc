#include "core/agent/checkpoint_files.h"

#include <set>
#include <string>

#include "core/agent/relay_folder.h"
#include "core/platform/files.h"
#include "core/spawn.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

// Renames before removing: a folder under its final name is always complete. Files that cannot be
// renamed or removed stay.
void remove_whole(const fs::path& checkpoint) {
  const fs::path gone =
      checkpoint.parent_path() / removed_checkpoint_name(checkpoint.filename().string());
  std::error_code error;
  fs::remove_all(gone, error);  // of a removal that was cut short
  fs::rename(checkpoint, gone, error);
  if (!error) fs::remove_all(gone, error);
}

// Reads the whole listing before any entry is removed.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ends;
  for (auto entry = fs::directory_iterator(folder, ends);
       !ends && entry != fs::directory_iterator(); entry.increment(ends)) {
    names.push_back(entry->path().filename());
  }
  return names;
}

}  // namespace

void promote_checkpoint(const fs::path& trial_directory, const CheckpointSaved& saved,
                        const std::vector<CheckpointPart>& joins) {
  if (!joins.empty()) {
    std::vector<RelayPart> parts;
    for (const CheckpointPart& one : joins) {
      parts.push_back({checkpoint_part_name(saved.iteration, saved.attempt, one.node), one.host});
    }
    return RelayFolder(trial_directory)
        .join({temporary_checkpoint_name(saved.iteration, saved.attempt),
               checkpoint_name(saved.iteration, saved.attempt),
               replaced_checkpoint_name(saved.attempt)},
              parts);
  }
  put_folder_in_place(trial_directory / temporary_checkpoint_name(saved.iteration, saved.attempt),
                      trial_directory / checkpoint_name(saved.iteration, saved.attempt),
                      trial_directory / replaced_checkpoint_name(saved.attempt));
  flush_path(trial_directory);
}

void remove_checkpoint(const fs::path& trial_directory, const CheckpointId& id) {
  remove_whole(trial_directory / checkpoint_name(id.iteration, id.attempt));
}

void remove_unrecorded(const fs::path& trial_directory,
                       const std::vector<CheckpointRecord>& records, AttemptNumber through) {
  std::set<std::string> recorded;
  for (const CheckpointRecord& record : records) {
    if (!record.origin) recorded.insert(checkpoint_name(record.iteration, record.attempt));
  }
  std::error_code ignored;
  for (const std::string& name : names_in(trial_directory)) {
    const auto whole = checkpoint_of_name(name);
    const auto temporary = attempt_of_temporary(name);
    if (is_removed_checkpoint(name) || (temporary && *temporary <= through)) {
      fs::remove_all(trial_directory / name, ignored);
    } else if (whole && whole->attempt <= through && !recorded.contains(name)) {
      remove_whole(trial_directory / name);
    }
  }
}

std::string own_tail(const fs::path& file, AttemptNumber attempt) {
  const std::string tail = tail_lines(file, kStderrTailLines, kStderrTailBytes);
  const std::size_t begin = ("\n" + tail).rfind("\n" + attempt_line(attempt));
  return begin == std::string::npos ? tail : tail.substr(begin);
}

void remove_half_written(const fs::path& trial_directory, AttemptNumber attempt) {
  std::error_code ignored;
  for (const std::string& name : names_in(trial_directory)) {
    if (attempt_of_temporary(name) == attempt) fs::remove_all(trial_directory / name, ignored);
  }
}

void drop_checkpoint(const fs::path& trial_directory, const CheckpointSaved& saved) {
  std::error_code ignored;
  fs::remove_all(trial_directory / temporary_checkpoint_name(saved.iteration, saved.attempt),
                 ignored);
}

std::string why_not_promoted(const fs::path& trial_directory, const CheckpointSaved& saved,
                             const std::vector<CheckpointPart>& joins) try {
  promote_checkpoint(trial_directory, saved, joins);
  return {};
} catch (const std::exception& failure) {
  return failure.what();
}

AttemptEnded concluded(const fs::path& trial_directory, const ConcludeAttempt& end) {
  AttemptEnded ended = end.ended;
  if (end.removes_half_written) remove_half_written(trial_directory, ended.attempt);
  if (end.wants_stderr_tail) {
    const fs::path file = trial_directory / rank_file_name("stderr", ended.rank);
    ended.stderr_tail = own_tail(file, ended.attempt);
  }
  return ended;
}

}  // namespace tune
