#include "simulator/simulated_pool.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "core/random.h"
#include "simulator/lying_list.h"
#include "simulator/start_promises.h"
#include "tune/control/pool_book.h"
#include "tune/drive/pool_machine.h"

namespace tune::simulator {

namespace {

using namespace std::chrono_literals;
using Number = PoolBook::Number;
using Time = ExperimentTime;

constexpr Time kPoolStep = 500ms;
constexpr Time kStorm = 40min;  // in which all goes wrong
constexpr Time kCalm = 60min;   // each of the two times after it
constexpr Time kPoolLease = 60s;

class PoolWorld {
 public:
  PoolWorld(std::uint64_t seed, bool traced)
      : traced_(traced),
        random_(seed, "pool", 0),
        groups_(seed, "groups of a pool", 0),
        engine_(seed, "hosts and lies of an engine", 0),
        options_(draw_options()) {
    draw_hosts();
    deceives_ = rolls(0.5) ? 0 : engine_.uniform() * 0.3;
    start_delay_ = draw(0s, 30s);
    queue_time_ = draw(0s, 300s);
    list_delay_ = draw(0s, 20s);
    for (double* rate : {&refuses_, &loses_, &lies_, &lists_fail_, &stops_fail_, &answers_lost_}) {
      *rate = random_.uniform() < 0.5 ? 0 : random_.uniform() * 0.4;
    }
    never_joins_ = random_.uniform() < 0.6 ? 0 : random_.uniform();
    dies_ = random_.uniform() < 0.5 ? 0 : random_.uniform() * 0.01;
    crashes_ = random_.uniform() < 0.5 ? 0 : random_.uniform() * 0.005;
  }

  PoolTally run() {
    start_driver();
    while (now_ < kStorm && !is_over_) {
      if (chance(0.01)) wanted_ = static_cast<std::uint64_t>(random_.integer(0, 9));
      if (group_ > 0 && groups_.uniform() < 0.002) change_maximum();
      if (!options_.hosts.empty() && rolls(0.001)) drain_host();
      step();
    }
    if (is_over_) return tally_;
    calm_down(static_cast<std::uint64_t>(random_.integer(1, 9)));
    for (const Time end = now_ + kCalm; now_ < end && !is_over_;) step();
    if (is_over_) return tally_;
    const std::uint64_t max = maximum();
    const std::uint64_t most =
        group_ > 0 ? max / static_cast<std::uint64_t>(group_) : max * places_;
    const std::uint64_t there = capacity();
    if (there < std::min(wanted_, most)) {
      violate("the agents that are wanted come",
              fmt::format("{} trials have room, {} want it, {} allocations are open", there,
                          wanted_, book_.open().size()));
    }
    // A maximum that is lowered ends no trial.
    const std::uint64_t trials = std::max<std::uint64_t>(placed_.size(), std::min(wanted_, most));
    if (group_ > 0 && book_.open().size() > trials * static_cast<std::uint64_t>(group_)) {
      violate("no node is kept that completes no group",
              fmt::format("{} allocations are open for {} trials", book_.open().size(), trials));
    }
    wanted_ = 0;
    for (const Time end = now_ + kCalm; now_ < end;) step();
    for (const auto& [number, job] : jobs_) {
      if (job.ends > now_) {
        violate("no job is left that nobody wants", fmt::format("allocation {}", number));
      }
    }
    return tally_;
  }

 private:
  // The engine's own jobs.
  struct Job {
    Time runs{};   // from then on
    Time joins{};  // its agent
    Time ends{};
    bool has_agent = false;  // that lives
    bool is_known = false;   // to the driver of now
    bool was_known = false;  // to any
    bool is_leaving = false;
    Time joined{};
    Time heard{};
    Time dies = Time::max();
    std::string host = {};  // empty: hosts have no names
    Time shows_host{};      // from then on lists have it
    int missing = 0;        // from this many lists
  };
  struct Host {
    double bad = 0;     // the share of the agents started there that never come
    double silent = 0;  // where each is asked: to so much of what it is asked
  };

  PoolMachine::Options draw_options() {
    PoolMachine::Options options;
    options.max = static_cast<std::uint32_t>(random_.integer(1, 5));
    options.backlog = static_cast<std::uint32_t>(random_.integer(1, 4));
    places_ = static_cast<std::uint64_t>(random_.integer(1, 4));
    options.places = chance(0.7) ? places_ : 0;
    options.idle = 60s;
    options.join_within = 120s;
    if (groups_.uniform() < 0.5) {
      group_ = static_cast<int>(groups_.integer(2, 4));
      options.max = std::max(options.max, static_cast<std::uint32_t>(groups_.integer(group_, 9)));
      places_ = 0;
      options.group = options.places > 0 ? group_ : 0;
      options.places = 0;
    }
    return options;
  }
  // No names; or those of the engine's choice; or those that the pool names.
  void draw_hosts() {
    const double kind = engine_.uniform();
    if (kind < 0.4) return;
    for (std::int64_t i = engine_.integer(2, 6); i > 0; --i) {
      Host& host = hosts_["host-" + std::to_string(i)];
      if (rolls(0.3)) host.bad = rolls(0.3) ? 1 : 0.7;
      if (rolls(0.3)) host.silent = engine_.uniform() * 0.5;
    }
    options_.leaves_hosts_out = kind > 0.5;
    if (kind < 0.75) return;
    for (const auto& [name, host] : hosts_) options_.hosts.push_back(name);
  }
  std::uint64_t maximum() const {
    const std::uint64_t max = book_.max().value_or(options_.max);
    return options_.hosts.empty() ? max : std::min<std::uint64_t>(max, hosts_.size());
  }
  bool chance(double rate) { return random_.uniform() < rate; }
  bool rolls(double rate) { return engine_.uniform() < rate; }
  Time draw(Time low, Time high) { return Time(random_.integer(low.count(), high.count() + 1)); }
  void trace(const std::string& text) const {
    if (!traced_) return;
    std::printf("%9.1f %s\n", std::chrono::duration<double>(now_).count(), text.c_str());
  }

  // ---- Time

  void after(Time delay, std::function<void()> what) {
    later_.emplace(now_ + delay, [driver = driver_, what = std::move(what), this] {
      if (driver == driver_) what();  // a driver's commands end with it
    });
  }
  void step() {
    now_ += kPoolStep;
    while (!later_.empty() && later_.begin()->first <= now_) {
      const auto what = std::move(later_.begin()->second);
      later_.erase(later_.begin());
      what();
    }
    move_jobs();
    if (down_until_ && *down_until_ <= now_) start_driver();
    if (down_until_) return;
    // Starts that end in vain now were begun in the storm.
    if (is_calm_ && (book_.is_paused() || !book_.excluded().empty())) {
      order({.max = {}, .paused = false, .cause = "a user"});
    }
    look();
  }
  void order(const PoolOrdered& order) {
    book_.order(order);
    promises_.ordered(order);
  }
  void calm_down(std::uint64_t wanted) {
    trace("all is calm");
    // Stops that fail and answers that are lost are to be lived with.
    for (double* rate :
         {&refuses_, &loses_, &lies_, &lists_fail_, &never_joins_, &dies_, &crashes_, &deceives_}) {
      *rate = 0;
    }
    for (auto& [name, host] : hosts_) host = {};
    queue_time_ = std::min<Time>(queue_time_, 30s);
    for (auto& [number, job] : jobs_) {
      job.dies = Time::max();
      if (job.ends > now_) job.ends = Time::max();
      if (job.runs < Time::max()) continue;
      job.host = hosts_.begin()->first;
      job.runs = job.joins = now_ + 10s;
    }
    is_calm_ = true;
    wanted_ = wanted;
    const bool is_too_small =
        book_.max().value_or(options_.max) < static_cast<std::uint32_t>(group_);
    if (is_too_small) order({.max = options_.max, .paused = {}, .cause = "a user"});
  }

  // ---- Jobs and their agents

  void move_jobs() {
    for (auto& [number, job] : jobs_) {
      const bool has_ended = job.ends <= now_ || job.dies <= now_;
      if (job.has_agent && has_ended) job.has_agent = false, ++tally_.died;
      if (job.dies <= now_) job.ends = std::min(job.ends, now_);
      if (!job.has_agent && !job.was_known && job.joins <= now_ && !has_ended) {
        job.has_agent = true;
      }
      if (job.has_agent && chance(dies_)) job.dies = now_ + draw(0s, 10s);
      if (down_until_) continue;
      if (job.has_agent) hear(number, job);
      const bool is_lost = job.is_known && !job.has_agent && now_ - job.heard > kPoolLease;
      if (is_lost) lose(number, job);
    }
  }
  void hear(Number number, Job& job) {
    job.heard = now_;
    if (job.is_leaving) {
      job.has_agent = job.is_known = false;
      if (chance(0.7)) job.ends = std::min(job.ends, now_ + draw(0s, 5s));  // by itself
      book_.node_has_left(number);
      return trace(fmt::format("the agent of {} has left", number));
    }
    if (std::exchange(job.is_known, true)) return;
    trace(fmt::format("the agent of {} has joined", number));
    if (!std::exchange(job.was_known, true)) ++tally_.joined, job.joined = now_;
    book_.node_has_joined(number);
    book_.node_is_ready(number);
    promises_.said_hello(number);
  }
  void lose(Number number, Job& job) {
    job.is_known = false;
    book_.node_is_lost(number);
    trace(fmt::format("the agent of {} is lost", number));
  }

  std::uint64_t capacity() const {
    std::uint64_t all = 0;
    for (const auto& [number, job] : jobs_) all += job.is_known && !job.is_leaving;
    return group_ > 0 ? all / static_cast<std::uint64_t>(group_) : all * places_;
  }
  // By a user.
  void change_maximum() {
    const auto max = static_cast<std::uint32_t>(groups_.integer(1, options_.max + 1));
    order({.max = max, .paused = {}, .cause = "a user"});
    trace(fmt::format("at most {} agents", max));
  }
  // Likewise, of any node.
  void drain_host() {
    for (const auto& [number, job] : jobs_) {
      if (!job.is_known || !rolls(0.5)) continue;
      order({.max = {}, .paused = {}, .cause = "a user", .drained = job.host});
      ++tally_.drained;
      return trace(fmt::format("{} is drained", job.host));
    }
  }
  // Groups hold their nodes until one of them goes, or they are not wanted any more.
  void place_groups() {
    const auto stays = [&](Number number) {
      const Job& job = jobs_.at(number);
      return job.is_known && !job.is_leaving;
    };
    std::set<Number> held;
    std::erase_if(placed_, [&](const auto& group) { return !std::ranges::all_of(group, stays); });
    if (placed_.size() > wanted_) placed_.resize(wanted_);
    for (const auto& group : placed_) held.insert(group.begin(), group.end());
    std::vector<Number> idle;
    for (const auto& [number, job] : jobs_) {
      if (stays(number) && !held.contains(number)) idle.push_back(number);
      if (std::ssize(idle) < group_) continue;
      if (placed_.size() < wanted_) placed_.push_back(std::exchange(idle, {})), ++tally_.groups;
    }
  }
  PoolScene scene_of_groups() {
    place_groups();
    PoolScene scene;
    scene.running = scene.groups = placed_.size();
    scene.wanted = wanted_ - scene.running;
    std::set<Number> held;
    for (const auto& group : placed_) held.insert(group.begin(), group.end());
    for (const auto& [number, job] : jobs_) {
      if (!job.is_known) continue;
      const bool is_held = held.contains(number);
      scene.nodes.push_back({.agent = {static_cast<std::uint32_t>(number)},
                             .allocation = number,
                             .trials = is_held,
                             .is_out = job.is_leaving,
                             .silence = now_ - job.heard,
                             .group = group_,
                             .is_held = is_held});
    }
    return scene;
  }
  PoolScene scene() {
    if (group_ > 0) return scene_of_groups();
    PoolScene scene;
    scene.running = std::min(wanted_, capacity());
    scene.wanted = wanted_ - scene.running;
    std::uint64_t left = scene.running;
    for (const auto& [number, job] : jobs_) {
      if (!job.is_known) continue;
      const std::uint64_t trials = job.is_leaving ? 0 : std::min(left, places_);
      left -= trials;
      scene.nodes.push_back({.agent = {static_cast<std::uint32_t>(number)},
                             .allocation = number,
                             .places = places_,
                             .trials = trials,
                             .is_out = job.is_leaving,
                             .silence = now_ - job.heard});
    }
    return scene;
  }

  // ---- The driver

  void start_driver() {
    down_until_.reset();
    ++driver_;
    driver_since_ = now_;
    ++tally_.drivers;
    machine_ = std::make_unique<PoolMachine>(options_);
    for (auto& [number, job] : jobs_) job.heard = now_;
    trace("a driver begins");
  }
  bool is_killed() {
    if (!chance(crashes_)) return false;
    ++driver_;
    for (auto& [number, job] : jobs_) job.is_known = false;
    down_until_ = now_ + draw(0s, 120s);
    trace("the driver is killed");
    return true;
  }
  // May wait in the queue: so many are asked for at once.
  std::uint32_t backlog() const {
    return std::max(options_.backlog, static_cast<std::uint32_t>(std::max(group_, 1)));
  }
  void look() {
    if (is_killed()) return;
    const PoolScene before = scene();
    promises_.looks(now_, static_cast<int>(backlog()));
    machine_->look(now_, book_, before);
    const std::vector<PoolEvent> events = machine_->take_events();
    for (const PoolAction& action : machine_->take_actions()) {
      if (is_killed()) return;
      std::visit([&](const auto& one) { take(one, before); }, action);
    }
    if (is_killed()) return;
    for (const PoolEvent& event : events) journal(event);
  }
  void journal(const PoolEvent& event) {
    if (const auto* order = std::get_if<PoolOrdered>(&event)) {
      tally_.pauses += order->paused.value_or(false);
      return this->order(*order);
    }
    const auto& change = std::get<AllocationChanged>(event);
    trace(fmt::format("allocation {} is {}: {}", change.number, static_cast<int>(change.state),
                      change.reason));
    const bool is_new = change.state == AllocationState::kRequested;
    if (is_new && book_.is_paused()) violate("a paused pool asks for nothing", "");
    if (is_new) promises_.asks();
    check_end(change);
    const std::size_t out = book_.excluded().size();
    book_.change(change, now_);
    promises_.changed(change, now_);
    promises_.excludes(book_.excluded());
    tally_.left_out += book_.excluded().size() > out;
    std::uint32_t waiting = 0;
    for (const auto& [number, one] : book_.open()) {
      waiting += one.state < AllocationState::kRunning && !one.has_joined;
    }
    if (is_new && waiting > backlog()) {
      violate("no more wait than the backlog", fmt::format("{} wait", waiting));
    }
    if (book_.open().size() > options_.max) {
      violate("there are never more than the maximum", fmt::format("{}", book_.open().size()));
    }
  }

  // Silence does not tell of an end.
  void check_end(const AllocationChanged& change) const {
    const bool is_missed = change.state == AllocationState::kEnded &&
                           change.reason.starts_with("the engine lists it no more");
    const auto job = jobs_.find(change.number);
    if (!is_missed || job == jobs_.end() || job->second.missing >= 2) return;
    violate("nothing is missed that no two lists lack",
            fmt::format("allocation {}", change.number));
  }

  // ---- The engine

  void take(const StartAllocation& start, const PoolScene&) {
    const auto one = book_.open().find(start.number);
    if (one == book_.open().end() || one->second.state != AllocationState::kRequested) {
      violate("nothing is started that the journal does not know", std::to_string(start.number));
    }
    if (!started_.insert(start.number).second) {
      violate("nothing is started twice", std::to_string(start.number));
    }
    promises_.starts(start);
    ++tally_.starts;
    if (chance(refuses_)) {
      ++tally_.refused;
      return after(draw(0s, start_delay_),
                   [=, this] { machine_->on_not_started(start.number, "no"); });
    }
    make_job(start);
    const bool tells = !chance(answers_lost_);
    after(draw(0s, start_delay_), [=, this] {
      if (tells) return machine_->on_started(start.number, std::to_string(start.number));
      machine_->on_not_started(start.number, "no answer");
    });
  }
  void make_job(const StartAllocation& start) {
    Job job;
    job.runs = now_ + draw(0s, queue_time_);
    job.joins = chance(never_joins_) ? Time::max() : job.runs + draw(1s, 60s);
    job.ends = chance(0.7) || is_calm_ ? Time::max() : job.runs + draw(10s, 30min);
    if (chance(loses_)) job.ends = now_ + draw(0s, 60s), ++tally_.lost;
    if (!hosts_.empty()) place(start, job);
    jobs_[start.number] = job;
  }
  // A job for which no host is left waits in the queue.
  void place(const StartAllocation& start, Job& job) {
    std::vector<std::string> hosts;
    for (const auto& [name, host] : hosts_) {
      const bool is_wanted = start.host.empty() || start.host == name;
      if (is_wanted && std::ranges::count(start.excluded, name) == 0) hosts.push_back(name);
    }
    if (hosts.empty()) {
      job.runs = job.joins = Time::max();
      return;
    }
    job.host = hosts[static_cast<std::size_t>(engine_.integer(0, std::ssize(hosts)))];
    job.shows_host = job.runs + (rolls(0.5) ? 0s : Time(engine_.integer(0, Time(120s).count())));
    if (!rolls(hosts_.at(job.host).bad)) return;
    job.joins = Time::max();
    if (rolls(0.5)) job.ends = std::min(job.ends, job.runs + 5s);
  }
  void take(const ListAllocations&, const PoolScene&) {
    const Time asked_at = now_;
    const Time delay = draw(0s, list_delay_);
    if (chance(lists_fail_)) {
      return after(delay, [this] { machine_->on_not_listed("no answer"); });
    }
    std::set<std::string> silent;  // hosts
    for (const auto& [name, host] : hosts_) {
      if (!options_.hosts.empty() && rolls(host.silent)) silent.insert(name), ++tally_.silent;
    }
    std::set<Number> missing;
    std::vector<ListedAllocation> listed;
    for (const auto& [number, job] : jobs_) {
      if (silent.contains(job.host)) continue;
      missing.insert(number);
      if (job.ends <= now_ && (job.ends + 60s <= now_ || chance(0.5))) continue;
      if (chance(lies_)) {
        ++tally_.lies;
        continue;
      }
      missing.erase(number);
      const auto state = job.ends <= now_   ? AllocationState::kEnded
                         : job.runs <= now_ ? AllocationState::kRunning
                                            : AllocationState::kQueued;
      const bool has_host = !options_.hosts.empty() || job.shows_host <= now_;
      listed.push_back(
          {number, state, std::to_string(number), has_host ? job.host : "", "a reason"});
      if (rolls(deceives_)) deceive(listed, engine_, tally_);
    }
    after(delay, [=, this] {
      for (const Number number : missing) ++jobs_.at(number).missing;
      machine_->on_listed(listed, asked_at, silent, silent.empty() ? "" : "no answer");
    });
  }
  void take(const StopAllocation& stop, const PoolScene& before) {
    for (const PoolScene::Node& node : before.nodes) {
      const bool is_heard = node.silence < PoolMachine::kSilent && !node.is_out;
      if (node.allocation == stop.number && is_heard) {
        violate("an agent that is heard is not stopped", std::to_string(stop.number));
      }
    }
    trace(fmt::format("allocation {} is to stop", stop.number));
    const bool fails = chance(stops_fail_);
    const bool hits = !fails && stop.id != kWrongId;
    tally_.unstopped += fails;
    after(draw(0s, 10s), [=, this] {
      const auto job = jobs_.find(stop.number);
      if (hits && job != jobs_.end()) job->second.ends = std::min(job->second.ends, now_);
      machine_->on_stopped(stop.number, fails ? "no answer" : "");
    });
  }
  void take(const DrainNode& drain, const PoolScene& before) {
    Job& job = jobs_.at(drain.agent.value);
    for (const PoolScene::Node& node : before.nodes) {
      const bool is_meant = node.agent == drain.agent && !book_.is_drained(job.host);
      if (is_meant && node.trials > 0) {
        violate("an agent with trials is not given back", std::to_string(node.allocation));
      }
    }
    const bool may_complete = maximum() >= static_cast<std::uint64_t>(group_);
    const Time waited = now_ - std::max(job.joined, driver_since_);
    // The others may come, and it has not waited long.
    if (is_calm_ && group_ > 0 && before.wanted > 0 && before.running == 0 && may_complete &&
        !book_.is_paused() && waited < 5 * options_.idle) {
      violate("a node waits for the rest of its group", fmt::format("{}", job.is_known));
    }
    job.is_leaving = true;
  }
  void take(const TakeForGone& gone, const PoolScene&) {
    Job& job = jobs_.at(gone.agent.value);
    if (now_ - job.heard < PoolMachine::kSilent) {
      violate("an agent that is heard is not gone", std::to_string(gone.agent.value));
    }
    lose(gone.agent.value, job);
  }
  void take(const ShowLog&, const PoolScene&) {}
  void take(const PoolNotice& notice, const PoolScene&) { trace(notice.text); }
  void take(const PoolGivesUp& end, const PoolScene&) {
    if (book_.ever_took_part()) violate("a pool that has worked does not give up", end.why);
    ++tally_.given_up;
    is_over_ = true;
  }

  bool traced_;
  RandomStream random_;
  std::uint64_t places_ = 1;  // of every agent
  RandomStream groups_;       // so that what other pools draw stays
  int group_ = 0;             // nodes that a trial needs; 0: each holds some
  std::vector<std::vector<Number>> placed_;
  RandomStream engine_;  // likewise
  PoolMachine::Options options_;
  std::map<std::string, Host> hosts_;
  StartPromises promises_;
  Time driver_since_{};
  Time start_delay_{};
  Time queue_time_{};
  Time list_delay_{};
  double refuses_ = 0;       // starts
  double answers_lost_ = 0;  // of starts that have worked
  double loses_ = 0;         // jobs
  double lies_ = 0;          // for each job of a list: it is left out
  double deceives_ = 0;      // likewise: it is not as it is
  double lists_fail_ = 0;
  double stops_fail_ = 0;
  double never_joins_ = 0;
  double dies_ = 0;     // an agent, a step
  double crashes_ = 0;  // the driver, a step of its work

  Time now_ = 0s;
  std::multimap<Time, std::function<void()>> later_;
  std::map<Number, Job> jobs_;
  std::set<Number> started_;
  std::uint64_t wanted_ = 3;  // trials
  PoolBook book_;
  std::unique_ptr<PoolMachine> machine_;
  std::uint64_t driver_ = 0;
  std::optional<Time> down_until_;
  bool is_calm_ = false;
  bool is_over_ = false;
  PoolTally tally_;
};

}  // namespace

PoolVerdict simulate_pool(std::uint64_t seed, bool traced) {
  PoolWorld world(seed, traced);
  try {
    return {{}, world.run()};
  } catch (const Violation& violation) {
    return {violation, {}};
  }
}

}  // namespace tune::simulator
