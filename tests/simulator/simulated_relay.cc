// A node that does not see the experiment's folder: its checkpoints have a way to go. By a relay,
// which follows core/agent/relay_client.h without its messages; or to an object store, by the real
// core/agent/object_carrier.h.
#include <algorithm>

#include <fmt/format.h>

#include "simulator/simulated_agent.h"
#include "simulator/violation.h"

namespace tune::simulator {

using std::chrono::milliseconds;

namespace {

constexpr Time kCarries = milliseconds(30);  // about
constexpr Time kAsks = milliseconds(5);      // of an object store

bool is_same_attempt(const CheckpointSaved& one, const CheckpointSaved& other) {
  return one.trial == other.trial && one.attempt == other.attempt;
}

}  // namespace

// ---- Checkpoints in an object store, by the real carrier ----------------------------------------

void SimulatedAgent::carry_objects() {
  const ObjectCarrier& carrier = objects_.carrier();
  if (carrier.is_idle()) {  // an order may have been refused at once
    world_.queue.after(world_.about(kAsks), life_,
                       [this] { take_part([this] { take_outcomes(); }); });
    return;
  }
  if (std::exchange(carries_, true)) return;
  const Time pause = carrier.next_look(now()) - now();
  world_.queue.after(std::max(pause, world_.about(kAsks)), life_, [this] {
    take_part([this] {
      carries_ = false;
      objects_.carrier().on_time(now());
      take_outcomes();
      if (!objects_.carrier().is_idle()) carry_objects();
    });
  });
}

// The thread that carries hears of it beside the loop.
void SimulatedAgent::give_up_objects(std::function<void(ObjectCarrier&)> order) {
  world_.queue.after(world_.about(kAsks), life_, [this, order = std::move(order)] {
    take_part([this, order] {
      order(objects_.carrier());
      take_outcomes();
    });
  });
}

void SimulatedAgent::take_outcomes() {
  for (const RelayOutcome& outcome : objects_.carrier().take_outcomes()) {
    if (const auto* stored = std::get_if<RelayStored>(&outcome)) {
      const bool is_stored = stored->error.empty() && !stored->is_newer;
      machine_.on_stored(now(), stored->saved, is_stored, stored->error, stored->is_of_trial);
    } else if (const auto* fetched = std::get_if<RelayFetched>(&outcome)) {
      const std::uint64_t attempt = attempt_key(fetched->trial, fetched->attempt);
      const bool is_missing = !fetched->error.empty() && fetched->error != kNoDriver &&
                              fetched->error != "its attempt has ended" && !fetched->is_of_agent;
      if (is_missing && !world_.given_up.contains(attempt)) {
        violate("a restored attempt finds its checkpoint", fetched->error);
      }
      if (fetched->error.empty()) has_what_is_stored(wanted_.at(attempt));
      machine_.on_fetched(now(), fetched->trial, fetched->attempt, fetched->error,
                          fetched->is_of_agent);
    }
  }
  perform();
}

// Also where the node had kept one, and nothing was carried.
void SimulatedAgent::has_what_is_stored(const FetchCheckpoint& wanted) const {
  const CheckpointOrigin& from = wanted.checkpoint;
  const std::uint64_t attempt = attempt_key(wanted.trial, wanted.attempt);
  const auto* stored = world_.disk.find(from.trial, {from.iteration, from.attempt});
  if (stored == nullptr || *stored == *world_.disk.fetched(attempt, wanted.node)) return;
  violate("an attempt begins with the checkpoint that is stored",
          fmt::format("attempt {} of trial {} has another state than {} of trial {}",
                      wanted.attempt.value, wanted.trial.value,
                      checkpoint_name(from.iteration, from.attempt), from.trial.value));
}

// ---- The machine's actions ----------------------------------------------------------------------

void SimulatedAgent::act(StoreCheckpoint& action) {
  if (world_.scenario.objects) {
    objects_.carrier().store(action.saved, action.share);
    return carry_objects();
  }
  const auto first = stores_.begin() + (carries_ ? 1 : 0);
  const auto older = std::find_if(first, stores_.end(), [&](const StoreCheckpoint& one) {
    return is_same_attempt(one.saved, action.saved);
  });
  if (older == stores_.end()) {
    stores_.push_back(action);
  } else {
    const StoreCheckpoint replaced = std::exchange(*older, action);
    machine_.on_stored(now(), replaced.saved, false, {});
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
  const auto [saved, share] = stores_.front();
  stores_.pop_front();
  if (world_.chance(world_.scenario.rates.promotion_fails)) {
    return machine_.on_stored(now(), saved, false, "no space left on the driver's device");
  }
  const Where own = where();
  const bool is_stored = share.part            ? world_.disk.take_part(own, saved, *share.part)
                         : share.joins.empty() ? world_.disk.promote(own, saved)
                                               : world_.disk.join(saved, share.joins);
  if (!share.part) ++world_.tally.relayed;
  if (!share.joins.empty()) ++world_.tally.joined_parts;
  machine_.on_stored(now(), saved, is_stored, is_stored ? "" : "its folder is gone");
}

// Not when its attempt has ended meanwhile: the trial may have gone on elsewhere, past it.
bool SimulatedAgent::still_wants(const FetchCheckpoint& action) const {
  return std::ranges::any_of(machine_.live(), [&](const LiveAttempt& one) {
    return one.trial == action.trial && one.attempt == action.attempt;
  });
}

void SimulatedAgent::act(FetchCheckpoint& action) {
  if (world_.scenario.objects) {
    wanted_[attempt_key(action.trial, action.attempt)] = action;
    objects_.carrier().fetch(action.trial, action.attempt, action.checkpoint, action.node);
    return carry_objects();
  }
  world_.queue.after(world_.about(kCarries), life_, [this, action] {
    take_part([this, action] {
      const std::uint64_t attempt = attempt_key(action.trial, action.attempt);
      std::string error;
      if (!world_.disk.fetch(attempt, action.node, action.checkpoint)) {
        const CheckpointOrigin& wanted = action.checkpoint;
        error = fmt::format("{} of trial {} is not there",
                            checkpoint_name(wanted.iteration, wanted.attempt), wanted.trial.value);
        if (still_wants(action) && !world_.given_up.contains(attempt)) {
          violate("a restored attempt finds its checkpoint", error);
        }
      }
      machine_.on_fetched(now(), action.trial, action.attempt, error, false);
      perform();
    });
  });
}

void SimulatedAgent::act(GiveUpCheckpoints& action) {
  if (world_.scenario.objects) {
    return give_up_objects([action](ObjectCarrier& carrier) {
      carrier.give_up(action.trial, action.attempt);
    });
  }
  std::deque<StoreCheckpoint> kept, dropped;
  for (const StoreCheckpoint& one : stores_) {
    const bool goes = one.saved.trial == action.trial && one.saved.attempt == action.attempt;
    (goes ? dropped : kept).push_back(one);
  }
  stores_ = std::move(kept);
  for (const StoreCheckpoint& one : dropped) {
    machine_.on_stored(now(), one.saved, false, "its attempt has ended");
  }
}

void SimulatedAgent::act(GiveUpRelay&) {
  if (world_.scenario.objects) {
    return give_up_objects([](ObjectCarrier& carrier) { carrier.give_up_all(); });
  }
  for (const StoreCheckpoint& one : std::exchange(stores_, {})) {
    machine_.on_stored(now(), one.saved, false, "no driver takes it");
  }
}

}  // namespace tune::simulator
