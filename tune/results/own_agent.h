// OwnAgent: what a driver leaves in the experiment's folder about its own agent, where that
// outlives it: by this the next driver on the same host finds the agent, and starts no second one
// beside it.
//
// Whether the agent lives is not written: its processes hold their runtime folder, about which the
// kernel tells the truth. Other hosts have signs of their own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/platform/other_process.h"

namespace tune {

class OwnAgent {
 public:
  OwnAgent(pid_t pid, std::string identity, std::filesystem::path runtime)
      : pid_(pid), identity_(std::move(identity)), runtime_(std::move(runtime)) {}
  // The newest of this host; nothing: there was none, or nothing can be read.
  static std::optional<OwnAgent> of(const std::filesystem::path& experiment);

  pid_t pid() const { return pid_; }
  const std::string& identity() const { return identity_; }  // in its link to drivers
  // Nothing: it is gone, though its workers may still be ending.
  std::optional<OtherProcess> process() const;
  bool is_gone() const;  // with all of its processes
  // Why it cannot go on under a driver of this build in that folder; empty: it can.
  std::string why_not_kept(const std::filesystem::path& experiment) const;

  // Throws Error (kIo).
  void write(const std::filesystem::path& experiment) const;
  static void remove(const std::filesystem::path& experiment);

  // Lets its trials save and waits until it is gone; after `grace` (0: any time) it is killed. Says
  // that it waits, and calls `meanwhile` many times a second. Throws Error (kBadInput) when even
  // then some process of it stays.
  using Notice = std::function<void(const std::string& text)>;
  using Meanwhile = std::function<void()>;
  void end(
      std::chrono::nanoseconds grace, const Notice& notice,
      const Meanwhile& meanwhile = [] {}) const;

 private:
  bool is_gone_within(std::chrono::nanoseconds limit, const Meanwhile& meanwhile) const;

  pid_t pid_;
  std::string identity_;
  std::filesystem::path runtime_;
  std::filesystem::path experiment_ = {};  // where it was written
  std::string boot_ = {};                  // under which this host ran then
};

}  // namespace tune
