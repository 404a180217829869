// ExperimentLock: one driver at a time. A flock on a file; child processes that inherit the
// descriptor hold it too, so a new driver gets it only when every process of the old one is gone.
//
// Where flock does not reach other hosts (many network file systems), the holder's sign in the file
// does: its host and a count that it raises now and then (lock_sign.h). A lock whose holder on
// another host still counts is refused; a lock whose holder has stopped counting is taken. A
// stopped holder that goes on later sees that its sign is gone: it is told so and must end. Until
// it has looked it cannot know, and must not touch what the lock is for (is_surely_held).
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/lock_sign.h"
#include "core/platform/process.h"

namespace tune {

struct LockPace {
  std::chrono::milliseconds beat = std::chrono::seconds(2);      // between two counts
  std::chrono::milliseconds silence = std::chrono::seconds(10);  // of a holder that is gone
};

class ExperimentLock {
 public:
  using Told = std::function<void(const std::string& holders)>;
  // Creates the file when it is not there, and writes this process's sign into it. Waits at most
  // this long for other holders, then throws Error (kBadInput) that names the processes holding it,
  // or the host. To find out whether a holder on another host still counts may take `pace.silence`
  // longer. `waits` is called once, at once, with these holders, when there is something to wait
  // for. Lets heirs of a process that is gone go on if they are stopped: they would hold the lock
  // for good.
  ExperimentLock(const std::filesystem::path& file, std::chrono::milliseconds wait,
                 const Told& waits = {}, LockPace pace = {});
  // Gives the lock back, so that no other host has to watch for its end.
  ~ExperimentLock();
  ExperimentLock(ExperimentLock&&) noexcept;
  ExperimentLock& operator=(ExperimentLock&&) = delete;

  // Counts, when it is due: for a holder that waits for something before keep_alive().
  void show_life();
  // Counts from now on, and looks whether the file is in place, in a thread of its own: call it
  // after the last fork. That thread calls `lost` when another host has taken the lock meanwhile.
  void keep_alive(std::function<void(const LockSign& by)> lost = {});
  // The process that has taken it meanwhile, "process 12 of host node7"; empty: it is still held.
  // Never blocks.
  std::string taken_by() const;
  // Whether the last look was so short a time ago, by a clock that also counts while the machine is
  // suspended, that no other host can have taken it since. If not, the thread of keep_alive() looks
  // at once. Never blocks.
  bool is_surely_held() const;
  // Looks now unless it is surely held; taken_by() tells what was found. The file system may not
  // answer for a while. Any thread.
  void look_again() const;
  // The silent holder from which it was taken; empty: it was free.
  const std::string& taken_from() const { return taken_from_; }

  int descriptor() const;  // for children to inherit
  // Whether the file is still the locked one: not removed, renamed or made anew. It looks at the
  // file system, which may not answer for a while.
  bool is_in_place() const;
  // The same as the thread of keep_alive() saw it, once a beat. Never blocks.
  bool was_in_place() const;
  // Whether a process of this host holds it.
  static bool is_held(const std::filesystem::path& file);

 private:
  class Held;
  bool try_lock(const std::filesystem::path& file);
  void wake_orphans(const std::filesystem::path& file) const;
  void take_over(const std::filesystem::path& file, const LockSign& from);

  std::unique_ptr<Held> held_;
  std::string taken_from_;
};

// Processes of this machine that have the file open, as far as this user may see.
std::vector<int> holders_of(const std::filesystem::path& file);
// These processes without this one, the oldest by name: "process 12 (tune), 14 (redis-server) and 3
// more".
std::string describe_holders(const std::filesystem::path& file);

}  // namespace tune
