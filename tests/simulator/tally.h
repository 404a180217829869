// Counts of everything a run met: they show that it was not idle.
#pragma once

#include <cstdint>

namespace tune::simulator {

struct Tally {
  std::uint64_t turns = 0;
  std::uint64_t launches = 0;
  std::uint64_t results = 0;
  std::uint64_t stale_events = 0;
  std::uint64_t groups_over_nodes = 0;
  std::uint64_t nodes_of_groups_lost = 0;
  std::uint64_t links_held_up = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t relayed = 0;
  std::uint64_t places_free = 0;
  std::uint64_t kept = 0;
  std::uint64_t at_home = 0;
  std::uint64_t joined_parts = 0;
  std::uint64_t outages = 0;  // of the object store
  std::uint64_t removals = 0;
  std::uint64_t failures = 0;
  std::uint64_t agents_lost = 0;
  std::uint64_t snapshots = 0;
  std::uint64_t answers = 0;
  std::uint64_t answers_lost = 0;
  std::uint64_t stocks = 0;
  std::uint64_t drivers = 0;
  std::uint64_t resumed_from_snapshot = 0;
  std::uint64_t drivers_superseded = 0;
  std::uint64_t late_writes = 0;
  std::uint64_t wishes = 0;
  std::uint64_t held = 0;
  std::uint64_t comebacks = 0;
  std::uint64_t overtaken = 0;
  std::uint64_t stalled_within_turn = 0;
  std::uint64_t late_frames = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t full_of_memory = 0;
  std::uint64_t loads_failed = 0;
  std::uint64_t loads_failed_again = 0;
  std::uint64_t endless_loads = 0;
  std::uint64_t hung_zygotes = 0;
  std::uint64_t nodes_out = 0;
  std::uint64_t agents_told_to_end = 0;
  std::uint64_t silent_agents = 0;
  std::uint64_t nonsense = 0;
  std::uint64_t worked_alone = 0;
  std::uint64_t slow_saves = 0;
  std::uint64_t hung_alone = 0;
  std::uint64_t full_agents = 0;
  std::uint64_t full_files = 0;
  std::uint64_t failed_at_bad_place = 0;
  std::uint64_t set_aside = 0;
  std::uint64_t taken_back = 0;
  std::uint64_t slow_calls = 0;
  std::uint64_t appends_lost = 0;
  std::uint64_t trims_lost = 0;
  std::uint64_t reads_lost = 0;
  std::uint64_t went_back = 0;
  std::uint64_t lost_entries = 0;
  std::uint64_t snapshot_parts = 0;
  std::uint64_t silences = 0;
  std::uint64_t silences_while_lacking = 0;
  std::uint64_t silent_looks = 0;
  std::uint64_t appends_found = 0;
  std::uint64_t appends_made_again = 0;
  std::uint64_t store_answered_again = 0;
  std::uint64_t store_given_up = 0;
  std::uint64_t replacements = 0;
  std::uint64_t restarts_from_origin = 0;
  std::uint64_t drained = 0;
  std::uint64_t cut_off = 0;
  std::uint64_t dismissed = 0;
  std::uint64_t expected = 0;
  std::uint64_t own_kept = 0;
  std::uint64_t returned = 0;
  std::uint64_t went_on = 0;
  std::uint64_t never_begun = 0;
  std::uint64_t said_again = 0;
  std::uint64_t found_over = 0;

  inline void add(const Tally& other);
};

struct Tallied {
  const char* what;
  std::uint64_t Tally::*count;
};
inline constexpr Tallied kTallied[] = {
    {"turns of a driver", &Tally::turns},
    {"launches", &Tally::launches},
    {"results", &Tally::results},
    {"messages of old attempts", &Tally::stale_events},
    {"checkpoints", &Tally::checkpoints},
    {"checkpoints relayed", &Tally::relayed},
    {"places given back before the last checkpoint was stored", &Tally::places_free},
    {"attempts that began with a checkpoint that their node had kept", &Tally::kept},
    {"paused trials that went on where theirs may be kept", &Tally::at_home},
    {"checkpoints put together of parts", &Tally::joined_parts},
    {"object store away", &Tally::outages},
    {"checkpoints removed", &Tally::removals},
    {"failed attempts", &Tally::failures},
    {"agents lost", &Tally::agents_lost},
    {"snapshots stored", &Tally::snapshots},
    {"answers of a searcher that takes time", &Tally::answers},
    {"questions whose driver ended before the answer", &Tally::answers_lost},
    {"turns after which proposals are in stock", &Tally::stocks},
    {"drivers", &Tally::drivers},
    {"drivers that began from a snapshot", &Tally::resumed_from_snapshot},
    {"drivers superseded", &Tally::drivers_superseded},
    {"writes of drivers that were gone", &Tally::late_writes},
    {"trials that a user told to stop or pause", &Tally::wishes},
    {"trials that were kept back by a user", &Tally::held},
    {"times that a sweep waited for its user", &Tally::comebacks},
    {"drivers overtaken between replay and epoch", &Tally::overtaken},
    {"drivers stalled within a turn", &Tally::stalled_within_turn},
    {"frames of stalled drivers to agents of another", &Tally::late_frames},
    {"trials ended by max_trial_time", &Tally::timed_out},
    {"events while memory alone keeps a node from a launch", &Tally::full_of_memory},
    {"zygotes that could not load, of a node that just began", &Tally::loads_failed},
    {"zygotes that could not load when started again", &Tally::loads_failed_again},
    {"zygotes that loaded without end", &Tally::endless_loads},
    {"zygotes ended because they hung", &Tally::hung_zygotes},
    {"nodes that started no more trials", &Tally::nodes_out},
    {"agents told to end by a signal", &Tally::agents_told_to_end},
    {"agents silent from their start", &Tally::silent_agents},
    {"workers that sent nonsense", &Tally::nonsense},
    {"ranks of a group that worked alone for long", &Tally::worked_alone},
    {"saves that took long", &Tally::slow_saves},
    {"ranks of a group that hung alone", &Tally::hung_alone},
    {"agents that read no workers as their disk was slow", &Tally::full_agents},
    {"times that a driver's files had no room", &Tally::full_files},
    {"attempts that failed at a bad place", &Tally::failed_at_bad_place},
    {"places set aside", &Tally::set_aside},
    {"places taken back", &Tally::taken_back},
    {"slow calls of the store", &Tally::slow_calls},
    {"appends in which the store was lost", &Tally::appends_lost},
    {"trims in which the store was lost", &Tally::trims_lost},
    {"reads in which the store was lost", &Tally::reads_lost},
    {"reconnects to a store that lacks the last writes", &Tally::went_back},
    {"of those to one that lacks entries", &Tally::lost_entries},
    {"parts of snapshots", &Tally::snapshot_parts},
    {"times that the store fell silent", &Tally::silences},
    {"of those while it lacked entries", &Tally::silences_while_lacking},
    {"looks after a reconnect that fell silent", &Tally::silent_looks},
    {"appends made again that had got there", &Tally::appends_found},
    {"appends made again that had not", &Tally::appends_made_again},
    {"times that a silent store answered again", &Tally::store_answered_again},
    {"times that a silent store was given up", &Tally::store_given_up},
    {"trials told to go on from another one's checkpoint", &Tally::replacements},
    {"restarts from another trial's checkpoint once more", &Tally::restarts_from_origin},
    {"groups launched over several nodes", &Tally::groups_over_nodes},
    {"nodes that such a group lost", &Tally::nodes_of_groups_lost},
    {"links of such groups that carried nothing for a while", &Tally::links_held_up},
    {"nodes told to leave", &Tally::drained},
    {"agents cut off from their driver", &Tally::cut_off},
    {"agents that were lost and heard again", &Tally::dismissed},
    {"agents that a later driver waited for", &Tally::expected},
    {"of these, drivers' own agents", &Tally::own_kept},
    {"of those that came back", &Tally::returned},
    {"attempts that went on under another driver", &Tally::went_on},
    {"launches that did not outlive their driver", &Tally::never_begun},
    {"verdicts of a driver that a later one told", &Tally::said_again},
    {"agents that found the experiment over", &Tally::found_over},
};

void Tally::add(const Tally& other) {
  for (const Tallied& one : kTallied) this->*one.count += other.*one.count;
}

}  // namespace tune::simulator
