// The checkpoints of a group whose nodes do not all write into one folder: each node carries what
// its ranks have written, and when all parts are stored they are put together, at once.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/agent/attempt.h"

namespace tune {

// Whether parts are to be carried: some node writes where another does not see it, or none into the
// place where checkpoints are kept.
bool Attempt::gathers(const AttemptConditions& on) const {
  if (nodes_.size() == 1) return false;
  return on.experiment.objects.is_given() ||
         std::ranges::any_of(nodes_, [](const Node& node) { return node.owns_folder; });
}

// Of those that write into the experiment's folder the first one carries for all, if it is not kept
// there.
std::set<std::uint32_t> Attempt::carriers(const AttemptConditions& on) const {
  std::set<std::uint32_t> found;
  bool shared_is_carried = !on.experiment.objects.is_given();
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    const bool owns = nodes_[number].owns_folder;
    if (owns || !std::exchange(shared_is_carried, true)) found.insert(number);
  }
  return found;
}

std::vector<CheckpointPart> Attempt::parts(const AttemptConditions& on) const {
  std::vector<CheckpointPart> all;
  for (const std::uint32_t node : carriers(on)) all.push_back({node, launch_.hosts[node]});
  return all;
}

// ---- On its way ---------------------------------------------------------------------------------

// All ranks have written and flushed it.
void Attempt::gather(const AttemptScene& scene, CheckpointSaved saved) {
  CheckpointSaved on_node = saved;
  on_node.storing = CheckpointSaved::Storing::kOnNode;
  scene.actions.tell(scene.now, std::move(on_node));
  saves_.erase(saved.iteration);
  ++storing_;
  if (auto older = gathering_.add(saved)) give_up(scene, std::move(*older));
  gather_next(scene);
  tell_held(scene);
  give_place_back(scene);
}

void Attempt::gather_next(const AttemptScene& scene) {
  const std::set<std::uint32_t> nodes = carriers(scene);
  const auto is_lost = [&](std::uint32_t node) { return nodes_[node].is_lost; };
  if (std::ranges::any_of(nodes, is_lost)) return stop_gathering(scene, "a node of it is lost");
  const std::optional<CheckpointSaved> next = gathering_.begin_next(nodes);
  if (!next) return;
  const std::uint64_t key = attempt_key(launch_.trial, launch_.attempt);
  for (const std::uint32_t node : nodes) {
    if (node == 0) {
      scene.actions.add(StoreCheckpoint{*next, {.part = 0}});
    } else {
      scene.actions.add(TellNode{key, node, StorePart{*next}});
    }
  }
}

bool Attempt::hear(const AttemptScene& scene, std::uint32_t node, PartStored& stored) {
  part_is_stored(scene, node, stored.saved, stored.why_not);
  return true;
}

void Attempt::part_is_stored(const AttemptScene& scene, std::uint32_t node,
                             const CheckpointSaved& saved, const std::string& why_not) {
  if (!gathering_.awaits(node, saved) || !gathering_.take(node, why_not)) return;
  if (!gathering_.why_not().empty()) return end_gathering(scene, gathering_.why_not());
  const CheckpointSaved& whole = *gathering_.current();
  if (scene.node.relays) {
    scene.actions.add(StoreCheckpoint{whole, {.joins = parts(scene)}});
  } else {
    scene.actions.add(PromoteCheckpoint{whole, parts(scene)});
  }
}

// ---- There --------------------------------------------------------------------------------------

void Attempt::end_gathering(const AttemptScene& scene, const std::string& why_not) {
  CheckpointSaved saved = gathering_.end();
  not_stored_ = why_not;
  if (why_not.empty()) {
    --storing_;
    scene.actions.tell(scene.now, std::move(saved));
  } else {
    give_up(scene, std::move(saved));
  }
  gather_next(scene);
}

// The parts that the ranks of all nodes have written of it go.
void Attempt::give_up(const AttemptScene& scene, CheckpointSaved saved) {
  --storing_;
  const std::uint64_t key = attempt_key(launch_.trial, launch_.attempt);
  for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
    if (!nodes_[node].is_lost) scene.actions.add(TellNode{key, node, DropPart{saved}});
  }
  scene.actions.add(DropCheckpoint{saved});
  saved.storing = CheckpointSaved::Storing::kGivenUp;
  scene.actions.tell(scene.now, std::move(saved));
}

// A part will not come: nothing of it is waited for. What is being put together has all its parts,
// and may stand in its place by now, so that its outcome is awaited. To call it given up at once, as
// what is waited for may be, leaves a checkpoint behind that nobody knows of.
void Attempt::stop_gathering(const AttemptScene& scene, const std::string& why) {
  if (gathering_.is_empty()) return;
  not_stored_ = why;
  if (gathering_.current() && !gathering_.is_joining()) give_up(scene, gathering_.end());
  if (auto waiting = gathering_.take_waiting()) give_up(scene, std::move(*waiting));
}

// Whether this node's part is awaited, or will be.
bool Attempt::owes_part(const AttemptConditions& on, std::uint32_t node) const {
  const bool is_needed = gathering_.awaits(node) || gathering_.has_waiting() || !saves_.empty();
  return is_needed && gathers(on) && carriers(on).contains(node);
}

// True: with that node a checkpoint is lost.
bool Attempt::lose_part(const AttemptScene& scene, std::uint32_t node, const std::string& why) {
  if (!owes_part(scene, node)) return false;
  if (scene.node.relays) scene.actions.add(GiveUpCheckpoints{launch_.trial, launch_.attempt});
  stop_gathering(scene, why);
  return true;
}

}  // namespace tune
