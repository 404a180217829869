#include "tune/control/membership.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/fitting.h"
#include "tune/spec/trainable_check.h"

namespace tune {

void Membership::join(AgentNumber agent, const AgentHello& hello) {
  // Where experiments share keys, the next one may listen where the last one did.
  const SetupExperiment& experiment = state_.setup.experiment;
  if (!hello.experiment.empty() && hello.experiment != experiment.experiment_id) {
    return state_.out.send(agent,
                           Shutdown{"another experiment has taken the place of its own", true});
  }
  // It has greeted this driver as well.
  if (hello.epoch != 0 && hello.epoch != state_.driver.epoch) return;
  if (hello.contract != state_.driver.agent_contract) {
    if (hello.joined) return;  // it was refused by its connection
    return state_.course.fail(fmt::format(
        "node {} speaks version {} of the agent contract, this driver version {}: install the same "
        "version of tune on both",
        hello.hostname, hello.contract, state_.driver.agent_contract));
  }
  state_.out.tell(NodeJoined{agent, state_.nodes.join(agent, hello, state_.now)});
  if (hello.joined) state_.pool.node_has_joined(state_.allocation_of(hello));
  say_what_it_lacks(hello);
  state_.out.send(agent, experiment);
  if (hello.live.empty()) return;
  abandoned_.await_ends(agent, hello.live);  // none is to be kept
  state_.nodes.set_away(agent);
}

void Membership::say_what_it_lacks(const AgentHello& hello) const {
  const ResourceRequest& request = state_.setup.request;
  if (!hello.gpus.empty() && request.gpu_units == 0) {
    state_.out.notice(
        fmt::format("{} GPUs present on {} but trials ask for none: set resources_per_trial gpu",
                    hello.gpus.size(), hello.hostname));
  }
  const std::string never = why_never_on(resources_of(hello), request);
  // The pool's driver runs no trials.
  const bool is_to_hold_none = state_.driver.has_pool && !hello.joined;
  const bool holds_none = !never.empty() && !holds_part(resources_of(hello), request);
  if (state_.driver.nodes_may_join && !is_to_hold_none && holds_none) {
    state_.out.notice(fmt::format("node {} can hold no trial: {}", hello.hostname, never));
  }
}

void Membership::become_ready(AgentNumber agent, const ZygoteReady& ready) {
  Nodes& nodes = state_.nodes;
  if (!nodes.contains(agent) || nodes.is_ready(agent)) return;
  const SetupExperiment& experiment = state_.setup.experiment;
  const TrialScheduler& scheduler = state_.verdicts.scheduler();
  const WantedTrainable wanted{experiment.trainable, state_.setup.plugin,
                               experiment.checkpoint.frequency, scheduler.pauses(),
                               scheduler.replaces()};
  const AgentHello& node = nodes.hello(agent);
  if (const auto complaints = complaints_about(ready, wanted); !complaints.empty()) {
    const bool is_guest = node.joined && !node.own;
    if (is_guest || nodes.any_is_ready()) return exclude(agent, complaint_lines("", complaints));
    return state_.course.fail(complaint_lines("", complaints));
  }
  if (!ready.note.empty()) state_.out.notice(ready.note);
  const auto info = std::ranges::find(ready.trainables, experiment.trainable, &TrainableInfo::name);
  state_.can_save = info->can_save;
  if (!state_.can_save && !info->is_function) say_once_that_nothing_is_saved(info->name);
  nodes.set_ready(agent);
  if (ready.relays) nodes.set_carries(agent);
  const bool is_apart = ready.relays && !state_.driver.gathers_parts;
  if (!is_apart && state_.driver.spreads_groups) nodes.let_share(agent);
  const bool holds_one = why_never_on(resources_of(node), state_.setup.request).empty();
  if (holds_one || (nodes.shares(agent) && holds_part(resources_of(node), state_.setup.request))) {
    state_.pool.node_is_ready(state_.allocation_of(node));
  }
  say_why_it_waits(agent, is_apart);
  launcher_.fill();
}

// `is_apart`: it takes no part in groups over several nodes.
void Membership::say_why_it_waits(AgentNumber agent, bool is_apart) const {
  const AgentHello& node = state_.nodes.hello(agent);
  const std::string never = why_never_on(resources_of(node), state_.setup.request);
  if (is_apart && !never.empty() && holds_part(resources_of(node), state_.setup.request)) {
    state_.out.notice(fmt::format(
        "node {} can hold no trial: {}; and it takes no part in groups "
        "over several nodes, as it {}",
        node.hostname, never,
        state_.setup.experiment.objects.is_given() ? "keeps checkpoints in an object store"
                                                   : "does not see the experiment's folder"));
  }
  if (const std::string holder = state_.nodes.holder_of_its_gpus(agent); !holder.empty()) {
    state_.out.notice(
        fmt::format("node {} waits: its GPUs are promised to {}, which is not known to be "
                    "gone",
                    node.hostname, holder));
  }
}

void Membership::say_once_that_nothing_is_saved(const std::string& trainable) {
  if (std::exchange(state_.save_notice_given, true)) return;
  state_.out.notice(fmt::format(
      "{} has no save and load: a trial that is started again begins at step 1", trainable));
}

void Membership::go_out(AgentNumber agent, const NodeOut& out) {
  if (out.gone) abandoned_.settle(agent);
  if (!state_.nodes.contains(agent)) return;
  const AgentHello& node = state_.nodes.hello(agent);
  if (!state_.nodes.is_out(agent) && !out.cause.empty()) {
    state_.out.notice(fmt::format("node {} starts no more trials: {}", node.hostname, out.cause));
    state_.nodes.set_out(agent, out.cause);
    if (!out.gone) launcher_.fill();
  }
  if (!out.gone) return;
  state_.pool.node_has_left(state_.allocation_of(node));
  attempts_.lose_all({agent}, out.cause);  // it told the ends of all that it knew of
  leave(agent, out.cause);
}

// A node that joined and cannot take part costs the experiment nothing but that node.
void Membership::exclude(AgentNumber agent, const std::string& why) {
  state_.out.notice(
      fmt::format("node {} takes no part: {}", state_.nodes.hello(agent).hostname, why));
  state_.nodes.set_out(agent, why);
  state_.out.send(agent, Shutdown{why});
  launcher_.fill();
}

void Membership::lose(const AgentLost& event) {
  if (!state_.nodes.contains(event.agent)) return;
  const AgentHello& node = state_.nodes.hello(event.agent);
  const std::string cause = fmt::format("node {} is lost: {}", node.hostname, event.cause);
  state_.out.notice(cause);
  if (node.joined) abandoned_.abandon(event.agent);  // what runs there may run on
  attempts_.lose_all({event.agent}, cause);
  state_.pool.node_is_lost(state_.allocation_of(node));
  leave(event.agent, event.cause);
}

void Membership::leave(AgentNumber agent, const std::string& cause) {
  state_.out.tell(NodeLeft{agent, state_.nodes.hello(agent), cause});
  state_.nodes.leave(agent);
  launcher_.fill();
  const bool waits_for_one = state_.driver.nodes_may_join && !state_.driver.has_pool &&
                             state_.nodes.empty() && !state_.course.is_over();
  if (waits_for_one) state_.out.notice("no node is there: trials wait for one to join");
}

}  // namespace tune
