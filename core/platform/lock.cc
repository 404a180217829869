#include "core/platform/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/platform/files.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kRetry{20};
constexpr int kTriesPerLook = 25;  // at who holds it
constexpr std::size_t kNamedHolders = 4;

std::string name_of(int pid) {
  try {
    std::string name = read_file(fmt::format("/proc/{}/comm", pid));
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return fmt::format("{} ({})", pid, name);
  } catch (const Error&) {
    return fmt::format("{}", pid);
  }
}

bool is_stopped(int pid) {
  try {  // "pid (name) state ..."
    const std::string text = read_file(fmt::format("/proc/{}/stat", pid));
    const std::size_t after_name = text.rfind(") ");
    return after_name != std::string::npos && text.substr(after_name + 2, 1) == "T";
  } catch (const Error&) {
    return false;
  }
}

[[noreturn]] void refuse(const fs::path& file) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} is in use by {}: wait for it, or end it, then try again",
                          file.parent_path().string(), describe_holders(file)));
}

// Calls `visit` for each entry, as far as the folder may be read: processes come and go meanwhile.
template <class Visit>
void for_each_entry(const fs::path& directory, Visit visit) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  while (!error && entry != fs::directory_iterator()) {
    if (!visit(entry->path())) return;
    entry.increment(error);
  }
}

}  // namespace

ExperimentLock::ExperimentLock(const fs::path& file, std::chrono::milliseconds wait,
                               const Told& waits) {
  const auto end = std::chrono::steady_clock::now() + wait;
  bool told = !waits;
  for (int tries = 0; !try_lock(file); ++tries) {
    if (tries % kTriesPerLook == 0) wake_orphans(file);
    if (std::chrono::steady_clock::now() >= end) refuse(file);
    if (!std::exchange(told, true)) waits(describe_holders(file));
    std::this_thread::sleep_for(kRetry);
  }
  sign();
}

void ExperimentLock::sign() const {
  const std::string number = std::to_string(getpid());
  // A disk that is full is no reason to refuse: only orphans that are stopped are not woken then.
  [[maybe_unused]] const bool is_signed =
      ftruncate(file_.get(), 0) == 0 && pwrite(file_.get(), number.data(), number.size(), 0) > 0;
}

// A process that stands still does not see that the one it works for is gone.
void ExperimentLock::wake_orphans(const fs::path& file) const {
  char text[32] = {};
  if (!file_.is_open() || pread(file_.get(), text, sizeof text - 1, 0) <= 0) return;
  const std::vector<int> holders = holders_of(file);
  if (std::find(holders.begin(), holders.end(), std::atoi(text)) != holders.end()) return;
  for (int pid : holders) {
    if (is_stopped(pid)) kill(pid, SIGCONT);
  }
}

bool ExperimentLock::try_lock(const fs::path& file) {
  if (!file_.is_open()) file_.reset(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_.is_open()) throw file_error("opening the lock", file, errno);
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw file_error("locking", file, errno);
    return false;
  }
  // The folder may have been renamed and made anew while this waited: the lock is then another
  // file.
  if (is_at(file)) return true;
  file_.reset();
  return false;
}

bool ExperimentLock::is_at(const fs::path& file) const {
  struct stat held {};
  struct stat named {};
  return fstat(file_.get(), &held) == 0 && stat(file.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
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
  for_each_entry("/proc", [&](const fs::path& process) {
    const std::string name = process.filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) return true;
    for_each_entry(process / "fd", [&](const fs::path& link) {
      struct stat found {};
      if (stat(link.c_str(), &found) != 0) return true;
      if (found.st_ino != wanted.st_ino || found.st_dev != wanted.st_dev) return true;
      pids.push_back(std::stoi(name));
      return false;
    });
    return true;
  });
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::string describe_holders(const fs::path& file) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (int pid : holders_of(file)) {
    if (pid == getpid()) continue;
    if (names.size() == kNamedHolders) {
      ++more;
    } else {
      names.push_back(name_of(pid));
    }
  }
  if (names.empty()) return "a process of another machine or user";
  return fmt::format("process {}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace tune
