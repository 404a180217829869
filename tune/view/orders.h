// Orders: what the page gives a running sweep's driver, when `tune view` was told to (--control).
// An order names an experiment by its key and a trial by its number; nothing in it is a path or a
// command, and nothing but the words below gets through.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/value.h"

namespace tune::view {

inline constexpr std::size_t kMaxOrderBytes = 32u << 10;

// {"x": KEY, "do": "stop" | "pause" | "unpause" | "retry" | "note" | "add" | "change", "trial": N,
//  "reason": TEXT, "text": TEXT, "config": {...}, "num_samples": N}
struct PageOrder {
  std::string key;  // of the experiment
  Value request;    // for its driver, in the name of the one who runs the page
};
// Throws Error (kBadInput), saying why, for anything else.
PageOrder read_order(std::string_view body);

// Asks drivers, one after another, in a thread of its own: one may take seconds to answer.
class Orders {
 public:
  static constexpr std::size_t kMostWaiting = 64;
  using Done = std::function<void(int status, std::string body)>;  // called in that thread

  Orders();
  ~Orders();  // waits for the one that is asked now; others are not asked
  // False: too many wait.
  bool give(std::filesystem::path experiment, Value request, Done done);

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace tune::view
