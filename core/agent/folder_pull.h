// FolderPull: which pieces of a folder to ask for next, on the side that gets it. Pure.
//
// The side that gets a folder asks for its pieces. The other way round, a sender needs credit, and
// a word on where to go on after a connection has broken; a receiver that was started again does
// not know what it has granted. Here a piece that does not come is asked for again, and nothing
// else has to be repaired.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/relay_contract.h"

namespace tune {

class FolderPull {
 public:
  using Time = std::chrono::nanoseconds;                      // of a monotonic clock
  static constexpr std::size_t kMaxAsked = 16;                // pieces on the way: 4 MiB
  static constexpr Time kPatience = std::chrono::seconds(5);  // for any piece; then all come again

  FolderPull(Time now, std::uint64_t number, std::vector<RelayFile> files);

  // The pieces to ask for now.
  std::vector<WantPiece> wants(Time now);
  // Whether this piece was asked for, is as long as it must be and is not there yet. Then it counts
  // as there.
  bool take(Time now, const RelayPiece& piece);
  bool is_complete() const { return asked_.empty() && next_file_ == files_.size(); }
  Time last_heard() const { return heard_; }
  const std::vector<RelayFile>& files() const { return files_; }

 private:
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // file, offset
  std::optional<Place> next();

  std::uint64_t number_;
  std::vector<RelayFile> files_;
  std::uint32_t next_file_ = 0;  // the piece that was not asked for yet
  std::uint64_t next_offset_ = 0;
  std::map<Place, Time> asked_;  // and not there
  Time heard_;
};

// The piece of this file that begins at `offset` has so many bytes; 0: there is none.
std::uint64_t piece_bytes(const RelayFile& file, std::uint64_t offset);

}  // namespace tune
