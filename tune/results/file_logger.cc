#include "tune/results/file_logger.h"

#include <utility>
#include <variant>

namespace tune {

FileLogger::FileLogger(std::filesystem::path directory, const ExperimentSpec& spec, SideWork& work)
    : work_(work), log_(std::move(directory), spec) {
  work.after_each_round([this] { log_.flush(); });
}

std::filesystem::path FileLogger::trial_directory(TrialNumber trial) const {
  return log_.trial_directory(trial);
}

void FileLogger::record(const Record& record, const Telling& telling) {
  std::visit([&](const auto& what) { on(what, telling.wall); }, record);
}

void FileLogger::flush() {
  if (waiting_.empty()) return work_.check();
  const std::size_t bytes = std::exchange(waiting_bytes_, 0);
  work_.add(bytes, [this, all = std::exchange(waiting_, {})] { log_.take(all); });
}

std::future<std::string> FileLogger::save() {
  flush();
  auto saved = std::make_shared<std::promise<std::string>>();
  PackWriter out;
  out.map(hostnames_.size());
  for (const auto& [agent, hostname] : hostnames_) encode(out, agent), out.text(*hostname);
  work_.add(0, [this, saved, out]() mutable {
    log_.save(out);
    saved->set_value(out.take());
  });
  return saved->get_future();
}

void FileLogger::restore(std::string_view state) {
  PackReader in(state);
  hostnames_.clear();
  for (std::size_t left = in.map(); left > 0; --left) {
    AgentNumber agent;
    decode(in, agent);
    hostnames_[agent] = std::make_shared<const std::string>(in.text());
  }
  log_.restore(in);
  in.expect_end();
}

// ---- Records ------------------------------------------------------------------------------------

void FileLogger::on(const TrialAdded& added, WallTime) {
  const Trial& trial = added.trial;
  add(LoggedTrial{trial.number, trial.config}, trial.config.bytes.size());
}

void FileLogger::on(const ResultRecorded& recorded, WallTime wall) {
  const Trial& trial = recorded.trial;
  if (trial.number.value >= started_.size()) started_.resize(trial.number.value + 1);
  if (!started_[trial.number.value]) {
    started_[trial.number.value] = true;
    add(LoggedStart{trial.number, trial.config}, trial.config.bytes.size());
  }
  const auto host = trial.placement ? hostnames_.find(trial.placement->agent) : hostnames_.end();
  add(LoggedResult{recorded.report, recorded.done, wall,
                   host == hostnames_.end() ? nullptr : host->second, trial.location},
      recorded.report.result.bytes.size());
}

void FileLogger::on(const ResultsCut& cut, WallTime) {
  add(LoggedCut{cut.trial.number, cut.iteration}, 0);
}

void FileLogger::on(const TrialChanged& changed, WallTime) {
  const Trial& trial = changed.trial;
  if (trial.status == TrialStatus::kRunning) return;
  const bool was_started = trial.number.value < started_.size() && started_[trial.number.value];
  if (was_started) started_[trial.number.value] = false;
  add(LoggedRest{trial.number}, 0);
}

void FileLogger::on(const AttemptFailed& failed, WallTime wall) {
  const Failure& failure = *failed.trial.failure;
  add(LoggedFailure{failed.trial.number, failure, failed.retried, wall},
      failure.cause.size() + failure.stderr_tail.size());
}

void FileLogger::on(const TrialReplaced& replaced, WallTime) {
  const Trial& trial = replaced.trial;
  add(LoggedConfig{trial.number, trial.config}, trial.config.bytes.size());
}

void FileLogger::on(const NodeJoined& joined, WallTime) {
  hostnames_[joined.agent] = std::make_shared<const std::string>(joined.hello.hostname);
}

}  // namespace tune
