#include "file_calls.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace tune::testing {

namespace fs = std::filesystem;

namespace {

using Kind = FileCall::Kind;
using Info = __ptrace_syscall_info;

// ---- From a call's numbers to its files

fs::path proc(pid_t process, const std::string& name) {
  return fs::path("/proc") / std::to_string(process) / name;
}

fs::path opened_as(pid_t process, std::uint64_t descriptor) {
  const int number = static_cast<int>(descriptor);
  std::error_code gone;
  return fs::read_symlink(
      proc(process, number == AT_FDCWD ? "cwd" : "fd/" + std::to_string(number)), gone);
}

std::string text_at(pid_t process, std::uint64_t address) {
  std::string text(4096, '\0');
  const int memory = ::open(proc(process, "mem").c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t count = ::pread(memory, text.data(), text.size(), static_cast<off_t>(address));
  ::close(memory);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text.substr(0, text.find('\0'));
}

fs::path path_at(pid_t process, std::uint64_t folder, std::uint64_t address) {
  return (opened_as(process, folder) / text_at(process, address)).lexically_normal();
}

// The call that `info` is about to make; nothing when it changes no file.
std::optional<FileCall> file_call(pid_t process, const Info& info) {
  const auto& words = info.entry.args;
  const std::uint64_t here = static_cast<std::uint64_t>(AT_FDCWD);
  const auto at = [&](Kind kind, std::uint64_t folder, std::uint64_t address) {
    return FileCall{.kind = kind, .path = path_at(process, folder, address), .process = process};
  };
  const auto on = [&](Kind kind, std::uint64_t descriptor) {
    return FileCall{.kind = kind, .path = opened_as(process, descriptor), .process = process};
  };
  const auto renamed = [&](FileCall call, std::uint64_t folder, std::uint64_t address) {
    call.target = path_at(process, folder, address);
    return call;
  };
  constexpr std::uint64_t kChanging = O_CREAT | O_TRUNC;
  switch (info.entry.nr) {
    case SYS_openat:
      if ((words[2] & kChanging) == 0) return std::nullopt;
      return at(Kind::kMake, words[0], words[1]);
    case SYS_mkdirat:
      return at(Kind::kMake, words[0], words[1]);
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_sendfile:
      return on(Kind::kWrite, words[0]);
    case SYS_copy_file_range:
      return on(Kind::kWrite, words[2]);
    case SYS_truncate:
      return at(Kind::kWrite, here, words[0]);
    case SYS_fsync:
    case SYS_fdatasync:
      return on(Kind::kFlush, words[0]);
    case SYS_renameat:
    case SYS_renameat2:
      return renamed(at(Kind::kRename, words[0], words[1]), words[2], words[3]);
    case SYS_unlinkat:
      return at(Kind::kRemove, words[0], words[1]);
#ifdef SYS_open  // what newer machines do not have
    case SYS_open:
      if ((words[1] & kChanging) == 0) return std::nullopt;
      return at(Kind::kMake, here, words[0]);
    case SYS_creat:
    case SYS_mkdir:
      return at(Kind::kMake, here, words[0]);
    case SYS_rename:
      return renamed(at(Kind::kRename, here, words[0]), here, words[1]);
    case SYS_unlink:
    case SYS_rmdir:
      return at(Kind::kRemove, here, words[0]);
#endif
    default:
      return std::nullopt;
  }
}

bool is_within(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// ---- The watch

class Watch {
 public:
  Watch(pid_t process, const fs::path& folder,
        const std::function<bool(const FileCall& call)>& goes_on)
      : folder_(fs::canonical(folder)), goes_on_(goes_on) {
    watched_[process];
  }

  Watched until_all_have_ended() {
    while (!watched_.empty()) {
      int status = 0;
      const pid_t process = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
      if (process < 0) break;
      if (!WIFSTOPPED(status)) {
        watched_.erase(process);
      } else if (!passes(process, status)) {
        kill_all();
        return Watched::kKilled;
      }
    }
    return Watched::kEnded;
  }

 private:
  using Current = std::optional<FileCall>;  // the call that a process is in

  // False: this process and all others are to be killed.
  bool passes(pid_t process, int status) {
    const int event = status >> 16;
    long signal = 0;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      if (!passes_call(process, watched_[process])) return false;
    } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
               event == PTRACE_EVENT_CLONE) {
      unsigned long child = 0;
      ::ptrace(PTRACE_GETEVENTMSG, process, nullptr, &child);
      watched_[static_cast<pid_t>(child)];
    } else if (event == 0) {
      signal = WSTOPSIG(status);
    }
    ::ptrace(PTRACE_SYSCALL, process, nullptr, signal);
    return true;
  }

  bool passes_call(pid_t process, Current& current) {
    Info info{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof info, &info);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      current = file_call(process, info);
      if (current && !is_within(current->path, folder_) && !is_within(current->target, folder_)) {
        current.reset();
      }
      return !current || goes_on_(*current);
    }
    if (!current) return true;
    current->done = true;
    current->failed = info.exit.is_error != 0;
    const FileCall call = *std::exchange(current, std::nullopt);
    return goes_on_(call);
  }

  // A process is only reaped after its threads, so take whichever comes next.
  void kill_all() {
    for (const auto& [process, call] : watched_) ::kill(process, SIGKILL);
    int status = 0;
    while (!watched_.empty()) {
      const pid_t process = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
      if (process < 0) return;
      if (!WIFSTOPPED(status)) watched_.erase(process);
    }
  }

  fs::path folder_;
  const std::function<bool(const FileCall& call)>& goes_on_;
  std::map<pid_t, Current> watched_;
};

}  // namespace

Watched watch_file_calls(pid_t process, const fs::path& folder, const std::function<void()>& ready,
                         const std::function<bool(const FileCall& call)>& goes_on) {
  constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK |
                            PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
  const bool is_traced = ::ptrace(PTRACE_SEIZE, process, nullptr, kOptions) == 0 &&
                         ::ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr) == 0;
  if (!is_traced) return Watched::kNotTraced;
  Watch watch(process, folder, goes_on);
  ready();
  return watch.until_all_have_ended();
}

Watched watch_file_calls_of(const std::function<void()>& body, const fs::path& folder,
                            const std::function<bool(const FileCall& call)>& goes_on) {
  std::array<int, 2> start{};
  if (::pipe2(start.data(), O_CLOEXEC) != 0) return Watched::kNotTraced;
  const pid_t process = ::fork();
  if (process == 0) {
    ::close(start[1]);
    char byte = 0;
    const bool is_watched = ::read(start[0], &byte, 1) == 1;
    if (is_watched) body();
    ::_exit(0);
  }
  ::close(start[0]);
  const auto let_it_start = [&] {
    [[maybe_unused]] const ssize_t count = ::write(start[1], "s", 1);
  };
  const Watched outcome = watch_file_calls(process, folder, let_it_start, goes_on);
  ::close(start[1]);
  if (outcome == Watched::kNotTraced) ::waitpid(process, nullptr, 0);
  return outcome;
}

// ---- Flushes

std::string listed(const std::set<fs::path>& paths) {
  std::string text;
  for (const fs::path& path : paths) text += (text.empty() ? "" : " ") + path.string();
  return text;
}

void Unflushed::note(const FileCall& call) {
  if (!call.done || call.failed) return;
  switch (call.kind) {
    case Kind::kMake:
      changed_.insert({call.path, call.path.parent_path()});
      break;
    case Kind::kWrite:
      changed_.insert(call.path);
      break;
    case Kind::kFlush:
      changed_.erase(call.path);
      std::erase_if(names_, [&](const fs::path& name) { return name.parent_path() == call.path; });
      break;
    case Kind::kRename:
      rename(call);
      break;
    case Kind::kRemove:
      changed_.erase(call.path);
      changed_.insert(call.path.parent_path());
      names_.erase(call.path);
      break;
  }
}

void Unflushed::rename(const FileCall& call) {
  for (const fs::path& replaced : at_or_below(call.target)) changed_.erase(replaced);
  for (const fs::path& moved : at_or_below(call.path)) {
    renamed_too_early_.insert(moved);
    changed_.erase(moved);
    changed_.insert((call.target / moved.lexically_relative(call.path)).lexically_normal());
  }
  changed_.insert({call.path.parent_path(), call.target.parent_path()});
  names_.erase(call.path);
  names_.insert(call.target);
}

std::set<fs::path> Unflushed::at_or_below(const fs::path& path) const {
  std::set<fs::path> found;
  for (const fs::path& changed : changed_) {
    if (is_within(changed, path)) found.insert(changed);
  }
  return found;
}

}  // namespace tune::testing
