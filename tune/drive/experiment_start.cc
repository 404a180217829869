#include "tune/drive/experiment_start.h"

#include <unistd.h>

#include <random>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/side_output.h"
#include "core/store.h"
#include "tune/export/loggers.h"
#include "tune/results/warm_start.h"
#include "tune/spec/command_options.h"
#include "tune/spec/objectives.h"

namespace tune {

ExperimentFolder start_experiment(RunRequest& request) {
  ExperimentSpec& spec = request.spec;
  check_loggers(spec);
  if (request.resume.empty()) {
    request.notices = remarks_on(spec);
    const std::string learnt = read_warm_start(spec);
    if (!learnt.empty()) request.notices.push_back(learnt);
  }
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

void keep_num_samples(std::int64_t ordered, ExperimentSpec& spec, const ExperimentFolder& folder,
                      SideWork& work) {
  if (spec.options.num_samples == ordered) return;
  spec.options.num_samples = ordered;
  work.add(0, [&folder, spec] { folder.write_spec(spec); });
}

void show_life(ExperimentFolder& folder) {
  folder.show_life();
  refuse_taken(folder);
}

void refuse_taken(const ExperimentFolder& folder) {
  if (const std::string by = folder.taken_by(); !by.empty()) {
    throw SupersededError(
        fmt::format("running trials: {} has taken over {}: this driver stood still", by,
                    folder.path().string()));
  }
}

void check_owner(const ExperimentFolder& folder) {
  folder.look_again();
  refuse_taken(folder);
}

// Open files can still be written when their names are gone.
void check_place(const ExperimentFolder& folder) {
  check_owner(folder);
  if (folder.is_in_place()) return;
  throw Error(ErrorCode::kIo,
              fmt::format("running trials: the folder {} was removed or renamed meanwhile",
                          folder.path().string()));
}

}  // namespace tune
