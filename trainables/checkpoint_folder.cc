#include "trainables/checkpoint_folder.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/error.h"

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
