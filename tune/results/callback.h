// Callback: code of the user's that is told what happens in a sweep. Derive from it, and give it in
// RunOptions::callbacks.
//
// It is called by a thread of its own, about a second after things have happened, by what stands in
// the experiment's folder: however slow it is, the sweep does not wait for it. What it is told of
// is therefore over: to decide about trials, write a scheduler. What it throws becomes a notice,
// once, and it goes on being called. At the end of the run it has ten seconds to catch up, then the
// run ends without it; a resume tells it the rest. What it refers to has to live as long as the
// program.
//
// Each is told once for a trial, across resumes as well; when the program was killed, the last ones
// may be told again. A step that is done again after a restore is not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/trial.h"
#include "core/value.h"

namespace tune {

struct CallbackTrial {
  std::uint32_t number = 0;
  std::string id;                   // "2f1e0_00003"
  std::filesystem::path directory;  // its files
  Config config() const;            // params.json: its newest. Throws Error
};

class Callback {
 public:
  virtual ~Callback() = default;
  virtual void trial_started(const CallbackTrial&) {}
  virtual void result(const CallbackTrial&, const Result&) {}
  // A checkpoint after this iteration, which is there unless newer ones have taken its place.
  virtual void checkpoint(const CallbackTrial&, const std::filesystem::path&, std::uint64_t) {}
  virtual void trial_ended(const CallbackTrial&, TrialStatus) {}  // kTerminated or kError
  // After all others. A sweep that was interrupted ends again when it is resumed.
  virtual void sweep_ended(const std::filesystem::path& /*experiment*/) {}
};

}  // namespace tune
