#include "trainables/checkpoint_folder.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/checkpoint_name.h"
#include "core/error.h"
#include "trainables/failure.h"

namespace tune {
namespace {

void flush_one(const std::filesystem::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | flags);
  if (descriptor < 0 && (errno == ENOENT || errno == ELOOP)) return;  // gone again, or a link
  // Some file systems cannot flush a folder (EINVAL); it is then as durable as it gets.
  const bool flushed = descriptor >= 0 && (::fsync(descriptor) == 0 ||
                                           (errno == EINVAL && (flags & O_DIRECTORY) != 0));
  const int cause = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!flushed) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot flush {}: {}", path.string(), std::strerror(cause)));
  }
}

}  // namespace

std::optional<std::filesystem::path> checkpoint_to_load(const StartWorker& start) {
  const WorkerLaunch& launch = start.launch;
  if (launch.restore_iteration == 0) return std::nullopt;
  if (!start.restore_folder.empty()) return start.restore_folder;
  return std::filesystem::path(start.trial_directory) /
         checkpoint_name(launch.restore_iteration, launch.restore_attempt);
}

std::optional<std::filesystem::path> existing_checkpoint(const StartWorker& start) {
  auto folder = checkpoint_to_load(start);
  if (folder && !std::filesystem::is_directory(*folder)) {
    throw AttemptFailure(fmt::format(
        "load: the checkpoint {} is not there; was it moved or deleted?", folder->string()));
  }
  return folder;
}

std::filesystem::path checkpoint_to_write(const StartWorker& start, std::uint64_t iteration) {
  return std::filesystem::path(start.trial_directory) /
         temporary_checkpoint_name(iteration, start.launch.attempt);
}

void make_fresh_folder(const std::filesystem::path& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
}

void flush_checkpoint(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_symlink()) continue;
    if (entry.is_directory()) flush_checkpoint(entry.path());
    if (entry.is_regular_file()) flush_one(entry.path(), 0);
  }
  flush_one(folder, O_DIRECTORY);
}

}  // namespace tune
