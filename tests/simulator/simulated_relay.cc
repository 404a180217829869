// A node that does not see the experiment's folder: its checkpoints have a way to go. Follows
// core/agent/relay_client.h, without its messages.
#include <algorithm>

#include <fmt/format.h>

#include "simulator/simulated_agent.h"
#include "simulator/violation.h"

namespace tune::simulator {

using std::chrono::milliseconds;

namespace {

constexpr Time kCarries = milliseconds(30);  // about

bool is_same_attempt(const CheckpointSaved& one, const CheckpointSaved& other) {
  return one.trial == other.trial && one.attempt == other.attempt;
}

}  // namespace

void SimulatedAgent::act(StoreCheckpoint& action) {
  const auto first = stores_.begin() + (carries_ ? 1 : 0);
  const auto older = std::find_if(first, stores_.end(), [&](const CheckpointSaved& one) {
    return is_same_attempt(one, action.saved);
  });
  if (older == stores_.end()) {
    stores_.push_back(action.saved);
  } else {
    const CheckpointSaved replaced = std::exchange(*older, action.saved);
    machine_.on_stored(now(), replaced, false, {});
  }
  carry();
}

void SimulatedAgent::carry() {
  if (stores_.empty() || std::exchange(carries_, true)) return;
  world_.queue.after(world_.about(kCarries), life_, [this] {
    take_part([this] {
      carries_ = false;
      if (!stores_.empty()) carried();
      perform();
      carry();
    });
  });
}

void SimulatedAgent::carried() {
  const CheckpointSaved saved = stores_.front();
  stores_.pop_front();
  if (world_.chance(world_.scenario.rates.promotion_fails)) {
    return machine_.on_stored(now(), saved, false, "no space left on the driver's device");
  }
  ++world_.tally.relayed;
  const bool is_stored = world_.disk.promote(saved);
  machine_.on_stored(now(), saved, is_stored, is_stored ? "" : "its folder is gone");
}

void SimulatedAgent::act(FetchCheckpoint& action) {
  world_.queue.after(world_.about(kCarries), life_, [this, action] {
    take_part([this, action] {
      const std::uint64_t attempt = attempt_key(action.trial, action.attempt);
      std::string error;
      if (!world_.disk.fetch(attempt, action.checkpoint)) {
        const CheckpointOrigin& wanted = action.checkpoint;
        error = fmt::format("{} of trial {} is not there",
                            checkpoint_name(wanted.iteration, wanted.attempt), wanted.trial.value);
        if (!world_.given_up.contains(attempt)) {
          violate("a restored attempt finds its checkpoint", error);
        }
      }
      machine_.on_fetched(now(), action.trial, action.attempt, error, false);
      perform();
    });
  });
}

void SimulatedAgent::act(GiveUpCheckpoints& action) {
  std::deque<CheckpointSaved> kept, dropped;
  for (const CheckpointSaved& one : stores_) {
    const bool goes = one.trial == action.trial && one.attempt == action.attempt;
    (goes ? dropped : kept).push_back(one);
  }
  stores_ = std::move(kept);
  for (const CheckpointSaved& one : dropped) {
    machine_.on_stored(now(), one, false, "its attempt has ended");
  }
}

void SimulatedAgent::act(GiveUpRelay&) {
  for (const CheckpointSaved& one : std::exchange(stores_, {})) {
    machine_.on_stored(now(), one, false, "no driver takes it");
  }
}

}  // namespace tune::simulator
