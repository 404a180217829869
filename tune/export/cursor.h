// Cursor: how far a reader of an experiment has come with each trial, kept in a file, so that the
// next start goes on there. The file grows by a line for each change and is written anew now and
// then. Not for readers that can see in what they wrote how far they came (TrialRun): this one may
// lag behind what was done, by what was not saved yet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "core/platform/files.h"

namespace tune {

class Cursor {
 public:
  struct Place {
    std::uint64_t iterations = 0;          // results that were told
    std::uint64_t started = 0, ended = 0;  // whether that was told: 0 or 1
    // Of the newest checkpoint that was told.
    std::uint64_t checkpoint_attempt = 0, checkpoint_iteration = 0;
    bool operator==(const Place&) const = default;
  };

  // Reads the file, if it is there; a line that was not written to its end does not count.
  explicit Cursor(std::filesystem::path file);

  Place at(std::uint32_t trial) const;
  void set(std::uint32_t trial, const Place& place);
  // Writes what was set since. Throws Error (kIo).
  void save();

 private:
  std::filesystem::path file_;
  std::map<std::uint32_t, Place> places_;
  std::string pending_;
  std::size_t written_ = 0;  // bytes of the file
};

}  // namespace tune
