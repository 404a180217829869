// The `tune` program. Standard output carries data only; tables, messages and errors go to stderr.
#pragma once

namespace tune {

// Parses the arguments, runs the command and returns the exit code: 0 all trials fine, 1 a trial in
// error, 2 bad input, 3 the experiment could not go on, 128 + signal when interrupted. Errors are
// printed; nothing is thrown.
int command_line(int argc, const char* const* argv);

}  // namespace tune
