// The sign that the holder of a lock writes into its file for hosts that its flock does not reach,
// and the way another host tells whether that holder lives. Pure.
//
// The clocks of two hosts differ, so the sign holds no time: the holder counts, and a host that
// wants the lock watches whether the count moves. With a time stamp, a host whose clock is ahead
// would rob a live holder, and a host whose clock is behind would wait for a dead one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tune {

struct LockSign {
  int pid = 0;            // 0: nobody, it was given back
  std::string host = {};  // empty: of a version that wrote its pid alone
  std::string boot = {};  // of the kernel it runs under: within one, flock tells the truth
  std::uint64_t beats = 0;
  friend bool operator==(const LockSign&, const LockSign&) = default;

  bool is_of_same_holder(const LockSign& other) const {
    return pid == other.pid && host == other.host && boot == other.boot;
  }
};

std::string to_text(const LockSign& sign);     // "12 node7 3f0c-... 5\n"
LockSign sign_of_text(std::string_view text);  // what cannot be read is nobody's
std::string describe(const LockSign& sign);    // "process 12 of host node7"

// For a process that has the flock of a file: whether it also has the lock.
class HolderWatch {
 public:
  using Time = std::chrono::nanoseconds;  // of a monotonic clock
  enum class Verdict : std::uint8_t {
    kFree,     // nobody holds it, or only a process that the flock would show
    kUnclear,  // look again
    kAlive,    // its holder on another host has counted on
    kSilent,   // its holder has not counted for that long
  };

  HolderWatch(LockSign own, Time silence) : own_(std::move(own)), silence_(silence) {}
  Verdict look(const LockSign& seen, Time now);

 private:
  LockSign own_;
  Time silence_;
  std::optional<LockSign> last_;
  Time since_{};
  bool has_counted_ = false;
};

}  // namespace tune
