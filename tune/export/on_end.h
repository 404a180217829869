// Things to do when a run is over: a program, a webhook, a sign on the terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/value.h"
#include "tune/spec/run_options.h"

namespace tune {

// A run that is over, as it is told.
struct EndedRun {
  std::string name;
  std::string status;  // "finished", "interrupted" or "failed"
  std::filesystem::path directory;
  std::uint64_t trials = 0;
  std::uint64_t errored = 0;
  std::string metric;  // empty: none
  struct Best {
    std::string trial;
    double value = 0;
    Config config;
  };
  std::optional<Best> best = {};
};

// From its folder. What cannot be read is missing.
EndedRun ended_run(const std::filesystem::path& directory, const std::string& status);

// TUNE_NAME, TUNE_STATUS, TUNE_DIRECTORY, TUNE_TRIALS, TUNE_ERRORED, TUNE_METRIC, and when there is
// a best trial TUNE_BEST_TRIAL, TUNE_BEST_VALUE and TUNE_BEST_CONFIG (JSON).
std::map<std::string, std::string> end_environment(const EndedRun& run);
// The same as one JSON object, beside a `text` that chat services show.
std::string end_message(const EndedRun& run);

// Does all that is asked for; `notice` is told what fails. Takes as long as the program, at most
// kEndCommandLimit, and the webhook's tries.
inline constexpr std::chrono::seconds kEndCommandLimit{60};
void do_on_end(const OnEnd& wanted, const EndedRun& run,
               const std::function<void(const std::string&)>& notice);

}  // namespace tune
