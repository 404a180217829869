// Logger: writes what happened into files. Told after the events are in the journal; told again on
// resume, from the journal's beginning or its snapshot, so that the files become what they were to
// be.
#pragma once

#include <future>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "tune/control/events.h"

namespace tune {

// When a record is told.
struct Telling {
  WallTime wall{};        // of its turn
  bool is_again = false;  // from the journal, on a resume: an earlier driver was told it
};

class Logger {
 public:
  virtual ~Logger() = default;
  virtual void record(const Record& record, const Telling& telling) = 0;
  // Once a turn: what was recorded so far may be written now, at the latest when its writer has
  // nothing else to do. Throws Error (kIo) when the disk has refused something; nothing written
  // before is lost by that.
  virtual void flush() = 0;

  // Where its files stand, MessagePack, after what was recorded so far: ready once that is in the
  // files (not necessarily on the disk). Throws as flush() does.
  virtual std::future<std::string> save() = 0;
  // Before the first record of a resumed experiment: what was recorded up to save() is in the
  // files, what stands in them beyond is recorded again. Throws Error (kProtocol) when it is not
  // its own.
  virtual void restore(std::string_view state) = 0;

 protected:
  // For one that has nothing to wait for.
  static std::future<std::string> ready(std::string state) {
    std::promise<std::string> saved;
    saved.set_value(std::move(state));
    return saved.get_future();
  }
};

}  // namespace tune
