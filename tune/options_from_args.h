// Command line arguments for a program that calls tune::run.
#pragma once

#include <string>

#include "tune/spec/run_options.h"

namespace tune {

// The program's user may give --name --storage --num-samples --cpus --gpus --seed --set
// --warm-start --resume --fresh --quiet --wait-gpus; --help shows them. `--set PATH=VALUE` takes
// full paths (config/lr=0.1, stop/loss={<=: 0.1}, scheduler/asha/max_t=9,
// resources_per_trial/gpu=1, max_failures=2), values are YAML. --help prints and exits with 0;
// wrong arguments are reported on stderr, all at once, and end the program with 2.
RunOptions options_from_args(int argc, char** argv, RunOptions defaults);

// The same, but throws: Error (kBadInput) for wrong arguments, HelpRequested with the text of
// --help.
struct HelpRequested {
  std::string text;
};
RunOptions parse_options(int argc, const char* const* argv, RunOptions defaults);

}  // namespace tune
