#include "simulator/trial_promises.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/violation.h"
#include "tune/search/encoding.h"
#include "tune/search/proposal.h"

namespace tune::simulator {

void TrialPromises::after_turn(const Controller& controller, const Effects& effects) {
  const DeviceHealth::Names now_aside = controller.device_health().set_aside();
  world_.tally.set_aside += std::ranges::count_if(
      now_aside, [&](const std::string& place) { return !set_aside_.contains(place); });
  world_.tally.taken_back += std::ranges::count_if(
      set_aside_, [&](const std::string& place) { return !now_aside.contains(place); });
  set_aside_.insert(now_aside.begin(), now_aside.end());
  controller_ = &controller;
  const auto paused_before = paused_on_;
  journal_.replay({[](const Snapshot&) {}, [this](const Turn& turn) { follow(turn); }});
  if (kept_by_ != &controller) {  // the start of this driver was there when an older one looked
    keep_those_of(controller);
    kept_by_ = &controller;
  }
  away_.clear();
  for (const AgentNumber agent : controller.nodes().all()) {
    if (controller.nodes().is_away(agent)) away_.insert(agent);
  }
  for (const Trial& trial : controller.trials()) {
    const bool goes_on = !is_over(trial.status) && orders_.was_retried(trial.number);
    if (goes_on) trials_[trial.number].failures = 0;
  }
  orders_.after_turn(controller);
  note_samples();
  std::erase_if(paused_on_, [&](const auto& one) {  // one that its node's end has paused, say
    const bool is_new = !paused_before.contains(one.first);
    return is_new && controller.trials()[one.first.value].status != TrialStatus::kPaused;
  });
  for (const auto& [agent, command] : effects.commands) {
    if (const auto* stop = std::get_if<StopAttempt>(&command)) replacements_.told(*stop);
    if (const auto* launch = std::get_if<Launch>(&command)) {
      if (launch->node > 0) {  // the lead was launched before
        parts_[agent].insert(attempt_key(launch->trial, launch->attempt));
        continue;
      }
      replacements_.launched(*launch);
      starts_from_its_newest_checkpoint(*launch);
      goes_on_where_its_checkpoint_is(controller, agent, *launch);
      runs_what_was_proposed(*launch);
      starts_within_the_budget(*launch);
      if (!nodes_.contains(agent)) {  // lost by a later event of the same turn
        if (!out_.contains(agent)) give_up(agent, launch->trial, launch->attempt);
        continue;
      }
      open_[launch->trial] = {launch->attempt, agent,           launch->gpus, launch->until,
                              false,           launch->nodes(), false};
    } else if (const auto* go = std::get_if<Continue>(&command)) {
      if (Open* open = current(agent, go->trial, go->attempt)) open->until = go->until;
    }
  }
  no_more_trials_than_asked_for(controller);
  note_question(controller);
  for (const Trial& trial : controller.trials()) {
    fails_only_when_its_failures_are_used_up(trial);
    keeps_few_checkpoints(trial, controller);
    trials_[trial.number].is_in_error = trial.status == TrialStatus::kError;
  }
  replacements_.turn_is_over();
  none_waits_for_room_that_is_there(controller);
  only_where_trials_failed_none_go(controller);
  set_aside_ = now_aside;
}

// ---- Events of the journal ----------------------------------------------------------------------

void TrialPromises::follow(const Turn& turn) {
  budget_is_spent_ = time_budget_ > Duration{} && now_ >= time_budget_;
  now_ = turn.now;
  events_ = turn.events.size();
  replacements_.turn_begins();
  for (const Event& event : turn.events) {
    std::visit([this](const auto& one) { follow(one); }, event);
  }
}

void TrialPromises::follow(const DriverStarted& event) {
  orders_.driver_started(event.num_samples);
  time_budget_ = event.time_budget;
  max_failures_ = event.max_failures;
  max_concurrent_trials_ = event.max_concurrent_trials;
  world_.tally.answers_lost += due_answers_.size();
  due_answers_.clear();
  for (auto& [number, trial] : trials_) {
    if (trial.is_in_error && event.retry_errored) trial.failures = 0;
  }
  epoch_ = event.epoch;
  auto former = std::exchange(abandoned_, {});
  for (const auto& [agent, attempts] : former) {
    if (event.keeps_joined) abandoned_[AgentNumber{~0u}].insert(attempts.begin(), attempts.end());
  }
  keep_those_of(*controller_);
  kept_by_ = controller_;
}

// An attempt on a machine that is not waited for may run until it is heard.
void TrialPromises::keep_those_of(const Controller& controller) {
  const std::vector<AgentNumber> all = controller.nodes().all();
  expected_ = {all.begin(), all.end()};
  const auto is_gone = [&](AgentNumber agent) { return !expected_.contains(agent); };
  for (const auto& [trial, open] : open_) {
    if (is_gone(open.agent)) give_up(AgentNumber{~0u}, trial, open.attempt);
  }
  std::erase_if(open_, [&](const auto& open) { return is_gone(open.second.agent); });
  std::erase_if(nodes_, [&](const auto& node) { return is_gone(node.first); });
  std::erase_if(ready_, is_gone);
  std::erase_if(out_, is_gone);
  follow_unseen(controller);
}

// Decisions of the driver before, in a turn that it did not live to carry out.
void TrialPromises::follow_unseen(const Controller& controller) {
  std::erase_if(open_, [&](const auto& open) {
    const Trial& trial = controller.trials()[open.first.value];
    return !trial.placement || trial.attempt != open.second.attempt;
  });
  for (const TrialNumber number : controller.running()) {
    const Trial& trial = controller.trials()[number.value];
    if (trial.verdict == StopKind::kLeave) replacements_.told_unseen(number);
    if (const auto open = open_.find(number); open != open_.end()) {
      open->second.until = Verdicts::until(trial);  // a driver that stood still may have told it
    }
    if (open_.contains(number) || trial.placement->lead_has_ended) continue;
    const bool has_reported = trial.last && trial.last->attempt == trial.attempt;
    open_[number] = {
        trial.attempt, trial.placement->agent, trial.placement->gpus,        Verdicts::until(trial),
        has_reported,  trial.placement->nodes, trial.placement->lead_is_free};
  }
}

// A launch that never arrived is lost with its driver.
void TrialPromises::follow(AgentNumber agent, const AgentHello& hello) {
  if (hello.epoch != epoch_ || expected_.erase(agent) == 0) return;
  std::erase_if(open_, [&](const auto& open) {
    const auto is_it = [&](const LiveAttempt& live) {
      return live.trial == open.first && live.attempt == open.second.attempt;
    };
    return open.second.agent == agent && std::ranges::none_of(hello.live, is_it);
  });
}

// An answer is of the state in which its question was put: a replay would make the same one.
void TrialPromises::follow(const Proposed& proposed) {
  const auto due = due_answers_.extract(proposed.question);
  if (due.empty() || due.mapped() != proposed.answer.bytes) {
    violate("an answer is of the moment of its question",
            fmt::format("question {} {}", proposed.question,
                        due.empty() ? "was not open" : "has another one"));
  }
  ++world_.tally.answers;
  const Encoding encoding(search_space(world_.scenario));
  PackReader in(proposed.answer.bytes);
  std::vector<Proposal> proposals;
  in.array();
  decode(in, proposals);
  for (const Proposal& one : proposals) proposed_.push_back(pack(encoding.decode(one.point)));
}

void TrialPromises::note_samples() {
  const std::uint64_t suggestions = static_cast<std::uint64_t>(orders_.num_samples()) *
                                    static_cast<std::uint64_t>(world_.scenario.grid_cells);
  asked_for_ = suggestions + orders_.added();
  most_suggestions_ = std::max(most_suggestions_, suggestions);
}

void TrialPromises::note_question(const Controller& controller) {
  if (proposed_.size() + orders_.added() > controller.trials().size()) ++world_.tally.stocks;
  const std::optional<Asking::Question> open = controller.question();
  if (!open || due_answers_.contains(open->number)) return;
  due_answers_[open->number] = controller.searcher().question(open->count)();
}

void TrialPromises::follow(const AgentLost& event) {
  nodes_.erase(event.agent);
  ready_.erase(event.agent);
  for (const auto& [trial, open] : open_) {
    if (open.agent == event.agent) give_up(event.agent, trial, open.attempt);
  }
  std::erase_if(open_, [&](const auto& open) { return open.second.agent == event.agent; });
  // Of these the lead may have told the end before: the machine runs on until it hears of it.
  world_.given_up.merge(parts_[event.agent]);
  parts_.erase(event.agent);
}

// Its machine may run it on, and begin it even, until it hears that it was given up.
void TrialPromises::give_up(AgentNumber agent, TrialNumber trial, AttemptNumber attempt) {
  if (!world_.scenario.joined) return;
  abandoned_[agent].insert({trial, attempt});
  world_.given_up.insert(attempt_key(trial, attempt));
}

TrialPromises::Open* TrialPromises::current(AgentNumber agent, TrialNumber trial,
                                            AttemptNumber attempt) {
  const auto open = open_.find(trial);
  const bool is_open =
      open != open_.end() && open->second.attempt == attempt && open->second.agent == agent;
  return is_open ? &open->second : nullptr;
}

void TrialPromises::follow(const FromAgent& from) {
  if (const auto* hello = std::get_if<Apart<AgentHello>>(&from.event)) {
    if (nodes_.try_emplace(from.agent, resources_of(**hello)).second) {
      std::erase(joined_, from.agent);
      joined_.push_back(from.agent);
    }
    hostnames_[from.agent] = (*hello)->hostname;
    follow(from.agent, **hello);
  } else if (const auto* zygote = std::get_if<ZygoteReady>(&from.event)) {
    const bool may_start = nodes_.contains(from.agent) && !out_.contains(from.agent);
    if (zygote->error.empty() && may_start) ready_.insert(from.agent);
    carrying_.erase(from.agent);  // which an earlier agent of that number may have done
    if (zygote->relays) carrying_.insert(from.agent);
  } else if (const auto* out = std::get_if<NodeOut>(&from.event)) {
    out_.insert(from.agent);
    ready_.erase(from.agent);
    if (!out->gone) return;
    follow(AgentLost{from.agent, out->cause});
    abandoned_.erase(from.agent);
  } else if (const auto* report = std::get_if<Reported>(&from.event)) {
    Open* open = current(from.agent, report->trial, report->attempt);
    if (open != nullptr) replacements_.reported(*report), follow(*report, *open);
  } else if (const auto* saved = std::get_if<CheckpointSaved>(&from.event)) {
    if (current(from.agent, saved->trial, saved->attempt) == nullptr) return;
    if (saved->storing != CheckpointSaved::Storing::kStored) return;
    if (replacements_.is_leaving(saved->trial)) return;
    replacements_.saved(*saved);
    trials_[saved->trial].newest_checkpoint = saved->iteration;
  } else if (const auto* free = std::get_if<PlaceFree>(&from.event)) {
    const auto others = std::ranges::count_if(open_, [&](const auto& open) {
      return open.second.is_free && open.second.agent == from.agent;
    });
    Open* open = current(from.agent, free->trial, free->attempt);
    if (open != nullptr && others < Controller::kMostFree) open->is_free = true;
  } else if (const auto* ended = std::get_if<AttemptEnded>(&from.event)) {
    if (current(from.agent, ended->trial, ended->attempt) == nullptr) return;
    replacements_.ended(*ended);
    const bool is_kept = ended->outcome == Outcome::kPaused && carrying_.contains(from.agent) &&
                         open_.at(ended->trial).nodes == 1;
    if (is_kept) paused_on_[ended->trial] = from.agent;
    follow(*ended);
  }
}

// A milestone that a worker was told after its report only lets it go further.
void TrialPromises::follow(const Reported& report, Open& open) {
  open.has_reported = true;
  trials_[report.trial].may_be_tried_elsewhere = false;
  const auto iteration = static_cast<double>(report.iteration);
  if (open.until.attribute != "training_iteration" || iteration < open.until.value) return;
  if (report.waiting || report.final) return;
  violate("a worker waits at its milestone",
          fmt::format("trial {} goes on at {}, told to wait at {}", report.trial.value,
                      report.iteration, open.until.value));
}

// A trial that was to be paused and cannot save is lost by its own fault. A trial that failed at
// once at a bad place is tried elsewhere first, if there is such a place.
void TrialPromises::follow(const AttemptEnded& ended) {
  const Open& open = open_.at(ended.trial);
  Known& known = trials_[ended.trial];
  const bool may_have_paused =
      ended.outcome == Outcome::kLost && !world_.scenario.can_save && !ended.is_of_node;
  bool may_count = is_failure(ended.outcome) || may_have_paused;
  const bool is_on_one_node = open.nodes == 1;
  if (is_failure(ended.outcome) && !open.has_reported && is_on_one_node) {
    failed_at_.merge(places_of(open));
    if (is_bad(open)) ++world_.tally.failed_at_bad_place;
    const bool is_free =
        is_bad(open) && !known.may_be_tried_elsewhere && there_is_another_place(open);
    may_count = !is_free;
    known.may_be_tried_elsewhere = !known.may_be_tried_elsewhere;
  }
  if (may_count) ++known.failures;
  open_.erase(ended.trial);
}

// ---- Places

namespace {

std::string gpu_name(const NodeResources& node, std::size_t gpu, const std::string& hostname) {
  return fmt::format("GPU {} of {}", node.gpus.at(gpu).device, hostname);
}

}  // namespace

std::set<std::string> TrialPromises::places_of(const Open& open) const {
  const std::string& hostname = hostnames_.at(open.agent);
  if (open.gpus.empty()) return {hostname};
  std::set<std::string> places;
  for (const std::uint32_t gpu : open.gpus) {
    places.insert(gpu_name(nodes_.at(open.agent), gpu, hostname));
  }
  return places;
}

bool TrialPromises::is_bad(const Open& open) const {
  const std::optional<BadPlace>& bad = world_.scenario.bad_place;
  if (!bad || hostnames_.at(open.agent) != fmt::format("node{}", bad->node)) return false;
  return !bad->gpu || std::ranges::find(open.gpus, *bad->gpu) != open.gpus.end();
}

bool TrialPromises::there_is_another_place(const Open& open) const {
  std::set<std::string> others = places_of(open);
  others.insert(set_aside_.begin(), set_aside_.end());
  return std::ranges::any_of(empty_rooms(others),
                             [&](const auto& room) { return fits(room.second); });
}

// ---- The promises -------------------------------------------------------------------------------

void TrialPromises::starts_from_its_newest_checkpoint(const Launch& launch) const {
  if (launch.origin) return;  // of the replacements' promises
  const auto known = trials_.find(launch.trial);
  const std::uint64_t newest = known == trials_.end() ? 0 : known->second.newest_checkpoint;
  if (launch.restore_iteration == newest) return;
  violate("a trial starts again at its newest recorded checkpoint",
          fmt::format("attempt {} of trial {} begins at {}, the newest recorded one is {}",
                      launch.attempt.value, launch.trial.value, launch.restore_iteration, newest));
}

// Only a turn of one event tells the room that there was when it was placed.
void TrialPromises::goes_on_where_its_checkpoint_is(const Controller& controller, AgentNumber agent,
                                                    const Launch& launch) {
  const auto home = paused_on_.extract(launch.trial);
  if (home.empty() || launch.nodes() > 1 || events_ != 1) return;
  if (home.mapped() == agent) return void(++world_.tally.at_home);
  const std::map<AgentNumber, Room> left = room(controller.device_health().closed());
  const auto there = left.find(home.mapped());
  if (there == left.end() || !fits(there->second)) return;
  violate("a paused trial goes on where its checkpoint was kept",
          fmt::format("trial {} is launched on node number {}, and {} has room", launch.trial.value,
                      agent.value, home.mapped().value));
}

// In order, each once, none left out. When a configuration may change after the first launch, the
// replacements' promises hold it.
void TrialPromises::runs_what_was_proposed(const Launch& launch) const {
  const bool is_replaced = world_.scenario.judge == Judge::kPbt && launch.attempt.value > 1;
  if (!world_.scenario.asks || is_replaced) return;
  const std::optional<std::size_t> suggested = orders_.suggestion(launch.trial);
  if (!suggested) return;
  const std::size_t number = *suggested;
  if (number < proposed_.size() && proposed_[number] == launch.config) return;
  violate("what was proposed is what runs",
          fmt::format("trial {} has another configuration than proposal {} of {}", number, number,
                      proposed_.size()));
}

// In the turn in which the budget is found to be spent, room may be given away a last time.
void TrialPromises::starts_within_the_budget(const Launch& launch) const {
  if (!budget_is_spent_) return;
  violate("nothing starts after the time budget",
          fmt::format("trial {} is launched at {:g} s of {:g}", launch.trial.value, seconds(now_),
                      seconds(time_budget_)));
}

void TrialPromises::no_more_trials_than_asked_for(const Controller& controller) const {
  const std::uint64_t most = most_suggestions_ + orders_.added();
  if (controller.trials().size() <= most) return;
  violate("there are as many trials as asked for",
          fmt::format("{} of {}", controller.trials().size(), most));
}

void TrialPromises::fails_only_when_its_failures_are_used_up(const Trial& trial) const {
  const auto known = trials_.find(trial.number);
  const std::uint64_t failures = known == trials_.end() ? 0 : known->second.failures;
  const bool is_error = trial.status == TrialStatus::kError;
  if (trial.failures <= failures && (!is_error || failures > max_failures_)) return;
  violate("a trial is in error only when max_failures is used up",
          fmt::format("trial {} is {} with {} failures counted, {} happened and {} are allowed",
                      trial.number.value, status_name(trial.status), trial.failures, failures,
                      max_failures_));
}

// Beside those that others would restart from, and the one of another trial.
void TrialPromises::keeps_few_checkpoints(const Trial& trial, const Controller& controller) const {
  const std::size_t keep = std::max<std::size_t>(1, world_.scenario.checkpoint.keep);
  if (trial.checkpoints.size() <= keep + 1) return;
  std::set<CheckpointOrigin> needed;
  for (const Trial& other : controller.trials()) {
    if (other.checkpoints.empty()) continue;
    const std::optional<CheckpointOrigin>& origin = other.checkpoints.back().origin;
    if (origin && (origin->trial == trial.number || other.number == trial.number)) {
      needed.insert(*origin);
    }
  }
  if (trial.checkpoints.size() <= keep + 1 + needed.size()) return;
  violate("surplus checkpoints go",
          fmt::format("trial {} has {} of them recorded, {} are to stay", trial.number.value,
                      trial.checkpoints.size(), keep));
}

void TrialPromises::none_waits_for_room_that_is_there(const Controller& controller) const {
  if (controller.phase() != Phase::kRunning) return;
  const std::size_t running = std::max(open_.size(), controller.running().size());
  if (max_concurrent_trials_ > 0 && running >= max_concurrent_trials_) return;
  const auto& trials = controller.trials();
  const DeviceHealth& health = controller.device_health();
  std::uint64_t may_begin = asked_for_;
  if (world_.scenario.asks) {
    may_begin = std::min<std::uint64_t>(may_begin, proposed_.size() + orders_.added());
  }
  const bool some_wait =
      trials.size() < may_begin || std::ranges::any_of(trials, [&](const Trial& trial) {
        return trial.status == TrialStatus::kPending &&
               !health.second_tries().contains(trial.number);
      });
  const bool some_are_asked_for = trials.size() < asked_for_ && controller.question();
  if (!some_wait && (trials.size() >= asked_for_ || some_are_asked_for)) return;
  for (const auto& [agent, left] : room(health.closed())) {
    if (!fits(left)) continue;
    violate("a trial that fits is not left waiting",
            fmt::format("node number {} has {} CPU units free", agent.value, left.cpu_units));
  }
  none_waits_for_whole_nodes(controller);
}

// A group that no node has room for alone gets the smaller ones that nothing runs on.
void TrialPromises::none_waits_for_whole_nodes(const Controller& controller) const {
  if (world_.scenario.nodes_of_group == 0) return;
  std::set<AgentNumber> taken;
  for (const TrialNumber number : controller.running()) {
    const Placement& placement = *controller.trials()[number.value].placement;
    if (!placement.lead_has_ended && !placement.lead_is_free) taken.insert(placement.agent);
    for (const PlacementPart& part : placement.others) {
      if (!part.is_free) taken.insert(part.agent);
    }
  }
  int whole = 0;
  for (const auto& [agent, room] : empty_rooms(controller.device_health().closed())) {
    const bool is_whole =
        std::ranges::all_of(room.gpu_units, [](std::int64_t units) { return units == kUnit; });
    if (is_whole && !taken.contains(agent)) ++whole;
  }
  if (whole < world_.scenario.nodes_of_group) return;
  violate("a trial that fits is not left waiting",
          fmt::format("{} whole nodes hold a group of {}", whole, world_.scenario.nodes_of_group));
}

void TrialPromises::only_where_trials_failed_none_go(const Controller& controller) const {
  for (const std::string& place : controller.device_health().closed()) {
    if (failed_at_.contains(place)) continue;
    violate("only a place where trials fail at once gets none", place);
  }
}

// An agent that was on the same node before it is not known to be gone.
bool TrialPromises::waits_for_its_gpus(AgentNumber agent) const {
  if (!world_.scenario.joined || nodes_.at(agent).gpus.empty()) return false;
  const auto itself = std::ranges::find(joined_, agent);
  return std::any_of(joined_.begin(), itself, [&](AgentNumber other) {
    return nodes_.contains(other) && hostnames_.at(other) == hostnames_.at(agent);
  });
}

std::map<AgentNumber, TrialPromises::Room> TrialPromises::empty_rooms(
    const std::set<std::string>& without) const {
  std::map<AgentNumber, Room> rooms;
  for (const AgentNumber agent : ready_) {
    const NodeResources& node = nodes_.at(agent);
    const std::string& hostname = hostnames_.at(agent);
    const bool takes_none = away_.contains(agent) || waits_for_its_gpus(agent);
    if (without.contains(hostname) || takes_none) continue;
    Room& room = rooms[agent];
    room = {node.cpu_units, node.memory_bytes, {}};
    for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
      room.gpu_units.push_back(without.contains(gpu_name(node, gpu, hostname)) ? 0 : kUnit);
    }
  }
  return rooms;
}

std::map<AgentNumber, TrialPromises::Room> TrialPromises::room(
    const std::set<std::string>& without) const {
  const ResourceRequest& request = world_.scenario.request;
  std::map<AgentNumber, Room> rooms = empty_rooms(without);
  const std::int64_t share = std::min<std::int64_t>(kUnit, request.gpu_units / request.ranks);
  for (const auto& [trial, open] : open_) {
    const auto room = rooms.find(open.agent);
    if (room == rooms.end() || open.is_free) continue;
    room->second.cpu_units -= request.cpu_units;
    room->second.memory_bytes -= request.memory_bytes;
    for (const std::uint32_t gpu : open.gpus) room->second.gpu_units.at(gpu) -= share;
  }
  return rooms;
}

bool TrialPromises::fits(const Room& room) const {
  const ResourceRequest& request = world_.scenario.request;
  if (room.cpu_units < request.cpu_units || room.memory_bytes < request.memory_bytes) return false;
  const std::int64_t each = request.gpu_units / request.ranks;
  if (each == 0) return true;
  std::int64_t shares = 0;  // of a GPU, or whole ones
  for (const std::int64_t free : room.gpu_units) shares += free / std::min(each, kUnit);
  return shares >= request.ranks * std::max<std::int64_t>(1, each / kUnit);
}

// ---- At the end ---------------------------------------------------------------------------------

namespace {

std::string names_of(const std::set<CheckpointId>& checkpoints) {
  std::vector<std::string> names;
  for (const auto& [iteration, attempt] : checkpoints) {
    names.push_back(checkpoint_name(iteration, attempt));
  }
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

void TrialPromises::at_the_end(const Controller& controller) const {
  const Scenario& scenario = world_.scenario;
  if (!scenario.may_be_cut_short() && controller.trials().size() < asked_for_) {
    violate("there are as many trials as asked for",
            fmt::format("{} of {}", controller.trials().size(), asked_for_));
  }
  for (const Trial& trial : controller.trials()) {
    std::set<CheckpointId> recorded;
    for (const CheckpointRecord& one : trial.checkpoints) {
      if (!one.origin) recorded.insert({one.iteration, one.attempt});
    }
    std::set<CheckpointId> on_disk = world_.disk.checkpoints_of(trial.number);
    // A lost machine's later checkpoint stays until the machine says that it is gone.
    std::erase_if(on_disk, [&](const CheckpointId& one) {
      return !recorded.contains(one) && std::ranges::any_of(abandoned_, [&](const auto& attempts) {
        return attempts.second.contains({trial.number, one.attempt});
      });
    });
    if (on_disk == recorded) continue;
    violate("surplus checkpoints go",
            fmt::format("trial {} leaves {}, recorded are {}", trial.number.value,
                        names_of(on_disk), names_of(recorded)));
  }
}

}  // namespace tune::simulator
