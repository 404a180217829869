// Kills at every step: what a program leaves when it is ended between any two of its system calls.
#pragma once

#include <functional>
#include <optional>

namespace tune::testing {

// Runs `body` in a process of its own and kills that at the n-th stop (before or after one of its
// system calls). Returns true when it was killed, false when `body` returned before; nothing where
// processes may not be traced. `body` must not check anything.
std::optional<bool> is_killed_at_step(int n, const std::function<void()>& body);

// Calls `prepare`, is_killed_at_step(n, body) and `check` for n = 1, 2, ... until `body` is
// through. Returns how many steps it has; 0, and says so, where processes may not be traced.
int kill_at_every_step(const std::function<void()>& prepare, const std::function<void()>& body,
                       const std::function<void(bool killed)>& check);

}  // namespace tune::testing
