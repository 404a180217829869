// A program that calls tune::run may be executed again: for its workers, when it cannot be forked
// where it stands, and to resume one of its experiments. The environment variable TUNE_PROGRAM_CALL
// then says which call of tune::run is meant, in which role, and what earlier calls gave.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tune/spec/experiment_spec.h"

namespace tune {

struct ExecutedAgain {
  enum class Role { kZygote, kResume };
  Role role = Role::kZygote;
  std::uint32_t call = 0;            // which tune::run, from 1
  int control_socket = -1;           // kZygote
  std::string directory;             // kResume: absolute
  bool retry_errored = false;        // kResume
  bool quiet = false;                // kResume
  bool wait_gpus = false;            // kResume
  // kResume; nothing: the program's own.
  std::optional<std::int64_t> num_samples = {};
  std::optional<double> time_budget_s = {};
  std::string listen = {};                       // kResume: where it listens from now on
  std::vector<std::string> earlier;  // folders of the calls before it, absolute
};

// The reason why this process was executed; nothing for a program that a person started.
const std::optional<ExecutedAgain>& executed_again();

// This program as it was started; `call` and `earlier` as given.
ProgramCall this_program(std::uint32_t call, std::vector<std::string> earlier);

// argv and environment that execute the program again as zygote of this call.
std::vector<std::string> zygote_command(const ProgramCall& program);
std::map<std::string, std::string> zygote_environment(const ProgramCall& program);

struct ResumeFlags {
  bool retry_errored = false;
  bool quiet = false;
  bool wait_gpus = false;
  std::optional<std::int64_t> num_samples = {};
  std::optional<double> time_budget_s = {};
  std::string listen = {};
};
// Replaces this process by the program of a stored experiment, which then resumes it. Throws Error
// (kBadInput) when the program is gone.
[[noreturn]] void execute_to_resume(const ProgramCall& program,
                                    const std::filesystem::path& directory,
                                    const ResumeFlags& flags);

}  // namespace tune
