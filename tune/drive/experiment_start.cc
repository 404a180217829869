#include "tune/drive/experiment_start.h"

#include <unistd.h>

#include <random>

#include <fmt/format.h>

#include "core/platform/side_output.h"
#include "tune/results/warm_start.h"
#include "tune/spec/objectives.h"

namespace tune {

ExperimentFolder start_experiment(RunRequest& request) {
  ExperimentSpec& spec = request.spec;
  if (request.resume.empty()) request.notice = read_warm_start(spec);
  const bool drawn = !spec.options.seed.has_value();
  if (drawn) spec.options.seed = std::random_device()();
  ExperimentFolder folder = request.resume.empty() ? ExperimentFolder::create(spec)
                                                   : ExperimentFolder::open(request.resume);
  if (drawn && !spec.options.quiet) {
    write_if_it_fits(STDERR_FILENO, fmt::format("seed: {}\n", *spec.options.seed));
  }
  const bool had_choice = !spec.searcher_choice.empty() && has_objective(spec.options);
  if (had_choice && request.resume.empty() && !spec.options.quiet) {
    write_if_it_fits(STDERR_FILENO, fmt::format("searcher: {}\n", spec.searcher_choice));
  }
  return folder;
}

}  // namespace tune
