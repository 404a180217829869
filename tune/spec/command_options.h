// The keys of a sweep whose trials are programs: command, program, report and restart.
#pragma once

#include <string>
#include <vector>

#include "core/command_spec.h"
#include "tune/spec/experiment_spec.h"
#include "tune/spec/option_reader.h"

namespace tune {

// Takes the four keys. `program` alone means what it means to W&B's agent:
// [${env}, ${interpreter}, ${program}, ${args}].
void read_command(OptionReader& reader, CommandSpec& command);

// Everything that can be known before a trial runs: programs that are not there, placeholders that
// nothing stands for, or that some configurations lack, a regular expression that is none, and a
// scheduler or checkpoints that ask more of the program than `restart` promises.
std::vector<Complaint> complaints_about(const CommandSpec& command, const RunOptions& options);

// What a user may not have meant, though it can be run, one line each: "sweep.yaml:4: command/2:
// {lr} is passed on as it is; ...", and parameters that share a variable of the environment.
std::vector<std::string> remarks_on(const ExperimentSpec& spec);

// The reason why a word that names a program names none; empty: it does, or only a placeholder's
// value can tell.
std::string why_no_program(const std::string& word);

// The program that forks the trials of a sweep that is not of this program: of a plugin, a Python
// trainable or a command.
std::vector<std::string> zygote_command(const ExperimentSpec& spec);

}  // namespace tune
