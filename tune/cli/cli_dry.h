// `tune run --dry`: what the first trials of a sweep would be, and nothing is run.
#pragma once

#include <memory>

#include "tune/search/searcher.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// Prints the command lines of the first trials as a shell reads them; of a sweep without a command
// their configurations as JSON. Returns the exit code.
int dry_run(ExperimentSpec spec);

// The searcher of a sweep, ready to propose.
std::unique_ptr<Searcher> searcher_of(const ExperimentSpec& spec);

}  // namespace tune
