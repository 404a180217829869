// Kills at every step: shows the files of a program that is ended between any two of the system
// calls that change them.
#pragma once

#include <filesystem>
#include <functional>

namespace tune::testing {

struct EveryStep {
  std::filesystem::path folder;            // where steps count, see file_calls.h
  std::function<void()> prepare;           // before each kill
  std::function<void()> body;              // in a process of its own; must not check anything
  std::function<void(bool killed)> check;  // after each; at last for the one that was not killed
};

// Kills `body` at its first step (before or after such a call), its second and so on until it is
// through. Returns the number of its steps; 0, with a message, where processes may not be traced.
int kill_at_every_step(const EveryStep& given);

}  // namespace tune::testing
