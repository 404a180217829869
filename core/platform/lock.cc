#include "core/platform/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/platform/deaf_thread.h"
#include "core/platform/files.h"
#include "core/platform/node.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLockRetry{20};
constexpr int kTriesPerLook = 25;  // between looks at the holders
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

[[noreturn]] void refuse(const fs::path& file, const std::string& holders) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} is in use by {}: wait for it, or end it, then try again",
                          file.parent_path().string(), holders));
}

// Goes on while the machine is suspended.
nanoseconds time_since_boot() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

LockSign own_sign() {
  LockSign sign{.pid = getpid(), .host = hostname(), .boot = boot_id()};
  if (sign.boot.empty()) sign.boot = sign.host;  // hosts without it are told apart by their names
  return sign;
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

// ---- The sign -----------------------------------------------------------------------------------

class ExperimentLock::Held {
 public:
  Held(const fs::path& file, LockPace pace)
      : path(fs::absolute(file)), own(own_sign()), pace(pace) {}
  ~Held() {
    if (getpid() != own.pid) {  // of a child: the lock and the thread are its parent's
      if (beats_.joinable()) beats_.detach();
      return;
    }
    {
      const std::lock_guard guard(mutex_);
      ends_ = true;
    }
    wakes_.notify_all();
    if (beats_.joinable()) beats_.join();
    const FileDescriptor fresh = reopened();
    const auto seen = is_signed_ ? read(fresh) : std::nullopt;
    if (seen && seen->is_of_same_holder(own)) {
      [[maybe_unused]] const int done = ftruncate(fresh.get(), 0);
    }
  }
  Held(const Held&) = delete;

  // The sign as other hosts have left it: network file systems look anew when a file is opened.
  // Nothing when it cannot be read, with the reason in errno.
  std::optional<LockSign> read() const { return read(reopened()); }
  // A full disk is not a reason to refuse: other hosts then just see no sign.
  void sign() {
    looked_at_ = time_since_boot();
    is_signed_ = write(reopened());
  }
  void show_life() {
    TUNE_CHECK(!beats_.joinable());
    if (time_since_boot() - looked_at_.load() >= pace.beat) look(true);
  }
  void keep_alive(std::function<void(const LockSign& by)> lost) {
    TUNE_CHECK(!beats_.joinable());
    beats_ = deaf_thread([this, lost = std::move(lost)] { beat(lost); });
  }
  std::string taken_by() const {
    const std::lock_guard guard(mutex_);
    return taken_by_;
  }
  // A taker watches for so long before it signs, and then waits once more.
  bool is_surely_held() const {
    const bool is_sure = taken_by().empty() && time_since_boot() - looked_at_.load() < pace.silence;
    if (!is_sure) wakes_.notify_all();
    return is_sure;
  }
  void look_again() {
    if (!is_surely_held()) look(false);
  }

  bool is_in_place() const {
    struct stat held {};
    struct stat named {};
    return fstat(file.get(), &held) == 0 && stat(path.c_str(), &named) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
  }
  bool was_in_place() const { return was_in_place_; }

  fs::path path;
  FileDescriptor file;
  LockSign own;
  LockPace pace;

 private:
  FileDescriptor reopened() const {
    const std::string name = fmt::format("/proc/self/fd/{}", file.get());
    return FileDescriptor(open(name.c_str(), O_RDWR | O_CLOEXEC));
  }
  static std::optional<LockSign> read(const FileDescriptor& fresh) {
    char text[512] = {};
    if (!fresh.is_open() || pread(fresh.get(), text, sizeof text - 1, 0) < 0) return std::nullopt;
    return sign_of_text(text);
  }
  // Text after the first line belongs to a longer sign before, and is cut off a moment later.
  // Nothing is flushed: a sign need not outlive a power failure, and network file systems send a
  // file to their server when it is closed.
  bool write(const FileDescriptor& fresh) const {
    const std::string text = to_text(own);
    const auto size = static_cast<ssize_t>(text.size());
    return fresh.is_open() && pwrite(fresh.get(), text.data(), text.size(), 0) == size &&
           ftruncate(fresh.get(), size) == 0;
  }

  // The sign of another holder, if there is one; else the own one is still there.
  std::optional<LockSign> look(bool counts) {
    const nanoseconds begun = time_since_boot();
    const FileDescriptor fresh = reopened();
    const std::optional<LockSign> seen = read(fresh);
    if (!seen) return std::nullopt;  // it shows nothing
    if (is_signed_ && !seen->is_of_same_holder(own)) {
      const std::lock_guard guard(mutex_);
      taken_by_ = seen->pid == 0 ? "a process of another host, which has ended" : describe(*seen);
      return seen;
    }
    if (counts && is_signed_) {
      ++own.beats;
      write(fresh);
    }
    looked_at_ = begun;
    return std::nullopt;
  }

  void beat(const std::function<void(const LockSign& by)>& lost) {
    std::unique_lock guard(mutex_);
    while (true) {
      if (!ends_) wakes_.wait_for(guard, pace.beat);  // less if it is not surely held
      if (ends_) return;
      guard.unlock();
      if (const auto taker = look(true)) {
        if (lost) lost(*taker);
        return;
      }
      was_in_place_ = is_in_place();
      guard.lock();
    }
  }

  std::atomic<bool> is_signed_ = false;
  std::atomic<bool> was_in_place_ = true;
  std::atomic<nanoseconds> looked_at_{};  // when the own sign was seen or written last
  mutable std::mutex mutex_;
  mutable std::condition_variable wakes_;
  bool ends_ = false;
  std::string taken_by_;
  std::thread beats_;
};

// ---- The lock -----------------------------------------------------------------------------------

ExperimentLock::ExperimentLock(const fs::path& file, milliseconds wait, const Told& waits,
                               LockPace pace)
    : held_(std::make_unique<Held>(file, pace)) {
  using Verdict = HolderWatch::Verdict;
  const auto end = steady_clock::now() + wait;
  HolderWatch watch(held_->own, pace.silence);
  bool told = !waits;
  for (int tries = 0;; ++tries) {
    const auto now = steady_clock::now();
    std::string holder;
    if (try_lock(file)) {
      const std::optional<LockSign> seen = held_->read();
      if (!seen && now >= end) throw file_error("reading the lock", file, errno);
      const Verdict verdict = seen ? watch.look(*seen, now.time_since_epoch()) : Verdict::kUnclear;
      if (verdict == Verdict::kFree) held_->sign();
      if (verdict == Verdict::kSilent) take_over(file, *seen);
      if (verdict == Verdict::kFree || verdict == Verdict::kSilent) return;
      if (seen) holder = describe(*seen);
      if (verdict == Verdict::kAlive && now >= end) refuse(file, holder);
    } else {
      if (tries % kTriesPerLook == 0) wake_orphans(file);
      if (now >= end) refuse(file, describe_holders(file));
    }
    if (!std::exchange(told, true)) waits(holder.empty() ? describe_holders(file) : holder);
    std::this_thread::sleep_for(kLockRetry);
  }
}

ExperimentLock::~ExperimentLock() = default;
ExperimentLock::ExperimentLock(ExperimentLock&&) noexcept = default;

// Two hosts may do so at once, or the former holder may count on: the last writer has the lock.
void ExperimentLock::take_over(const fs::path& file, const LockSign& from) {
  held_->sign();
  std::this_thread::sleep_for(2 * held_->pace.beat);
  const std::optional<LockSign> seen = held_->read();
  if (!seen) throw file_error("reading the lock", file, errno);
  if (!seen->is_of_same_holder(held_->own)) refuse(file, describe(*seen));
  taken_from_ = describe(from);
}

void ExperimentLock::keep_alive(std::function<void(const LockSign& by)> lost) {
  held_->keep_alive(std::move(lost));
}

void ExperimentLock::show_life() {
  held_->show_life();
}

bool ExperimentLock::is_surely_held() const {
  return held_->is_surely_held();
}

void ExperimentLock::look_again() const {
  held_->look_again();
}

std::string ExperimentLock::taken_by() const {
  return held_->taken_by();
}

int ExperimentLock::descriptor() const {
  return held_->file.get();
}

// A stopped process does not notice that the process it works for is gone.
void ExperimentLock::wake_orphans(const fs::path& file) const {
  if (!held_->file.is_open()) return;
  const LockSign sign = held_->read().value_or(LockSign{});
  if (!sign.boot.empty() && sign.boot != held_->own.boot) return;
  const std::vector<int> holders = holders_of(file);
  if (std::find(holders.begin(), holders.end(), sign.pid) != holders.end()) return;
  for (int pid : holders) {
    if (is_stopped(pid)) kill(pid, SIGCONT);
  }
}

bool ExperimentLock::try_lock(const fs::path& file) {
  FileDescriptor& own = held_->file;
  if (!own.is_open()) own.reset(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!own.is_open()) throw file_error("opening the lock", file, errno);
  if (flock(own.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw file_error("locking", file, errno);
    return false;
  }
  // The folder may have been renamed and made anew while this waited: the lock is then another
  // file.
  if (held_->is_in_place()) return true;
  own.reset();
  return false;
}

bool ExperimentLock::is_in_place() const {
  return held_->is_in_place();
}

bool ExperimentLock::was_in_place() const {
  return held_->was_in_place();
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
