// The effect of a process on its files, call by call: each system call that changes something below
// a folder stops it before and after, so that a test can note it or kill the process right there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace tune::testing {

// Calls that only read are none, nor are those that a sanitizer adds elsewhere.
struct FileCall {
  enum class Kind { kMake, kWrite, kFlush, kRename, kRemove };

  Kind kind = Kind::kMake;
  std::filesystem::path path;         // absolute; the old name of a rename
  std::filesystem::path target = {};  // the new name of a rename
  pid_t process = 0;
  bool done = false;    // stopped after it, not before it
  bool failed = false;  // when done
};

enum class Watched { kEnded, kKilled, kNotTraced };

// Lets `process`, a child of this thread, go on under watch, with every process and thread it
// makes, but not the threads that it has already. All of them are killed when `goes_on` answers
// false at a stop. Returns when all have ended and are reaped. kNotTraced: processes may not be
// traced here, and it runs on unwatched. `ready` is called once it is watched.
Watched watch_file_calls(pid_t process, const std::filesystem::path& folder,
                         const std::function<void()>& ready,
                         const std::function<bool(const FileCall& call)>& goes_on);

// The same for a forked process that runs `body` and ends; `body` must not check anything.
Watched watch_file_calls_of(const std::function<void()>& body, const std::filesystem::path& folder,
                            const std::function<bool(const FileCall& call)>& goes_on);

// One path after the other, for messages.
std::string listed(const std::set<std::filesystem::path>& paths);

// The changes that would be lost with the machine: kills do not show them, as the kernel keeps
// them.
class Unflushed {
 public:
  void note(const FileCall& call);  // every one that is done, in their order

  // Files that were written, and folders in which names came or went, since they were flushed.
  std::set<std::filesystem::path> at_or_below(const std::filesystem::path& path) const;
  // Paths that were in this state when they, or a folder above them, were renamed; by their old
  // name.
  const std::set<std::filesystem::path>& renamed_too_early() const { return renamed_too_early_; }
  // New names given since their folder was flushed.
  const std::set<std::filesystem::path>& names() const { return names_; }

 private:
  void rename(const FileCall& call);

  std::set<std::filesystem::path> changed_;
  std::set<std::filesystem::path> renamed_too_early_;
  std::set<std::filesystem::path> names_;
};

}  // namespace tune::testing
