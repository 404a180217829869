// The controller's state as bytes. Parts that follow from others (the waiting trials, the promised
// resources) are not stored but made again.
#include "core/error.h"
#include "tune/control/controller.h"

namespace tune {

namespace {

constexpr std::uint32_t kStateVersion = 11;
constexpr std::uint32_t kOneFolder = 10;
constexpr std::uint32_t kOneNode = 9;
constexpr std::uint32_t kEndsWithDriver = 8;
constexpr std::uint32_t kWithoutOrders = 7;
constexpr std::uint32_t kWithoutPool = 6;
constexpr std::uint32_t kNodesStay = 5;
constexpr std::uint32_t kDrawsEarly = 4;
constexpr std::uint32_t kWithoutHealth = 3;

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
  nodes_.save(out);
  book_.save(out);
  verdicts_.save(out);
  out.binary(searcher_->save());
  health_.save(out);
  nodes_.save_out(out);
  encode(out, agent_contract_);
  encode(out, asks_late_);
  asking_.save(out);
  encode(out, nodes_may_join_);
  out.map(abandoned_.size());
  for (const auto& [agent, attempts] : abandoned_) encode(out, agent), encode(out, attempts);
  encode(out, has_pool_);
  pool_.save(out);
  encode(out, num_samples_);
  encode(out, driver_samples_);
  encode(out, waits_for_user_);
  encode(out, epoch_);
  encode(out, std::vector<TrialNumber>(unanswered_.begin(), unanswered_.end()));
  nodes_.save_away(out);
  out.map(ended_.size());
  for (const auto& [trial, ended] : ended_) encode(out, trial), encode(out, ended);
  encode(out, spreads_groups_);
  encode(out, gathers_parts_);
  return out.take();
}

void Controller::restore(std::string_view state) {
  PackReader in(state);
  std::uint32_t version = 0;
  decode(in, version);
  if (version < kWithoutHealth || version > kStateVersion) {
    detail::bad_message("version of the controller's state", version, kStateVersion);
  }
  restore_course(in);
  nodes_.restore(in);
  book_.restore(in);
  nodes_.reserve_again(book_.all());
  verdicts_.restore(in);
  searcher_->restore(in.binary());
  restore_health(in, version);
  restore_asking(in, version);
  restore_joining(in, version);
  restore_orders(in, version);
  restore_away(in, version);
  restore_groups(in, version);
  in.expect_end();
}

void Controller::restore_course(PackReader& in) {
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
}

// Anything that an older build did not know is as it was then.
void Controller::restore_health(PackReader& in, std::uint32_t version) {
  health_.clear();
  agent_contract_ = 3;
  if (version <= kWithoutHealth) return;
  health_.restore(in);
  nodes_.restore_out(in);
  decode(in, agent_contract_);
}

void Controller::restore_asking(PackReader& in, std::uint32_t version) {
  asks_late_ = false;
  asking_ = {};
  if (version <= kDrawsEarly) return;
  decode(in, asks_late_);
  asking_.restore(in);
}

void Controller::restore_joining(PackReader& in, std::uint32_t version) {
  nodes_may_join_ = has_pool_ = false;
  abandoned_.clear();
  pool_ = {};
  if (version <= kNodesStay) return;
  decode(in, nodes_may_join_);
  for (std::size_t left = in.map(); left > 0; --left) {
    AgentNumber agent;
    decode(in, agent);
    decode(in, abandoned_[agent]);
  }
  if (version <= kWithoutPool) return;
  decode(in, has_pool_);
  pool_.restore(in);
}

void Controller::restore_orders(PackReader& in, std::uint32_t version) {
  for (const Trial& trial : book_.all()) {
    if (trial.is_added) searcher_->skip(trial.number);
  }
  num_samples_ = driver_samples_ = 1;
  waits_for_user_ = false;
  if (version <= kWithoutOrders) return;
  decode(in, num_samples_);
  decode(in, driver_samples_);
  decode(in, waits_for_user_);
  searcher_->set_num_samples(num_samples_);
}

void Controller::restore_away(PackReader& in, std::uint32_t version) {
  epoch_ = 0;
  unanswered_.clear();
  if (version <= kEndsWithDriver) return;
  std::vector<TrialNumber> unanswered;
  decode(in, epoch_);
  decode(in, unanswered);
  unanswered_ = {unanswered.begin(), unanswered.end()};
  nodes_.restore_away(in);
}

void Controller::restore_groups(PackReader& in, std::uint32_t version) {
  ended_.clear();
  spreads_groups_ = gathers_parts_ = false;
  if (version <= kOneNode) return;
  for (std::size_t left = in.map(); left > 0; --left) {
    TrialNumber trial;
    decode(in, trial);
    decode(in, ended_[trial]);
  }
  decode(in, spreads_groups_);
  if (version > kOneFolder) decode(in, gathers_parts_);
}

}  // namespace tune
