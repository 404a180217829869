// Tasks from files: the edge of this folder.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "tune/simulate/task.h"

namespace tune {

// All tasks of a folder and of those below it (three deep), sorted by folder: one that holds a
// model.onnx is a surrogate (with config_space.json, param_set.R and encoding.json beside it), a
// CSV file whose first line is that of a curve table is one task. Others are passed over.
// Throws Error (kBadInput) when there is none, or when one cannot be read, naming it.
std::vector<std::unique_ptr<Task>> tasks_in(const std::filesystem::path& directory);

// An earlier experiment: its trials with what they reported and the time each step took; of a trial
// that a scheduler replaced, what came before. Its metrics are the numbers that they reported; the
// longest curves are taken for whole. Throws Error (kBadInput) when it is not an experiment's
// folder, or no trial reported a number.
std::unique_ptr<Task> task_of_experiment(const std::filesystem::path& directory);

}  // namespace tune
