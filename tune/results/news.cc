#include "tune/results/news.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "schedulers/merit.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

namespace {

// Empty: its scheduler has none.
std::string time_attr_of(const ExperimentSpec& spec) {
  return spec.options.scheduler.parameters().get_or("time_attr", "");
}

std::vector<std::string> expected_keys(const ExperimentSpec& spec, const Objective& objective) {
  std::vector<std::string> keys = metrics_of(objective);
  for (const StopRule& rule : spec.stop) keys.push_back(rule.path);
  keys.push_back(time_attr_of(spec));
  return keys;
}

}  // namespace

News::News(const ExperimentSpec& spec, const Objective& objective, std::filesystem::path directory,
           std::shared_ptr<ProgressReporter> reporter)
    : spec_(spec),
      directory_(std::move(directory)),
      reporter_(std::move(reporter)),
      metrics_(needs_merit(objective) ? metrics_of(objective) : std::vector<std::string>()),
      key_watch_(expected_keys(spec, objective), metrics_) {}

std::string News::record(const Record& record) {
  if (const auto* notice = std::get_if<Notice>(&record)) reporter_->notice(notice->text);
  if (const auto* joined = std::get_if<NodeJoined>(&record); joined && !spec_.options.quiet) {
    const AgentHello& node = joined->hello;
    reporter_->notice(fmt::format("node {} offers {:g} CPUs, {} GPUs and {:.1f} GiB of memory",
                                  node.hostname, static_cast<double>(node.cpu_units) / kUnit,
                                  node.gpus.size(),
                                  static_cast<double>(node.memory_bytes) / 0x1p30));
  }
  if (const auto* failed = std::get_if<AttemptFailed>(&record)) {
    const std::string id = trial_id(experiment_id_of(spec_), failed->trial.number);
    reporter_->failure(failed->trial, id, directory_ / id / "error.txt", failed->retried);
  }
  std::string warning = key_watch_.record(record);
  const auto names = [&warning](const std::string& key) {
    return warning.find(fmt::format("'{}' is ", key)) != std::string::npos;
  };
  if (names(time_attr_of(spec_))) {
    warning += "; without its time_attr the scheduler judges no trial, and ends none";
  }
  if (std::ranges::any_of(metrics_, names)) {
    warning +=
        "; a result that lacks one of the metrics is not judged, and the searcher learns nothing "
        "of it";
  }
  return warning;
}

}  // namespace tune
