// Attempts on several nodes. One of them leads, and the controller speaks with that one; it holds
// the resources of each until the ranks there are gone.
//
// An attempt is over when it is over on every node. Simpler ways fail: with the lead's last word, a
// node that the lead has lost, and that is there, would get another trial while its ranks still
// run; without the lead, nobody would say that the others are to end.
#include <algorithm>
#include <utility>

#include "tune/control/controller.h"

namespace tune {

// The lead listens: the others may come.
void Controller::on_agent(AgentNumber agent, const GroupMeets& meets) {
  const Trial* trial = book_.current(agent, meets.trial, meets.attempt);
  if (trial == nullptr) return;
  const Placement& placement = *trial->placement;
  const bool is_whole = placement.others.size() + 1 == placement.nodes;
  if (!is_whole || meets.addresses.size() != placement.others.size()) return;  // it is being ended
  // A machine that has not greeted this driver yet will say that nothing of it runs there: it must
  // not begin meanwhile.
  const bool any_is_away = std::ranges::any_of(
      placement.others, [&](const PlacementPart& part) { return nodes_.is_away(part.agent); });
  if (any_is_away) return;
  Launch command = launch_of(*trial);
  for (const PlacementPart& part : placement.others) {
    command.gpus = part.gpus;
    command.node = part.node;
    command.lead = meets.addresses[part.node - 1];
    out_->send(part.agent, command);
  }
}

bool Controller::runs_on(const Trial& trial, AgentNumber agent) const {
  return std::ranges::count(agents_of(*trial.placement), agent) > 0;
}

void Controller::tell_lead(const Trial& trial, Command command) {
  if (trial.placement->lead_has_ended) return;
  out_->send(trial.placement->agent, std::move(command));
}

// These nodes are gone, or what the trial had there is.
void Controller::lose_parts(Trial& trial, const std::set<AgentNumber>& of,
                            const std::string& cause) {
  Placement& placement = *trial.placement;
  const bool loses_lead = !placement.lead_has_ended && of.contains(placement.agent);
  const auto is_lost = [&](const PlacementPart& part) { return of.contains(part.agent); };
  for (const PlacementPart& part : placement.others) {
    if (is_lost(part)) nodes_.release_part(part, placement.nodes);
  }
  const bool loses_others = std::erase_if(placement.others, is_lost) > 0;
  if (loses_lead) {
    nodes_.release_part(placement.lead(), placement.nodes);
    placement.lead_has_ended = true;
    AttemptEnded lost{trial.number, trial.attempt, Outcome::kLost, 0, 0, cause, {}, true};
    ended_[trial.number] = {std::move(lost), true};
  }
  if (loses_lead || loses_others) end_what_is_left(trial);
}

// Of the node that leads, or of another one, or of the only one. The trial goes on nowhere before
// its end is told. Each such attempt keeps a checkpoint on the node: one above the limit keeps its
// place as well, so that a store that is away fills no disk.
void Controller::on_agent(AgentNumber agent, const PlaceFree& free) {
  const auto is_free = [&](TrialNumber number) {
    const Placement& placement = *book_.at(number).placement;
    const auto is_there = [&](const PlacementPart& part) {
      return part.is_free && part.agent == agent;
    };
    return std::ranges::any_of(placement.others, is_there) || is_there(placement.lead());
  };
  if (std::ranges::count_if(book_.running(), is_free) >= kMostFree) return;
  if (Trial* trial = book_.current(agent, free.trial, free.attempt)) {
    nodes_.release_part(trial->placement->lead(), trial->placement->nodes);
    trial->placement->lead_is_free = true;
  } else if (Trial* one = book_.current_part(agent, free.trial, free.attempt)) {
    const auto part = std::ranges::find(one->placement->others, agent, &PlacementPart::agent);
    nodes_.release_part(*part, one->placement->nodes);
    part->is_free = true;
  } else {
    return;
  }
  fill();
}

// A node that ends its part in good order leaves the rest to the lead.
void Controller::part_has_ended(Trial& trial, AgentNumber agent, const AttemptEnded& ended) {
  Placement& placement = *trial.placement;
  const auto part = std::ranges::find(placement.others, agent, &PlacementPart::agent);
  nodes_.release_part(*part, placement.nodes);
  placement.others.erase(part);
  if (placement.lead_has_ended || ended.outcome == Outcome::kLost) end_what_is_left(trial);
}

void Controller::end_what_is_left(Trial& trial) {
  const Placement& placement = *trial.placement;
  const KillAttempt kill{trial.number, trial.attempt};
  if (!placement.lead_has_ended) return out_->send(placement.agent, kill);
  if (placement.others.empty()) return conclude(trial);
  for (const PlacementPart& part : placement.others) out_->send(part.agent, kill);
}

}  // namespace tune
