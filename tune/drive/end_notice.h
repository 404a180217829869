// The part of a run that follows its end: what the user wants done then.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/platform/process.h"
#include "tune/drive/driver.h"

namespace tune {

// A second signal is obeyed also while a store or a disk does not answer.
LastResort last_resort(const std::filesystem::path& directory);

// Calls `run`, then does what `wanted` says, however the run ended; not when it never began, nor
// when another driver has taken it over. Throws what `run` throws.
RunOutcome run_and_tell(const OnEnd& wanted, const std::filesystem::path& directory,
                        const std::function<void(const std::string&)>& notice,
                        const std::function<RunOutcome()>& run);

}  // namespace tune
