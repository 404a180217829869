// RunOptions as plain values, both ways: the shape of a YAML sweep, of experiment.json and of the
// tree that `--set` changes. Only the form is checked here (known keys, types, one scheduler);
// make_spec checks the meaning.
#pragma once

#include <string>
#include <vector>

#include "core/value.h"
#include "tune/spec/option_reader.h"
#include "tune/spec/run_options.h"

namespace tune {

// Takes every key of RunOptions from `reader`; an absent key leaves the option as it is. Custom
// schedulers, searchers and reporters have no text form and stay as they are.
void read_options(OptionReader& reader, RunOptions& options);

// Everything that has a text form; `scheduler`, `searcher` and optional values only when given.
Value options_to_value(const RunOptions& options);

}  // namespace tune
