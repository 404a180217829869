// A sweep whose trainable is Python: `python: train.py:Train`, `preload`, `interpreter`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tune/spec/experiment_spec.h"
#include "tune/spec/option_reader.h"

namespace tune {

// Takes the keys; nothing when there is no `python`.
std::optional<PythonCall> read_python(OptionReader& reader);

// Makes the file of the target absolute, below `base`, and finds its interpreter. Mistakes become
// complaints.
void find_python(PythonCall& python, const std::filesystem::path& base,
                 std::vector<Complaint>& complaints);

// The name in the target: "Train" of "train.py:Train".
std::string trainable_name(const PythonCall& python);
// The file in the target; empty: it names a module.
std::string python_file(const PythonCall& python);

// The file that holds an experiment's trainable: its plugin or its Python file; empty: none is
// known.
std::string trainable_file(const ExperimentSpec& spec);

// The zygote's argv. Throws Error (kBadInput).
std::vector<std::string> zygote_command(const PythonCall& python);

// "python: importing ..." as a zygote says it: the key moves from the message into the path.
void take_keys_of_python(std::vector<Complaint>& complaints);

Value to_value(const PythonCall& python);
PythonCall python_from_value(const Value& value);

}  // namespace tune
