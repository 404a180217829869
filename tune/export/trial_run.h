// TrialRun: the event file of one trial, as TensorBoard reads it: a run in a folder of its own. It
// is written so that it always holds each result once, whatever was killed in between.
//
// The simpler ways fail. Appending what the reader's cursor finds doubles results when the writer
// is killed between the two files, and has both versions of a step that is done again after a
// restore. Writing a new file for each start leaves TensorBoard with both as well. So what is there
// is read back first: an event follows from its line of result.json alone, therefore a hash tells
// whether it stands there already. A step that has changed since is preceded by the event that
// makes TensorBoard forget this step and later ones, in the middle of a live view as well.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/trial.h"
#include "core/value.h"

namespace tune {

class TrialRun {
 public:
  // Reads what is there, and cuts a record that was not written to its end. Throws Error (kIo).
  explicit TrialRun(const std::filesystem::path& folder);

  bool is_new() const { return length_ == 0 && pending_.empty(); }
  // Of a new run, before all else.
  void begin(const Config& config, std::string_view trial_id, double time);
  // The event of this iteration (from 1 on, without gaps), unless it is there.
  void result(std::uint64_t iteration, std::string_view event, double time);
  // The trial ended, after so many iterations. Told again it writes nothing; another outcome takes
  // the place of the one that is there, as TensorBoard keeps the first one it meets.
  void end(TrialStatus status, std::uint64_t iterations, double time);
  // Throws Error (kIo) when the disk refuses: the next TrialRun goes on from what was written.
  void flush();

 private:
  void read_back(std::string_view event);
  void forget_from(std::uint64_t iteration, double time);
  void drop_outcome();

  std::filesystem::path file_;
  std::uint64_t length_ = 0;  // of what is on the disk
  std::string pending_;
  std::vector<std::uint64_t> hashes_;  // by iteration
  std::string outcome_;                // the content that tells of its end; empty: none does
};

}  // namespace tune
