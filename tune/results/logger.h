// Logger: writes what happened into files. Told after the events are in the journal; told again on
// resume, from the journal's beginning or its snapshot, so that the files become what they were to be.
#pragma once

#include <string>
#include <string_view>

#include "core/clock.h"
#include "tune/control/events.h"

namespace tune {

class Logger {
 public:
  virtual ~Logger() = default;
  // Throws Error (kIo) when the disk refuses; nothing written before is lost by that.
  virtual void record(const Record& record, WallTime wall) = 0;
  // Everything recorded so far is in the files (not necessarily on disk) when it returns. Once a turn.
  virtual void flush() = 0;

  // Where its files stand, MessagePack, after a flush.
  virtual std::string save() = 0;
  // Before the first record of a resumed experiment: what was recorded up to save() is in the files,
  // what stands in them beyond is recorded again. Throws Error (kProtocol) when it is not its own.
  virtual void restore(std::string_view state) = 0;
};

}  // namespace tune
