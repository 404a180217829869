#include "tune/spec/trainable_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

// A scheduler that cannot be made is reported by make_spec().
bool does(const SchedulerSpec& scheduler, bool (TrialScheduler::*what)() const) {
  try {
    return (*scheduler.make().*what)();
  } catch (const Error&) {
    return false;
  }
}

std::string is_not_there(const ZygoteReady& loaded, const WantedTrainable& wanted) {
  std::vector<std::string> names;
  for (const TrainableInfo& info : loaded.trainables) names.push_back(info.name);
  return fmt::format("there is no '{}' in {}{}; it has: {}", wanted.name,
                     wanted.plugin.empty() ? "this program" : wanted.plugin,
                     did_you_mean(wanted.name, names), names.empty() ? "none" : join(names, ", "));
}

}  // namespace

WantedTrainable wanted_trainable(const RunOptions& options, std::string name, std::string plugin) {
  return {.name = std::move(name),
          .plugin = std::move(plugin),
          .checkpoint_frequency = options.checkpoint.frequency,
          .scheduler_pauses = does(options.scheduler, &TrialScheduler::pauses),
          .scheduler_replaces = does(options.scheduler, &TrialScheduler::replaces)};
}

std::vector<Complaint> complaints_about(const ZygoteReady& loaded, const WantedTrainable& wanted) {
  if (!loaded.error.empty()) {
    return {{.path = wanted.plugin.empty() ? "" : "plugin", .message = loaded.error}};
  }
  const auto info = std::find_if(loaded.trainables.begin(), loaded.trainables.end(),
                                 [&](const TrainableInfo& one) { return one.name == wanted.name; });
  if (info == loaded.trainables.end()) {
    return {{.path = "trainable", .message = is_not_there(loaded, wanted)}};
  }
  std::vector<Complaint> complaints;
  if (info->can_save || info->is_function) return complaints;
  if (wanted.checkpoint_frequency > 0) {
    complaints.push_back(
        {.path = "checkpoint/frequency",
         .message = fmt::format("is {}, but {} has no save and load: write them, or set it to 0",
                                wanted.checkpoint_frequency, wanted.name)});
  }
  if (wanted.scheduler_pauses || wanted.scheduler_replaces) {
    complaints.push_back(
        {.path = "scheduler",
         .message = fmt::format("it {}, but {} has no save and load: write them, or choose another",
                                wanted.scheduler_replaces
                                    ? "lets trials go on from the checkpoints of others"
                                    : "pauses trials",
                                wanted.name)});
  }
  return complaints;
}

}  // namespace tune
