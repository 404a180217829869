// Session: what a function trainable talks to. `report` is its step boundary; it runs in the main
// thread of a worker process.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "core/value.h"
#include "trainables/trainable.h"

namespace tune {

class Session {
 public:
  using Save = std::function<void(const std::filesystem::path& directory)>;
  virtual ~Session() = default;
  // One result (training_iteration counts these). False: return now; a further report ends the
  // process. With `save` the trial can be checkpointed here: it is called when a checkpoint is due, at
  // the end for the last result that is said to be so: one with `done: true`, or that a stop rule or
  // verdict ends. A function that returns of itself has no checkpoint of its end.
  virtual bool report(const Result& result) = 0;
  virtual bool report(const Result& result, const Save& save) = 0;
  // The folder to load at the start; nothing when the trial starts afresh.
  virtual std::optional<std::filesystem::path> checkpoint() const = 0;
  virtual const Context& context() const = 0;
};

}  // namespace tune
