#include "core/platform/runtime_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/platform/files.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxBaseLength = 70;  // leaves room for "/tune-<pid>-XXXXXX/<socket>"
constexpr std::string_view kFolderPrefix = "tune-";

bool is_usable(const char* directory) {
  return directory != nullptr && *directory == '/' &&
         std::string_view(directory).size() <= kMaxBaseLength &&
         access(directory, W_OK | X_OK) == 0;
}

fs::path base_directory() {
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    if (is_usable(std::getenv(name))) return std::getenv(name);
  }
  return "/tmp";
}

FileDescriptor open_folder(const fs::path& path) {
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// tune-<pid>-XXXXXX of this user whose process is gone. A process of another container may look
// gone: a folder that it holds locked is in use. Gives the folder locked, or a closed descriptor.
FileDescriptor lock_stale(const fs::path& path) {
  const std::string name = path.filename();
  if (!name.starts_with(kFolderPrefix)) return {};
  const pid_t pid = std::atoi(name.c_str() + kFolderPrefix.size());
  if (pid <= 1 || kill(pid, 0) == 0 || errno != ESRCH) return {};
  FileDescriptor folder = open_folder(path);
  struct stat found {};
  if (!folder.is_open() || fstat(folder.get(), &found) != 0) return {};
  const bool stale = found.st_uid == geteuid() && flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
  return stale ? std::move(folder) : FileDescriptor();
}

bool is_at(const FileDescriptor& folder, const fs::path& path) {
  struct stat held {}, found {};
  return folder.is_open() && fstat(folder.get(), &held) == 0 && lstat(path.c_str(), &found) == 0 &&
         held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

// Waits for a process that looks at the folder or removes it; a file system without locks gives
// none.
void lock_when_free(const FileDescriptor& folder) {
  while (flock(folder.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

template <class Visit>
void for_each_path(const fs::path& base, Visit visit) {
  std::error_code error;
  fs::directory_iterator entry(base, error);
  while (!error && entry != fs::directory_iterator()) {
    visit(entry->path());
    entry.increment(error);
  }
}

void remove_stale(const fs::path& base) {
  for_each_path(base, [](const fs::path& path) {
    std::error_code ignored;
    const FileDescriptor locked = lock_stale(path);
    if (locked.is_open()) fs::remove_all(path, ignored);
  });
}

}  // namespace

RuntimeDirectory::RuntimeDirectory() : owner_(getpid()) {
  const fs::path base = base_directory();
  remove_stale(base);
  // Until it is locked, a process of another container may take the new folder for a stale one and
  // remove it: the next one is made then.
  do {
    std::string pattern = (base / fmt::format("{}{}-XXXXXX", kFolderPrefix, owner_)).string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw file_error("making a folder for sockets in", base, errno);
    }
    path_ = pattern;
    lock_ = open_folder(path_);
    if (!lock_.is_open() && errno != ENOENT) throw file_error("opening", path_, errno);
    if (lock_.is_open()) lock_when_free(lock_);
  } while (!is_at(lock_, path_));
}

RuntimeDirectory::~RuntimeDirectory() {
  std::error_code ignored;
  if (getpid() == owner_) fs::remove_all(path_, ignored);
}

bool is_live_runtime_directory(const fs::path& path) {
  if (!path.filename().string().starts_with(kFolderPrefix)) return false;
  const FileDescriptor folder = open_folder(path);
  struct stat found {};
  if (!folder.is_open() || fstat(folder.get(), &found) != 0) return false;
  return found.st_uid == geteuid() && flock(folder.get(), LOCK_SH | LOCK_NB) != 0;
}

std::vector<fs::path> live_runtime_directories(const fs::path& base) {
  std::vector<fs::path> live;
  for_each_path(base, [&live](const fs::path& path) {
    if (is_live_runtime_directory(path)) live.push_back(path);
  });
  return live;
}

}  // namespace tune
