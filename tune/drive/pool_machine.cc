#include "tune/drive/pool_machine.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <tuple>

#include <fmt/format.h>

#include "tune/spec/when.h"

namespace tune {

// ---- What the engine said -----------------------------------------------------------------------

void PoolMachine::on_started(Number number, const std::string& id) {
  local_[number].started = id;
  lists_soon_ = true;
}

void PoolMachine::on_not_started(Number number, const std::string& why) {
  local_[number].not_started = why;
  doubt();  // an answer may be lost, and the job be there
}

void PoolMachine::on_listed(std::vector<ListedAllocation> listed, Time asked_at,
                            std::set<std::string> silent_hosts, const std::string& why) {
  list_ = {asked_at, std::move(listed), std::move(silent_hosts)};
  if (!why.empty()) return on_not_listed(why);
  is_listing_ = false;
  if (failed_lists_ >= 3) actions_.emplace_back(PoolNotice{"the pool's engine answers again"});
  failed_lists_ = 0;
}

void PoolMachine::on_not_listed(const std::string& why) {
  is_listing_ = false;
  if (++failed_lists_ != 3) return;
  actions_.emplace_back(PoolNotice{fmt::format(
      "the pool's engine does not list all allocations ({}): nodes that are there go on", why)});
}

void PoolMachine::on_stopped(Number number, const std::string& why_not) {
  Local& local = local_[number];
  if (why_not.empty()) {
    local.is_stopped = true;
    return;
  }
  doubt();
  local.stop_is_asked = false;
  local.stop_failed_at = now_;
  if (!told_stops_.insert(number).second) return;
  actions_.emplace_back(PoolNotice{
      fmt::format("stopping allocation {} of the pool, tried again: {}", number, why_not)});
}

// ---- One look -----------------------------------------------------------------------------------

void PoolMachine::look(Time now, const PoolBook& book, const PoolScene& scene) {
  now_ = now;
  if (!begun_) {
    begun_ = now;
    first_ = book.next_number();
    lists_soon_ = first_ > 1;
  }
  std::erase_if(local_, [&](const auto& one) { return !book.open().contains(one.first); });
  take_list(book, scene);
  for (const auto& [number, one] : book.open()) look_at(number, one, book, scene);
  send_drained_away(book, scene);
  const Plan plan = plan_for(book, scene);
  send_useless_away(book, scene, plan);
  note_idle(scene, plan);
  give_back(book, scene, plan);
  cancel_queued(book, scene, plan);
  request(book, scene, plan);
  list_when_due(book);
}

void PoolMachine::doubt() {
  unsure_since_ = now_;
  sure_lists_ = 0;
}

// An allocation of ours that the journal does not know any more is nobody's, unless its agent is
// there all the same: the engine had said too early that it is gone. It is stopped until the engine
// has it no more: a stop may fail, or the engine's answer to it be lost.
void PoolMachine::stop_orphan(const ListedAllocation& one, const PoolScene& scene) {
  if (one.state == AllocationState::kEnded || one.number == 0) return;
  const bool has_node = std::ranges::any_of(
      scene.nodes, [&](const auto& node) { return node.allocation == one.number; });
  if (has_node) return;
  doubt();
  const auto [at, is_new] = orphans_.try_emplace(one.number, now_);
  if (!is_new && now_ - at->second < kParting) return;
  at->second = now_;
  actions_.emplace_back(StopAllocation{one.number, one.id, one.host});
}

void PoolMachine::take_list(const PoolBook& book, const PoolScene& scene) {
  if (!list_) return;
  const auto [asked_at, listed, silent_hosts] = *std::exchange(list_, std::nullopt);
  const bool is_sure = unsure_since_ && asked_at >= *unsure_since_ + kUnseen;
  if (is_sure && silent_hosts.empty() && ++sure_lists_ == kSureLists) unsure_since_.reset();
  std::set<Number> seen;
  for (const ListedAllocation& one : listed) {
    if (!book.open().contains(one.number)) {
      stop_orphan(one, scene);
      continue;
    }
    // Where each host is asked, it tells of its own: two names may be those of one machine.
    const std::string& host = book.open().at(one.number).host;
    if (!options_.hosts.empty() && !host.empty() && !one.host.empty() && one.host != host) continue;
    Local& local = local_[one.number];
    if (!seen.insert(one.number).second && one.state == AllocationState::kEnded) continue;
    local.listed = one;
    local.was_listed = true;
    local.missed = 0;
  }
  for (const auto& [number, one] : book.open()) {
    if (silent_hosts.contains(one.host)) continue;
    Local& local = local_[number];
    const bool is_known = one.state != AllocationState::kRequested && local.known_since <= asked_at;
    if (is_known && !seen.contains(number)) ++local.missed;
    const bool was_to_be_seen = asked_at - *begun_ >= kUnseen && number < first_;
    const bool never_was = one.state == AllocationState::kRequested && was_to_be_seen;
    if (never_was && !seen.contains(number)) local.not_started = "the engine never had it";
  }
}

void PoolMachine::look_at(Number number, const Allocation& one, const PoolBook& book,
                          const PoolScene& scene) {
  Local& local = local_[number];
  const bool may_start =
      one.state == AllocationState::kRequested && number >= first_ && !local.start_is_asked;
  if (may_start && book.is_excluded(one.host)) {  // since it was asked for
    local.is_drained = true;
    return end(number, one, AllocationFault::kNone, "its host has been taken out");
  }
  if (may_start) look_for_start(number, one, book, local);
  if (tell_news(number, one, local)) return;
  look_for_agent(number, one, local, scene);
}

void PoolMachine::look_for_start(Number number, const Allocation& one, const PoolBook& book,
                                 Local& local) {
  local.start_is_asked = true;
  actions_.emplace_back(StartAllocation{
      number, one.host, one.host.empty() ? book.excluded() : std::vector<std::string>()});
}

// True: it is at its end.
bool PoolMachine::tell_news(Number number, const Allocation& one, Local& local) {
  if (const auto id = std::exchange(local.started, std::nullopt)) {
    local.known_since = now_;
    if (one.state == AllocationState::kRequested) {
      change(number, one, {number, AllocationState::kStarted, *id, one.host, one.reason});
      return true;
    }
  }
  if (const auto why = std::exchange(local.not_started, std::nullopt)) {
    if (one.state != AllocationState::kRequested) return false;
    const bool is_ours = number >= first_;
    end(number, one, is_ours ? AllocationFault::kSubmission : AllocationFault::kNone, *why);
    return true;
  }
  if (const auto listed = std::exchange(local.listed, std::nullopt)) {
    local.host = listed->host;
    if (listed->state != AllocationState::kEnded) {
      change(number, one, *listed);
      if (listed->is_hopeless && !one.has_joined && !local.has_node && !local.stop_is_asked) {
        local.fault = AllocationFault::kStart;
        local.why = listed->reason;
        stop(number, one, local);
      }
    } else if (local.has_node) {
      local.missed = 2;
      local.why = listed->reason;
    } else {
      end(number, one, local.fault, listed->reason);
      return true;
    }
  }
  return false;
}

void PoolMachine::change(Number number, const Allocation& one, const ListedAllocation& news) {
  const auto before = std::tie(one.state, one.id, one.host, one.reason);
  const std::string& id = news.id.empty() ? one.id : news.id;
  const std::string& host = news.host.empty() ? one.host : news.host;
  if (before == std::tie(news.state, id, host, news.reason)) return;
  events_.emplace_back(AllocationChanged{number, news.state, id, host, news.reason});
}

// Of an allocation whose agents are there the connection tells, whatever the engine says.
void PoolMachine::look_for_agent(Number number, const Allocation& one, Local& local,
                                 const PoolScene& scene) {
  const bool is_gone = local.missed >= 2;
  local.has_node = false;
  for (const PoolScene::Node& node : scene.nodes) {
    if (node.allocation != number) continue;
    local.has_node = true;
    if (!is_gone || node.silence < kSilent || !told_gone_.insert(node.agent).second) continue;
    actions_.emplace_back(
        TakeForGone{node.agent, fmt::format("the engine says that its allocation has ended{}{}",
                                            local.why.empty() ? "" : ": ", local.why)});
  }
  if (local.has_node) return local.alone_since.reset();
  if (is_gone || local.is_stopped) {
    const std::string gone = is_gone ? "the engine lists it no more" : "it was stopped";
    return end(number, one, local.fault, local.why.empty() ? gone : local.why);
  }
  if (one.state == AllocationState::kRequested || local.stop_is_asked) return;
  if (one.has_joined) {
    if (!local.alone_since) local.alone_since = now_, lists_soon_ = true;
    const Time patience = one.has_left ? kParting : number < first_ ? kRejoin : kParting;
    const bool waits = now_ - *local.alone_since < patience;
    if (one.is_lost || !waits) stop(number, one, local);
  } else if (one.state == AllocationState::kRunning &&
             now_ - std::max(one.since, *begun_) > options_.join_within) {
    local.fault = AllocationFault::kStart;
    local.why = "no agent came within " + in_words(options_.join_within);
    stop(number, one, local);
  }
}

void PoolMachine::stop(Number number, const Allocation& one, Local& local) {
  if (local.stop_failed_at && now_ - *local.stop_failed_at < kStopAgain) return;
  if (std::exchange(local.stop_is_asked, true)) return;
  actions_.emplace_back(StopAllocation{number, one.id, one.host});
  lists_soon_ = true;
}

void PoolMachine::end(Number number, const Allocation& one, AllocationFault fault,
                      std::string why) {
  doubt();  // the engine may be wrong, and the job be there
  const Local& local = local_[number];
  const bool was_given_back = local.is_drained || local.stop_is_asked;
  // The driver before this one may not have lived to start it, or have been where its engine lists
  // other jobs; or a user has taken it back in between.
  const bool is_of_before =
      number < first_ && (one.state == AllocationState::kRequested || !local.was_listed);
  if (fault == AllocationFault::kNone && !one.took_part && !was_given_back && !is_of_before) {
    fault = AllocationFault::kStart;
  }
  const bool has_died = one.is_lost || (one.has_joined && !one.has_left && !was_given_back);
  std::string host = local.host.empty() ? one.host : local.host;
  if (!options_.leaves_hosts_out && fault == AllocationFault::kStart && !host.empty()) {
    // The next may go there again: all starts in vain count, wherever they were.
    why += " (on " + std::exchange(host, "") + ")";
  }
  if (fault == AllocationFault::kStart || has_died) {
    actions_.emplace_back(
        ShowLog{number,
                fmt::format("allocation {} of the pool has ended{}: {}", number,
                            one.took_part ? "" : " before its agent took part", why),
                one.host});
  } else if (fault == AllocationFault::kSubmission) {
    actions_.emplace_back(PoolNotice{fmt::format("the pool's engine gave no allocation: {}", why)});
  }
  events_.emplace_back(
      AllocationChanged{number, AllocationState::kEnded, one.id, host, why, fault});
}

// ---- How many -----------------------------------------------------------------------------------

// Nodes may be smaller than what was asked for. Of hosts the size is known when one has joined.
NodeShare PoolMachine::new_node(const PoolScene& scene) {
  for (const PoolScene::Node& node : scene.nodes) {
    if (node.allocation > 0 && node.share().nodes_each() > 0) seen_ = node.share();
  }
  const NodeShare asked{options_.places, options_.group};
  if (asked.nodes_each() == 0) return seen_.value_or(NodeShare{1, 0});
  return seen_ && seen_->nodes_each() > asked.nodes_each() ? *seen_ : asked;
}

PoolMachine::Plan PoolMachine::plan_for(const PoolBook& book, const PoolScene& scene) {
  Plan plan{PoolRoom(scene, told_to_leave_, new_node(scene)), coming(book)};
  std::uint64_t max = this->max(book);
  std::uint64_t left = max - std::min<std::uint64_t>(max, book.open().size());
  if (!options_.hosts.empty()) {
    std::set<std::string> taken;
    for (const auto& [number, one] : book.open()) taken.insert(one.host);
    const auto count = [&](const auto& is_so) {
      return static_cast<std::uint64_t>(std::ranges::count_if(options_.hosts, is_so));
    };
    max = std::min(max, count([&](const auto& host) { return !book.is_excluded(host); }));
    left = std::min(left, count([&](const auto& host) {
                      return !book.is_excluded(host) && !taken.contains(host);
                    }));
  }
  plan.most = max;
  plan.may_come = plan.coming;
  if (book.is_paused() || gave_up_) return plan;
  const auto stays = [&](const auto& node) {
    return !node.is_out && !told_to_leave_.contains(node.agent) &&
           book.open().contains(node.allocation);
  };
  const auto here = static_cast<std::uint64_t>(std::ranges::count_if(scene.nodes, stays));
  plan.may_ask = left;
  plan.may_come = std::max(plan.coming + left, max - std::min(max, here));
  return plan;
}

// A user wants the host for something else. Where the engine chooses hosts, none is known by name.
void PoolMachine::send_drained_away(const PoolBook& book, const PoolScene& scene) {
  for (const PoolScene::Node& node : scene.nodes) {
    const auto one = book.open().find(node.allocation);
    if (one == book.open().end() || !book.is_drained(one->second.host)) continue;
    if (node.is_out || !told_to_leave_.insert(node.agent).second) continue;
    local_[node.allocation].is_drained = true;
    actions_.emplace_back(DrainNode{node.agent, "a user drains its host"});
  }
}

// A node that no trial can use is a bad start.
void PoolMachine::send_useless_away(const PoolBook& book, const PoolScene& scene,
                                    const Plan& plan) {
  const auto others = static_cast<std::uint64_t>(
      std::ranges::count_if(scene.nodes, [](const auto& node) { return node.allocation == 0; }));
  const std::uint64_t all = std::max<std::uint64_t>(options_.max, plan.most) + others;
  for (const PoolScene::Node& node : scene.nodes) {
    if (node.allocation == 0 || node.is_out || told_to_leave_.contains(node.agent)) continue;
    const auto each = static_cast<std::uint64_t>(node.share().nodes_each());
    if (each > 0 && (each <= all || node.trials > 0)) continue;
    if (book.open().contains(node.allocation)) {
      local_[node.allocation].fault = AllocationFault::kStart;
    }
    told_to_leave_.insert(node.agent);
    actions_.emplace_back(DrainNode{
        node.agent, each == 0 ? "it can hold no trial of this sweep"
                              : fmt::format("a trial would need {} nodes like it, and the pool may "
                                            "have {}",
                                            each, plan.most)});
  }
}

// Since when nodes have not been needed, or wait for the rest of a group.
void PoolMachine::note_idle(const PoolScene& scene, const Plan& plan) {
  std::map<AgentNumber, Time> idle;
  for (const PoolScene::Node& node : scene.nodes) {
    if (node.allocation == 0 || node.is_out || told_to_leave_.contains(node.agent)) continue;
    const bool is_needed = scene.wanted > 0 && !plan.room.waiting().contains(node.agent);
    if (node.trials > 0 || is_needed) continue;
    const auto before = idle_since_.find(node.agent);
    idle.emplace(node.agent, before == idle_since_.end() ? now_ : before->second);
  }
  idle_since_ = std::move(idle);
}

// From the newest of them: nodes still came then.
std::optional<PoolMachine::Time> PoolMachine::parts_wait_since(const Plan& plan) const {
  std::optional<Time> newest;
  for (const auto& [agent, since] : idle_since_) {
    if (plan.room.waiting().contains(agent)) newest = std::max(newest.value_or(since), since);
  }
  return newest;
}

// Nodes that no trial needs leave, the newest first, and those that have waited for the rest of a
// group in vain.
void PoolMachine::give_back(const PoolBook& book, const PoolScene& scene, const Plan& plan) {
  if (scene.groups > groups_before_) part_wait_ = kPartWait * options_.idle;
  groups_before_ = scene.groups;
  if (scene.wanted > 0) tell_of_parts(book, scene, plan);
  const bool waits = plan.may_complete();
  const Time patience = scene.wanted > 0 && waits ? part_wait_ : options_.idle;
  const std::optional<Time> parts_since = parts_wait_since(plan);
  std::string cause = "no trial needed it for " + in_words(options_.idle);
  if (scene.wanted > 0) {
    cause = fmt::format("a trial needs {} nodes, and {}", plan.room.one().nodes_each(),
                        waits              ? "no other one came within " + in_words(part_wait_)
                        : book.is_paused() ? "the pool is paused"
                                           : fmt::format("the pool may have {}", plan.most));
  }
  std::size_t stay = book.open().size();
  for (const PoolScene::Node& node : scene.nodes) {
    stay -= node.is_out && book.open().contains(node.allocation);
  }
  bool was_in_vain = false;
  for (auto node = scene.nodes.rbegin(); node != scene.nodes.rend(); ++node) {
    const auto idle = idle_since_.find(node->agent);
    if (idle == idle_since_.end()) continue;
    const bool is_open = book.open().contains(node->allocation);
    const Time since = scene.wanted > 0 ? parts_since.value_or(now_) : idle->second;
    if (now_ - since < patience || (is_open && stay <= options_.min)) continue;
    if (is_open) {
      --stay;
      local_[node->allocation].is_drained = true;
    } else {
      doubt();
    }
    was_in_vain = scene.wanted > 0 && waits;
    told_to_leave_.insert(node->agent);
    actions_.emplace_back(DrainNode{node->agent, cause});
  }
  if (was_in_vain) part_wait_ = std::min(2 * part_wait_, std::max(kLongestPartWait, options_.idle));
}

// Once for all that wait at the same time.
void PoolMachine::tell_of_parts(const PoolBook& book, const PoolScene& scene, const Plan& plan) {
  const std::optional<Time> since = parts_wait_since(plan);
  if (!since) told_of_parts_ = false;
  if (!since || now_ - *since < options_.idle || !plan.may_complete()) return;
  if (std::exchange(told_of_parts_, true)) return;
  const WaitingGroups groups{.nodes = static_cast<std::uint64_t>(plan.room.one().nodes_each()),
                             .idle = plan.room.waiting().size()};
  actions_.emplace_back(PoolNotice{
      fmt::format("{}; nodes that wait for others are given back after {}",
                  why_trials_wait(book, scene.wanted, now_, groups), in_words(part_wait_))});
}

// A job in the queue is not needed when its trials have found room meanwhile, or when the rest of
// its group may not come any more. What is on its way when a pool is paused stays. A user who
// lowers the maximum wants fewer, whatever waits.
void PoolMachine::cancel_queued(const PoolBook& book, const PoolScene& scene, const Plan& plan) {
  std::uint64_t useless = book.open().size();
  if (scene.wanted > 0) {
    const bool all_are_needed = plan.room.one().nodes_each() <= 1 || book.is_paused();
    const std::uint64_t enough =
        all_are_needed ? plan.coming : plan.room.fewest(0, plan.may_come, Time::max().count());
    useless = plan.coming - std::min(plan.coming, enough);
  }
  std::uint64_t stay = staying(book, scene);
  for (const auto& [number, one] : book.open() | std::views::reverse) {
    if (stay <= max(book) && (useless == 0 || stay <= options_.min)) return;
    Local& local = local_[number];
    const bool waits = one.state == AllocationState::kQueued;
    if (!waits || one.has_joined || local.has_node || local.stop_is_asked) continue;
    local.is_drained = true;
    local.why = scene.wanted == 0 ? "no trial needs it"
                : useless > 0     ? "the rest of its group may not come"
                                  : fmt::format("the pool may have {}", max(book));
    stop(number, one, local);
    useless -= useless > 0;
    --stay;
  }
}

// Allocations that are not about to end.
std::uint64_t PoolMachine::staying(const PoolBook& book, const PoolScene& scene) const {
  std::set<Number> leaving;
  for (const PoolScene::Node& node : scene.nodes) {
    if (node.is_out || told_to_leave_.contains(node.agent)) leaving.insert(node.allocation);
  }
  for (const auto& [number, local] : local_) {
    if (local.stop_is_asked) leaving.insert(number);
  }
  return static_cast<std::uint64_t>(std::ranges::count_if(
      book.open(), [&](const auto& one) { return !leaving.contains(one.first); }));
}

std::uint64_t PoolMachine::coming(const PoolBook& book) const {
  std::uint64_t count = 0;
  for (const auto& [number, one] : book.open()) {
    const auto local = local_.find(number);
    const bool is_ending = local != local_.end() && local->second.stop_is_asked;
    const bool is_there = local != local_.end() && local->second.has_node;
    // Agents of an earlier driver join this one when they have ended what they ran.
    const bool comes_back = number < first_ && one.has_joined && !one.has_left && !one.is_lost &&
                            now_ - *begun_ < kRejoin;
    count += !is_ending && !is_there && (!one.has_joined || comes_back);
  }
  return count;
}

void PoolMachine::request(const PoolBook& book, const PoolScene& scene, const Plan& plan) {
  if (book.is_paused() || gave_up_ || stops_asking(book)) return;
  // The nodes of one trial wait in the queue together.
  const std::uint64_t backlog =
      std::max<std::uint64_t>(options_.backlog, plan.room.one().nodes_each());
  // So many are asked for at once, and refused for one reason.
  const std::uint64_t refusals = (book.bad_submissions() + backlog - 1) / backlog;
  if (const auto bad = std::max<std::uint64_t>(book.bad_starts(), refusals); bad > 0) {
    const auto doubled = std::min<std::uint64_t>(bad - 1, 10);
    const Time pause = std::min(kFirstBackOff * (1u << doubled), kLastBackOff);
    if (now_ < book.last_bad() + pause) return;
  }
  tell_of_too_few(scene, plan);
  const std::uint64_t need = scene.running + scene.wanted;
  const std::uint64_t all = plan.coming + plan.may_ask;
  std::uint64_t missing = plan.room.fewest(plan.coming, all, need) - plan.coming;
  const std::uint64_t open = book.open().size();
  missing = std::max<std::uint64_t>(missing, options_.min > open ? options_.min - open : 0);
  missing = std::min<std::uint64_t>(missing, plan.may_ask);
  std::uint64_t waiting = 0;
  std::set<std::string> taken;
  for (const auto& [number, one] : book.open()) {
    waiting += one.state < AllocationState::kRunning && !one.has_joined;
    taken.insert(one.host);
  }
  missing = std::min<std::uint64_t>(missing, backlog > waiting ? backlog - waiting : 0);
  for (std::uint64_t i = 0; i < missing; ++i) {
    const std::optional<std::string> host = free_host(book, taken);
    if (!host) return;
    taken.insert(*host);
    events_.emplace_back(
        AllocationChanged{book.next_number() + i, AllocationState::kRequested, "", *host, ""});
  }
}

// Once, until it is otherwise: nothing is asked for, and no error would ever tell why.
void PoolMachine::tell_of_too_few(const PoolScene& scene, const Plan& plan) {
  const NodeShare& one = plan.room.one();
  PoolScene others;  // that are not of the pool
  std::ranges::copy_if(scene.nodes, std::back_inserter(others.nodes),
                       [](const auto& node) { return node.allocation == 0; });
  const bool none_is_possible = scene.wanted > 0 && scene.running == 0 &&
                                plan.room.trials(plan.may_come) == 0 &&
                                PoolRoom(others, {}, one).trials(plan.most) == 0;
  if (!none_is_possible) told_of_too_few_ = false;
  if (!none_is_possible || std::exchange(told_of_too_few_, true)) return;
  actions_.emplace_back(
      PoolNotice{fmt::format("no trial can begin: each needs {} nodes of the pool's, which may "
                             "have {}; give it more (tune "
                             "pool DIR --max N, or more hosts), or let others join by hand",
                             one.nodes_each(), plan.most)});
}

// Nothing: all are taken. Where the engine chooses, the empty text is any host.
std::optional<std::string> PoolMachine::free_host(const PoolBook& book,
                                                  const std::set<std::string>& taken) const {
  if (options_.hosts.empty()) return std::string();
  for (const std::string& host : options_.hosts) {
    if (!taken.contains(host) && !book.is_excluded(host)) return host;
  }
  return std::nullopt;
}

// An engine that fails again and again is left alone until a user has mended it.
bool PoolMachine::stops_asking(const PoolBook& book) {
  std::erase_if(told_hosts_, [&](const auto& host) { return !book.is_excluded(host); });
  for (const std::string& host : book.excluded()) {
    if (!told_hosts_.insert(host).second || book.is_drained(host)) continue;
    actions_.emplace_back(
        PoolNotice{fmt::format("host {} gets no more agents: {} started there, and none came", host,
                               PoolBook::kSilentStarts)});
  }
  const bool no_host_is_left =
      !options_.hosts.empty() &&
      std::ranges::all_of(options_.hosts, [&](const auto& host) { return book.is_excluded(host); });
  const bool is_bad = book.bad_starts() >= kBadStarts ||
                      book.bad_submissions() >= kBadSubmissions || no_host_is_left;
  if (!is_bad) return false;
  std::string why = no_host_is_left
                        ? "no host is left where an agent could be started"
                        : fmt::format("{} starts in a row were in vain",
                                      std::max(book.bad_starts(), book.bad_submissions()));
  if (!book.why_bad().empty()) why += ", the last: " + book.why_bad();
  // Hosts that a user has drained come back by the user's word alone.
  const bool awaits_user =
      std::ranges::any_of(options_.hosts, [&](const auto& host) { return book.is_drained(host); });
  const bool may_go_on = book.ever_took_part() || (no_host_is_left && awaits_user);
  if (!may_go_on && book.open().empty()) {
    gave_up_ = true;
    actions_.emplace_back(PoolGivesUp{std::move(why)});
  } else if (may_go_on) {
    actions_.emplace_back(PoolNotice{fmt::format(
        "the pool is paused: {}; mend it, then go on with tune pool DIR --resume", why)});
    events_.emplace_back(PoolOrdered{.max = {}, .paused = true, .cause = std::move(why)});
  }
  return true;
}

// Often while something is on its way, seldom while all is well.
void PoolMachine::list_when_due(const PoolBook& book) {
  const bool is_resumed = first_ > 1 && !listed_at_;
  if (is_listing_ || (book.open().empty() && !is_resumed && !unsure_since_)) return;
  const bool all_well = std::ranges::all_of(book.open(), [&](const auto& one) {
    const auto local = local_.find(one.first);
    return one.second.took_part && local != local_.end() && local->second.has_node;
  });
  const Time every = lists_soon_ ? std::min(kSoon, options_.poll)
                     : all_well  ? 4 * options_.poll
                                 : options_.poll;
  if (listed_at_ && now_ - *listed_at_ < every) return;
  lists_soon_ = false;
  is_listing_ = true;
  listed_at_ = now_;
  actions_.emplace_back(ListAllocations{});
}

}  // namespace tune
