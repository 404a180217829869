// An attempt whose ranks are on several nodes: what the agents of the others say, and their loss.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/agent/attempt.h"

namespace tune {

void Attempt::on_launched(const AttemptScene& scene) {
  if (nodes_.size() == 1) return;
  for (Node& node : nodes_) node.heard = scene.watched();
  nodes_[0].owns_folder = scene.node.owns_folder;
  scene.actions.add(OpenGroup{attempt_key(launch_.trial, launch_.attempt),
                              static_cast<std::uint32_t>(nodes_.size()) - 1});
}

void Attempt::on_group_open(const AttemptScene& scene, std::vector<std::string> addresses,
                            const std::string& error) {
  if (!error.empty()) return on_loss(scene, error);
  if (is_terminating()) return;
  for (Node& node : nodes_) node.heard = scene.watched();
  for (std::size_t i = 0; i < addresses.size() && i + 1 < nodes_.size(); ++i) {
    nodes_[i + 1].awaited_at = addresses[i];
  }
  scene.actions.tell(scene.now, GroupMeets{launch_.trial, launch_.attempt, std::move(addresses)});
}

// ---- What the others say ------------------------------------------------------------------------

void Attempt::on_node(const AttemptScene& scene, std::uint32_t number,
                      std::vector<NodeWord> words) {
  if (number == 0 || number >= nodes_.size() || nodes_[number].is_lost) return;
  node_is_back(scene, nodes_[number]);
  for (NodeWord& word : words) {
    const bool goes_on = std::visit([&](auto& one) { return hear(scene, number, one); }, word);
    if (!goes_on || nodes_[number].is_lost) return;
  }
}

// The time of ranks begins anew: what they did meanwhile is only heard now.
void Attempt::node_is_back(const AttemptScene& scene, Node& node) {
  node.heard = scene.watched();
  if (!std::exchange(node.is_quiet, false)) return;
  last_sign_ = scene.watched();
  if (pace_) pace_->begin_anew(scene.watched());
}

bool Attempt::hear(const AttemptScene& scene, std::uint32_t node, NodeLinks& links) {
  const bool is_it =
      links.attempt == attempt_key(launch_.trial, launch_.attempt) && links.node == node;
  nodes_[node].is_linked = is_it;
  nodes_[node].owns_folder = links.owns_folder;
  if (!is_it) on_node_lost(scene, node, "it came for another attempt");
  return is_it;
}

bool Attempt::hear(const AttemptScene& scene, std::uint32_t node, RankForked& forked) {
  if (is_of(node, forked.rank)) on_forked(scene, forked.rank, forked.pid);
  return true;
}

bool Attempt::hear(const AttemptScene& scene, std::uint32_t node, FromRank& from) {
  if (is_of(node, from.rank)) on_word(scene, from.rank, std::move(from.event));
  return true;
}

bool Attempt::hear(const AttemptScene& scene, std::uint32_t node, RankGarbled& garbled) {
  if (is_of(node, garbled.rank)) on_nonsense(scene, garbled.rank, garbled.what);
  return true;
}

bool Attempt::hear(const AttemptScene& scene, std::uint32_t node, RankGone& gone) {
  if (!is_of(node, gone.rank) || ranks_[gone.rank].stage == Stage::kGone) return true;
  if (!gone.was_forked) {
    on_never_forked(scene, gone.rank);
  } else {
    on_exit(scene, gone.rank, {gone.signalled, gone.code, gone.text, gone.why});
  }
  return true;
}

bool Attempt::hear(const AttemptScene&, std::uint32_t node, RankTail& tail) {
  if (!is_of(node, tail.rank)) return true;
  tail.text.resize(std::min(tail.text.size(), kStderrTailBytes));
  tails_[tail.rank] = std::move(tail.text);
  return true;
}

bool Attempt::hear(const AttemptScene& scene, std::uint32_t node, NodeFails& fails) {
  const std::string why = fmt::format("node {}: {}", launch_.hosts[node], fails.why);
  const bool cuts_saves_off = lose_part(scene, node, why);
  blame_node(scene, {.text = why}, cuts_saves_off);
  return true;
}

bool Attempt::hear(const AttemptScene& scene, std::uint32_t, NodeLeaves& leaves) {
  on_leave(scene, leaves.why, leaves.grace);
  return true;
}

bool Attempt::hear(const AttemptScene& scene, std::uint32_t node, NodeDisk& disk) {
  nodes_[node].disk_keeps_up = disk.keeps_up;
  if (disk.keeps_up) on_disk_keeps_up(scene);
  return true;
}

// ---- What they hear -----------------------------------------------------------------------------

void Attempt::tell(const AttemptScene& scene, std::uint32_t rank, WorkerCommand command) const {
  if (is_here(rank)) return scene.actions.tell_worker(ranks_[rank].worker, std::move(command));
  scene.actions.add(TellNode{attempt_key(launch_.trial, launch_.attempt),
                             rank / launch_.local_ranks(), ToRank{rank, std::move(command)}});
}

// A node that has not linked yet hears of the end from its driver.
void Attempt::end_ranks_elsewhere(const AttemptScene& scene, int signal) {
  const std::uint64_t key = attempt_key(launch_.trial, launch_.attempt);
  for (std::uint32_t number = 1; number < nodes_.size(); ++number) {
    if (nodes_[number].is_lost || !has_ranks(number)) continue;
    if (!nodes_[number].is_linked) {
      forget_node(scene, number);
      continue;
    }
    for (std::uint32_t rank = first_of(number); is_of(number, rank); ++rank) {
      ranks_[rank].signalled = true;
    }
    scene.actions.add(TellNode{key, number, EndRanks{signal}});
  }
}

// ---- Their loss ---------------------------------------------------------------------------------

void Attempt::on_node_lost(const AttemptScene& scene, std::uint32_t number,
                           const std::string& why) {
  if (number == 0 || number >= nodes_.size() || nodes_[number].is_lost) return;
  lose_node(scene, number, {.text = why});
}

void Attempt::lose_node(const AttemptScene& scene, std::uint32_t number, Cause why) {
  const bool had_ranks = has_ranks(number);
  forget_node(scene, number);
  why.text = fmt::format("node {} is lost: {}", launch_.hosts[number], why.text);
  const bool cuts_saves_off = lose_part(scene, number, why.text);
  if (had_ranks || cuts_saves_off) blame_node(scene, std::move(why), cuts_saves_off);
}

// Whatever failed before may be its echo: the other ranks notice the loss in their collectives,
// before this agent does. But what rank 0 has said stands, if every rank had saved.
void Attempt::blame_node(const AttemptScene& scene, Cause loss, bool cuts_saves_off) {
  const Cause* known = cause();
  const bool is_saved = saves_.empty() && !cuts_saves_off;
  const bool stands =
      outcome() != nullptr ? is_saved : known != nullptr && !is_failure(known->outcome);
  if (stands) return terminate_by_loss(scene, *known_end(), kTermGrace);
  loss.is_of_node = true;
  terminate_by_loss(scene, std::move(loss), kTermGrace);
}

// Its ranks are gone, as far as can be known.
void Attempt::forget_node(const AttemptScene& scene, std::uint32_t number) {
  nodes_[number].is_lost = true;
  for (std::uint32_t rank = first_of(number); is_of(number, rank); ++rank) {
    if (ranks_[rank].stage != Stage::kGone) set_gone(scene, rank);
  }
}

bool Attempt::is_of(std::uint32_t node, std::uint32_t rank) const {
  return rank < ranks_.size() && rank / launch_.local_ranks() == node;
}

bool Attempt::has_ranks(std::uint32_t node) const {
  for (std::uint32_t rank = first_of(node); is_of(node, rank); ++rank) {
    if (ranks_[rank].stage != Stage::kGone) return true;
  }
  return false;
}

// ---- Their silence ------------------------------------------------------------------------------

bool Attempt::hears_all() const {
  return std::ranges::none_of(
      nodes_, [](const Node& node) { return node.is_quiet || !node.disk_keeps_up; });
}

std::optional<AgentTime> Attempt::silence_limit(const SetupExperiment& experiment) {
  if (experiment.group_timeout == Duration::zero()) return std::nullopt;
  return std::max(AgentTime(experiment.group_timeout), kQuiet);
}

// When a node that says nothing is given up, in watched time.
std::optional<AgentTime> Attempt::limit_of(const AttemptConditions& on,
                                           std::uint32_t number) const {
  const Node& node = nodes_[number];
  if (is_terminating() && has_ranks(number)) return node.heard + kSilentEnd;
  if (!node.is_linked) return node.heard + kMeet;
  const std::optional<AgentTime> limit = silence_limit(on.experiment);
  return limit ? std::optional(node.heard + *limit) : std::nullopt;
}

std::optional<AgentTime> Attempt::node_deadline(const AttemptConditions& on) const {
  std::optional<AgentTime> soonest;
  for (std::uint32_t number = 1; number < nodes_.size(); ++number) {
    const Node& node = nodes_[number];
    if (!is_needed(on, number)) continue;
    std::optional<AgentTime> due = limit_of(on, number);
    if (node.is_linked && !node.is_quiet) {
      due = std::min(due.value_or(node.heard + kQuiet), node.heard + kQuiet);
    }
    if (due && (!soonest || *due < *soonest)) soonest = due;
  }
  return soonest ? std::optional(on.watch.next_look(*soonest)) : std::nullopt;
}

void Attempt::look_at_nodes(const AttemptScene& scene) {
  for (std::uint32_t number = 1; number < nodes_.size(); ++number) {
    Node& node = nodes_[number];
    if (!is_needed(scene, number)) continue;
    const AgentTime silence = scene.watched() - node.heard;
    if (node.is_linked && silence >= kQuiet) node.is_quiet = true;
    const std::optional<AgentTime> limit = limit_of(scene, number);
    if (!limit || scene.watched() < *limit) continue;
    if (node.is_linked) {
      lose_node(scene, number,
                {.text = fmt::format("it has said nothing for {:g} s", seconds(silence))});
      continue;
    }
    lose_node(scene, number,
              {.text = fmt::format("it did not link to the first node of its group, {}, at {} for "
                                   "{:g} s: any port there must be open to it",
                                   launch_.hosts[0], node.awaited_at, seconds(silence)),
               .unlinked = number});
  }
}

}  // namespace tune
