// The steps before there is a driver: what the spec leaves open is chosen, and the folder is made.
#pragma once

#include "tune/drive/driver.h"
#include "tune/results/experiment_folder.h"

namespace tune {

// The folder of the request's experiment, made or opened. Draws the seed where none is given, reads
// what the searcher is to know, and tells the user what was chosen. Throws as ExperimentFolder.
ExperimentFolder start_experiment(RunRequest& request);

}  // namespace tune
