#include "core/platform/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include <fmt/format.h>

#include "core/platform/files.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kRetry{20};

std::string name_of(int pid) {
  try {
    std::string name = read_file(fmt::format("/proc/{}/comm", pid));
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return fmt::format("{} ({})", pid, name);
  } catch (const Error&) {
    return fmt::format("{}", pid);
  }
}

}  // namespace

ExperimentLock::ExperimentLock(const fs::path& file, std::chrono::milliseconds wait)
    : file_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (!file_.is_open()) throw file_error("opening the lock", file, errno);
  const auto end = std::chrono::steady_clock::now() + wait;
  while (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw file_error("locking", file, errno);
    if (std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kRetry);
      continue;
    }
    std::vector<std::string> names;
    for (int pid : holders_of(file)) {
      if (pid != getpid()) names.push_back(name_of(pid));
    }
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} is in use by {}: wait for it, or end it, then try again",
                            file.parent_path().string(),
                            names.empty() ? "a process of another machine or user"
                                          : fmt::format("process {}", fmt::join(names, ", "))));
  }
}

bool ExperimentLock::is_held(const fs::path& file) {
  const FileDescriptor probe(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!probe.is_open()) return false;
  return flock(probe.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::vector<int> holders_of(const fs::path& file) {
  std::vector<int> pids;
  struct stat wanted {};
  if (stat(file.c_str(), &wanted) != 0) return pids;
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    const std::string name = process.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    for (const auto& link : fs::directory_iterator(process.path() / "fd", ignored)) {
      struct stat found {};
      if (stat(link.path().c_str(), &found) != 0) continue;
      if (found.st_ino != wanted.st_ino || found.st_dev != wanted.st_dev) continue;
      pids.push_back(std::stoi(name));
      break;
    }
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace tune
