// The experiment's folder: what the spec leaves open is chosen and the folder is made, before there
// is a driver; and it is to stay there.
#pragma once

#include <cstdint>

#include "core/platform/side_work.h"
#include "tune/drive/driver.h"
#include "tune/results/experiment_folder.h"

namespace tune {

// The folder of the request's experiment, made or opened. Draws the seed where none is given, reads
// what the searcher is to know, and tells the user what was chosen. Throws as ExperimentFolder, and
// as check_loggers().
ExperimentFolder start_experiment(RunRequest& request);

// When a user has ordered another number of samples, the sweep's description follows, beside the
// loop: a resume would do without, as the journal has it.
void keep_num_samples(std::int64_t ordered, ExperimentSpec& spec, const ExperimentFolder& folder,
                      SideWork& work);

// A sign of life of a driver that waits before it keeps the folder alive. Throws as refuse_taken().
void show_life(ExperimentFolder& folder);
// Throws SupersededError when a driver on another host is known to have taken the folder. Never
// blocks.
void refuse_taken(const ExperimentFolder& folder);
// The same, after a look if it may have been taken: the file system may not answer for a while.
void check_owner(const ExperimentFolder& folder);
// The same; throws Error (kIo) when the folder is not where it was.
void check_place(const ExperimentFolder& folder);

}  // namespace tune
