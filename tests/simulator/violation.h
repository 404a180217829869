// A broken promise.
#pragma once

#include <string>
#include <utility>

namespace tune::simulator {

struct Violation {
  std::string invariant;
  std::string what;
};

[[noreturn]] inline void violate(std::string invariant, std::string what) {
  throw Violation{std::move(invariant), std::move(what)};
}

}  // namespace tune::simulator
