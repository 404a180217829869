// Logger: writes what happened into files. Told after the events are in the journal; told again from
// a journal's beginning on resume, so that files can be written anew.
#pragma once

#include "core/clock.h"
#include "tune/events.h"

namespace tune {

class Logger {
 public:
  virtual ~Logger() = default;
  // Throws Error (kIo) when the disk refuses; nothing written before is lost by that.
  virtual void record(const Record& record, WallTime wall) = 0;
  // Everything recorded so far is in the files (not necessarily on disk) when it returns. Once a turn.
  virtual void flush() = 0;
};

}  // namespace tune
