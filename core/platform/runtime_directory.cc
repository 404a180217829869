#include "core/platform/runtime_directory.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "core/platform/files.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxBaseLength = 70;  // leaves room for "/tune-<pid>-XXXXXX/<socket>"
constexpr std::string_view kPrefix = "tune-";

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

// tune-<pid>-XXXXXX of this user, whose process is gone.
void remove_stale(const fs::path& base) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(base, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const pid_t pid = std::atoi(name.c_str() + kPrefix.size());
    struct stat found {};
    if (pid <= 1 || lstat(entry.path().c_str(), &found) != 0) continue;
    if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid()) continue;
    if (kill(pid, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

RuntimeDirectory::RuntimeDirectory() : owner_(getpid()) {
  const fs::path base = base_directory();
  remove_stale(base);
  std::string pattern = (base / fmt::format("{}{}-XXXXXX", kPrefix, owner_)).string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw file_error("making a folder for sockets in", base, errno);
  }
  path_ = pattern;
}

RuntimeDirectory::~RuntimeDirectory() {
  std::error_code ignored;
  if (getpid() == owner_) fs::remove_all(path_, ignored);
}

}  // namespace tune
