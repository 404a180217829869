// Journal: the ordered turns of an experiment in its store. Each turn is appended before its effects;
// state is what Controller makes of all turns.
#pragma once

#include <cstdint>
#include <functional>

#include "core/store.h"
#include "tune/events.h"

namespace tune {

class Journal {
 public:
  explicit Journal(Store& store) : store_(store) {}

  // Hands every stored turn, oldest first, to `visit`; called again, only those
  // appended since by somebody else. Throws Error (kProtocol)
  // naming the entry that cannot be read.
  void replay(const std::function<void(const Turn&)>& visit);
  bool is_empty() const { return last_.epoch == 0; }
  // The epoch this driver takes: one above the last one seen by replay.
  std::uint64_t next_epoch() const { return last_.epoch + 1; }

  // Appends durably; the first call takes the epoch. Throws SupersededError when a newer driver exists,
  // Error (kStore) when the store is lost.
  void append(const Turn& turn);

 private:
  Store& store_;
  EntryId last_;
  bool begun_ = false;
};

}  // namespace tune
