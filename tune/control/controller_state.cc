// The controller's state as bytes. What follows from other parts of it (who waits, what is promised
// to whom) is not stored but made again.
#include <fmt/format.h>

#include "core/error.h"
#include "tune/control/controller.h"

namespace tune {

namespace {

constexpr std::uint32_t kStateVersion = 3;

}  // namespace

std::string Controller::save() const {
  PackWriter out;
  encode(out, kStateVersion);
  encode(out, phase_);
  encode(out, failure_);
  encode(out, now_);
  encode(out, max_failures_);
  encode(out, max_concurrent_trials_);
  encode(out, time_budget_);
  encode(out, can_save_);
  encode(out, save_notice_given_);
  encode(out, exhausted_);
  encode(out, metric_was_reported_);
  encode(out, std::vector<std::string>(warnings_.begin(), warnings_.end()));
  out.map(agents_.size());
  for (const auto& [number, agent] : agents_) encode(out, number), encode(out, agent);
  out.array(trials_.size());
  for (const Trial& trial : trials_) encode(out, trial);
  out.binary(scheduler_->save());
  out.binary(searcher_->save());
  return out.take();
}

void Controller::restore(std::string_view state) {
  PackReader in(state);
  std::uint32_t version = 0;
  decode(in, version);
  if (version != kStateVersion) {
    detail::bad_message("version of the controller's state", version, kStateVersion);
  }
  decode(in, phase_);
  decode(in, failure_);
  decode(in, now_);
  decode(in, max_failures_);
  decode(in, max_concurrent_trials_);
  decode(in, time_budget_);
  decode(in, can_save_);
  decode(in, save_notice_given_);
  decode(in, exhausted_);
  decode(in, metric_was_reported_);
  std::vector<std::string> warnings;
  decode(in, warnings);
  warnings_ = {warnings.begin(), warnings.end()};
  restore_agents(in);
  restore_trials(in);
  scheduler_->restore(in.binary());
  searcher_->restore(in.binary());
  in.expect_end();
}

void Controller::restore_agents(PackReader& in) {
  agents_.clear();
  placer_ = Placer();
  for (std::size_t left = in.map(); left > 0; --left) {
    AgentNumber number;
    decode(in, number);
    Agent& agent = agents_[number];
    decode(in, agent);
    placer_.add_node(number, resources_of(agent.hello));
    if (agent.ready) placer_.open_node(number);
  }
}

void Controller::restore_trials(PackReader& in) {
  trials_.clear();
  counts_ = {};
  for (std::set<TrialNumber>* group : {&waiting_, &paused_, &running_}) group->clear();
  for (std::size_t left = in.array(); left > 0; --left) {
    Trial& trial = trials_.emplace_back();
    decode(in, trial);
    ++counts_[static_cast<std::size_t>(trial.status)];
    if (auto* group = group_of(trial)) group->insert(trial.number);
    const bool runs = trial.status == TrialStatus::kRunning;
    if (runs != trial.placement.has_value() ||
        (runs && !placer_.reserve(*trial.placement, request_))) {
      throw Error(
          ErrorCode::kProtocol,
          fmt::format("the saved placement of trial {} does not fit its node", trial.number.value));
    }
  }
}

}  // namespace tune
