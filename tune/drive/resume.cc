#include "tune/drive/resume.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/platform/side_output.h"
#include "core/strings.h"
#include "tune/results/experiment_folder.h"

namespace tune {

namespace {

// Keys of experiment.json that a resume may change, or that do not describe the search.
const std::vector<std::string> kMayChange = {
    "num_samples", "max_failures", "time_budget_s", "max_concurrent_trials",
    "name",        "storage",      "seed",          "quiet",
    "reporter",    "program",      "if_exists",     "cpus",
    "gpus",        "wait_gpus",    "env",           "raise_on_failed_trial",
    "loggers",     "listen",       "sweep",         "sweep_hash",
    "plugin_hash"};

bool has_functions(const SearchSpace& space) {
  const std::vector<PlacedDomain> all = space.placed_domains();
  return std::any_of(all.begin(), all.end(),
                     [](const PlacedDomain& one) { return one.domain->is_function(); });
}

void warn_of_changes(const ExperimentSpec& stored, const ExperimentSpec& given) {
  const Value before = to_value(stored);
  const Value after = to_value(given);
  std::vector<std::string> changed;
  for (const Member& member : after.map()) {
    const bool may =
        std::find(kMayChange.begin(), kMayChange.end(), member.key) != kMayChange.end();
    const Value* old = before.find(member.key);
    if (!may && (old == nullptr || !(*old == member.value))) changed.push_back(member.key);
  }
  if (changed.empty()) return;
  // Before the agent is forked there is no thread to write it.
  write_if_it_fits(STDERR_FILENO,
                   fmt::format("warning: resuming {} as it was begun; these changes do not count: "
                               "{}\n",
                               stored.name, join(changed, ", ")));
}

}  // namespace

RunRequest resume_request(const std::filesystem::path& directory) {
  RunRequest request;
  request.spec = read_spec(directory);
  // A link such as results/latest may point elsewhere before this run is done.
  request.resume = std::filesystem::is_symlink(directory)
                       ? directory.parent_path() / std::filesystem::read_symlink(directory)
                       : directory;
  return request;
}

RunRequest resume_request(const std::filesystem::path& directory, const ExperimentSpec& given) {
  RunRequest request = resume_request(directory);
  const ExperimentSpec stored = request.spec;
  RunOptions& options = request.spec.options;
  const RunOptions& now = given.options;
  if (options.scheduler.name().empty()) options.scheduler = now.scheduler;
  if (options.searcher.name().empty()) options.searcher = now.searcher;
  if (has_functions(options.config)) options.config = now.config;
  ExperimentSpec compared = given;
  if (!given.searcher_choice.empty()) compared.options.searcher = options.searcher;
  warn_of_changes(stored, compared);
  if (now.num_samples >= options.num_samples || now.num_samples < 0) {
    options.num_samples = now.num_samples;
  }
  options.max_failures = now.max_failures;
  options.time_budget_s = now.time_budget_s;
  options.max_concurrent_trials = now.max_concurrent_trials;
  options.env = now.env;
  options.reporter = now.reporter;
  options.quiet = now.quiet;
  options.raise_on_failed_trial = now.raise_on_failed_trial;
  options.cpus = now.cpus;
  options.gpus = now.gpus;
  options.wait_gpus = now.wait_gpus;
  options.loggers = now.loggers;
  if (!now.listen.empty()) options.listen = now.listen;
  options.on_end = now.on_end;
  options.callbacks = now.callbacks;
  return request;
}

RunRequest request_by_if_exists(ExperimentSpec given) {
  if (given.options.if_exists == IfExists::kResume && given.name_given) {
    const auto directory = std::filesystem::path(given.options.storage) / given.options.name;
    if (std::filesystem::exists(directory / "experiment.json")) {
      return resume_request(directory, given);
    }
  }
  RunRequest request;
  request.spec = std::move(given);
  return request;
}

}  // namespace tune
