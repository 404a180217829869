// Parts of the state that follow from others (the waiting trials, the promised resources) are not
// stored but made again.
#include "tune/control/control_state.h"

#include <utility>

#include "core/error.h"

namespace tune {

namespace {

constexpr std::uint32_t kStateVersion = 13;
constexpr std::uint32_t kLetsGoOfOrigins = 12;
constexpr std::uint32_t kAsksForMany = 11;
constexpr std::uint32_t kOneFolder = 10;
constexpr std::uint32_t kOneNode = 9;
constexpr std::uint32_t kEndsWithDriver = 8;
constexpr std::uint32_t kWithoutOrders = 7;
constexpr std::uint32_t kWithoutPool = 6;
constexpr std::uint32_t kNodesStay = 5;
constexpr std::uint32_t kDrawsEarly = 4;
constexpr std::uint32_t kWithoutHealth = 3;

// ---- Parts of restore(), in the order in which they stand there

void restore_course(ControlState& state, PackReader& in) {
  state.course.restore(in);
  decode(in, state.now);
  decode(in, state.driver.max_failures);
  decode(in, state.driver.max_concurrent_trials);
  decode(in, state.driver.time_budget);
  decode(in, state.can_save);
  decode(in, state.save_notice_given);
  decode(in, state.exhausted);
  decode(in, state.metric_was_reported);
  state.course.restore_warnings(in);
}

// Anything that an older build did not know is as it was then.
void restore_health(ControlState& state, PackReader& in, std::uint32_t version) {
  state.health.clear();
  state.driver.agent_contract = 3;
  if (version <= kWithoutHealth) return;
  state.health.restore(in);
  state.nodes.restore_out(in);
  decode(in, state.driver.agent_contract);
}

void restore_asking(ControlState& state, PackReader& in, std::uint32_t version) {
  state.driver.asks_late = false;
  state.asking = {};
  if (version <= kDrawsEarly) return;
  decode(in, state.driver.asks_late);
  state.asking.restore(in);
}

void restore_joining(ControlState& state, PackReader& in, std::uint32_t version) {
  state.driver.nodes_may_join = state.driver.has_pool = false;
  state.abandoned.clear();
  state.pool = {};
  if (version <= kNodesStay) return;
  decode(in, state.driver.nodes_may_join);
  for (std::size_t left = in.map(); left > 0; --left) {
    AgentNumber agent;
    decode(in, agent);
    decode(in, state.abandoned[agent]);
  }
  if (version <= kWithoutPool) return;
  decode(in, state.driver.has_pool);
  state.pool.restore(in);
}

void restore_orders(ControlState& state, PackReader& in, std::uint32_t version) {
  for (const Trial& trial : state.book.all()) {
    if (trial.is_added) state.searcher.skip(trial.number);
  }
  state.num_samples = state.driver.num_samples = 1;
  state.waits_for_user = false;
  if (version <= kWithoutOrders) return;
  decode(in, state.num_samples);
  decode(in, state.driver.num_samples);
  decode(in, state.waits_for_user);
  state.searcher.set_num_samples(state.num_samples);
}

void restore_away(ControlState& state, PackReader& in, std::uint32_t version) {
  state.driver.epoch = 0;
  state.unanswered.clear();
  if (version <= kEndsWithDriver) return;
  std::vector<TrialNumber> unanswered;
  decode(in, state.driver.epoch);
  decode(in, unanswered);
  state.unanswered = {unanswered.begin(), unanswered.end()};
  state.nodes.restore_away(in);
}

void restore_groups(ControlState& state, PackReader& in, std::uint32_t version) {
  state.ended.clear();
  state.driver.spreads_groups = state.driver.gathers_parts = false;
  state.driver.asks_for_few = state.driver.forgets_held = false;
  state.driver.keeps_origins = false;
  if (version <= kOneNode) return;
  for (std::size_t left = in.map(); left > 0; --left) {
    TrialNumber trial;
    decode(in, trial);
    decode(in, state.ended[trial]);
  }
  decode(in, state.driver.spreads_groups);
  if (version > kOneFolder) decode(in, state.driver.gathers_parts);
  if (version <= kAsksForMany) return;
  decode(in, state.driver.asks_for_few);
  decode(in, state.driver.forgets_held);
  if (version > kLetsGoOfOrigins) decode(in, state.driver.keeps_origins);
}

}  // namespace

ControlState::ControlState(ControllerSetup given)
    : setup(std::move(given)),
      course(out),
      nodes(setup.request),
      book(out, setup.objective, setup.experiment.checkpoint.keep),
      verdicts(std::move(setup.scheduler)),
      searcher(std::move(setup.searcher)),
      health(setup.probe_after) {}

std::string ControlState::save() const {
  PackWriter bytes;
  encode(bytes, kStateVersion);
  course.save(bytes);
  encode(bytes, now);
  encode(bytes, driver.max_failures);
  encode(bytes, driver.max_concurrent_trials);
  encode(bytes, driver.time_budget);
  encode(bytes, can_save);
  encode(bytes, save_notice_given);
  encode(bytes, exhausted);
  encode(bytes, metric_was_reported);
  course.save_warnings(bytes);
  nodes.save(bytes);
  book.save(bytes);
  verdicts.save(bytes);
  bytes.binary(searcher.save());
  health.save(bytes);
  nodes.save_out(bytes);
  encode(bytes, driver.agent_contract);
  encode(bytes, driver.asks_late);
  asking.save(bytes);
  encode(bytes, driver.nodes_may_join);
  bytes.map(abandoned.size());
  for (const auto& [agent, attempts] : abandoned) encode(bytes, agent), encode(bytes, attempts);
  encode(bytes, driver.has_pool);
  pool.save(bytes);
  encode(bytes, num_samples);
  encode(bytes, driver.num_samples);
  encode(bytes, waits_for_user);
  encode(bytes, driver.epoch);
  encode(bytes, std::vector<TrialNumber>(unanswered.begin(), unanswered.end()));
  nodes.save_away(bytes);
  bytes.map(ended.size());
  for (const auto& [trial, how] : ended) encode(bytes, trial), encode(bytes, how);
  encode(bytes, driver.spreads_groups);
  encode(bytes, driver.gathers_parts);
  encode(bytes, driver.asks_for_few);
  encode(bytes, driver.forgets_held);
  encode(bytes, driver.keeps_origins);
  return bytes.take();
}

void ControlState::restore(std::string_view bytes) {
  PackReader in(bytes);
  std::uint32_t version = 0;
  decode(in, version);
  if (version < kWithoutHealth || version > kStateVersion) {
    detail::bad_message("version of the controller's state", version, kStateVersion);
  }
  restore_course(*this, in);
  nodes.restore(in);
  book.restore(in);
  nodes.reserve_again(book.all());
  verdicts.restore(in);
  searcher.restore(in.binary());
  restore_health(*this, in, version);
  restore_asking(*this, in, version);
  restore_joining(*this, in, version);
  restore_orders(*this, in, version);
  restore_away(*this, in, version);
  restore_groups(*this, in, version);
  in.expect_end();
}

}  // namespace tune
