// A worker whose trainable is a program in any language: the contract with it is in
// trainables/command/README.md.
#pragma once

#include "core/command_spec.h"
#include "trainables/zygote.h"

namespace tune {

// Runs one rank of one attempt over the worker's socket; returns the exit code of the process.
// Never throws. The caller ends the process with _exit.
int run_command_worker(const CommandSettings& settings, int socket);

// The trainable that a zygote forks for a command; it has the settings' name.
ZygoteTrainables command_trainables(CommandSettings settings);

}  // namespace tune
