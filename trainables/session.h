// Session: the interface of a function trainable. `report` is its step boundary; it runs in the
// main thread of a worker process.
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
  // process. With `save` the trial can be checkpointed here. `save` is called when a checkpoint is
  // due, and at the end for the last result if that is known to be the last: it has `done: true`,
  // or a stop rule or verdict ends it. A function that returns by itself has no checkpoint of its
  // end.
  virtual bool report(const Result& result) = 0;
  virtual bool report(const Result& result, const Save& save) = 0;
  // The folder to load at the start; nothing when the trial starts afresh.
  virtual std::optional<std::filesystem::path> checkpoint() const = 0;
  virtual const Context& context() const = 0;
};

}  // namespace tune
