// Logger: writes records of the experiment into files. It is told them after the events are in the
// journal, and again on a resume, from the journal's beginning or its snapshot, so that the files
// become complete.
#pragma once

#include <future>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "tune/control/events.h"

namespace tune {

// The time and occasion of a record.
struct Telling {
  WallTime wall{};        // of its turn
  bool is_again = false;  // from the journal, on a resume: an earlier driver was told it
};

class Logger {
 public:
  virtual ~Logger() = default;
  virtual void record(const Record& record, const Telling& telling) = 0;
  // Called once a turn: the records so far may be written now, at the latest when the writer has
  // nothing else to do. Throws Error (kIo) when the disk has refused something; earlier writes are
  // not lost by that.
  virtual void flush() = 0;

  // The lengths of its files, MessagePack, after the records so far: ready once these are in the
  // files (not necessarily on the disk). Throws as flush() does.
  virtual std::future<std::string> save() = 0;
  // Called before the first record of a resumed experiment: the records up to save() are in the
  // files; anything beyond is recorded again. Throws Error (kProtocol) when the state is not its
  // own.
  virtual void restore(std::string_view state) = 0;

 protected:
  // For a logger that has nothing to wait for.
  static std::future<std::string> ready(std::string state) {
    std::promise<std::string> saved;
    saved.set_value(std::move(state));
    return saved.get_future();
  }
};

}  // namespace tune
