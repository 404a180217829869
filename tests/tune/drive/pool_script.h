// PoolScript: a pool, its journal's book and the machines that there are, for tests of PoolMachine.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/refusal.h"
#include "tune/drive/pool_machine.h"

namespace tune::testing {

using namespace std::chrono_literals;

constexpr auto kJobQueued = AllocationState::kQueued;
constexpr auto kJobRunning = AllocationState::kRunning;
constexpr auto kJobEnded = AllocationState::kEnded;

// Time passes when it is told to.
class PoolScript {
 public:
  explicit PoolScript(PoolMachine::Options options = {}) : options_(options), machine_(options) {}

  // Looks, and journals what it decides, until it decides nothing more.
  void look() {
    for (int turn = 0; turn < 20; ++turn) {
      machine_.look(now_, book_, scene_);
      const std::vector<PoolEvent> events = machine_.take_events();
      for (const PoolEvent& event : events) {
        if (const auto* change = std::get_if<AllocationChanged>(&event)) {
          book_.change(*change, now_);
          changes_.push_back(*change);
        } else {
          book_.order(std::get<PoolOrdered>(event));
        }
      }
      for (PoolAction& action : machine_.take_actions()) take(std::move(action));
      if (events.empty()) return;
    }
    FAIL("it never comes to rest");
  }
  void pass(PoolMachine::Time time) {
    now_ += time;
    look();
  }
  void start_all() {
    for (const PoolBook::Number number : std::exchange(starts_, {})) {
      machine_.on_started(number, "job" + std::to_string(number));
    }
    look();
  }
  // The engine's answer to the question that is open, or to one that is put in time.
  void list(const std::vector<ListedAllocation>& listed, const char* silent_host = nullptr) {
    for (int i = 0; i < 200 && !is_listing_; ++i) pass(500ms);
    REQUIRE(std::exchange(is_listing_, false));
    if (silent_host == nullptr) machine_.on_listed(listed, listing_since_);
    if (silent_host != nullptr) machine_.on_listed(listed, listing_since_, {silent_host}, "down");
    look();
  }
  void join(PoolBook::Number number, std::uint64_t places = 2) {
    book_.node_has_joined(number);
    book_.node_is_ready(number);
    scene_.nodes.push_back({AgentNumber{static_cast<std::uint32_t>(number)}, number, places});
    look();
  }
  // A node that holds a part of a trial; `group`: as of a NodeShare.
  void join_part(PoolBook::Number number, int group = 2) {
    book_.node_has_joined(number);
    book_.node_is_ready(number);
    PoolScene::Node node{AgentNumber{static_cast<std::uint32_t>(number)}, number};
    node.group = group;
    scene_.nodes.push_back(node);
    look();
  }
  // A trial begins on these nodes.
  void begin_on(const std::vector<PoolBook::Number>& numbers) {
    for (PoolScene::Node& node : scene_.nodes) {
      if (std::ranges::count(numbers, node.allocation) == 0) continue;
      node.trials = 1;
      node.is_held = true;
    }
    ++scene_.running;
    ++scene_.groups;
    --scene_.wanted;
    look();
  }
  void lose(PoolBook::Number number) {
    std::erase_if(scene_.nodes, [&](const auto& node) { return node.allocation == number; });
    book_.node_is_lost(number);
    look();
  }
  bool was_told(const std::string& part) const {
    return std::ranges::any_of(notices_, [&](const auto& text) { return has(text, part); });
  }
  // The next driver: knows what is in the journal.
  void resume() {
    machine_ = PoolMachine(options_);
    scene_.nodes.clear();
    starts_.clear();
    is_listing_ = false;
    look();
  }

  PoolMachine::Options options_;
  PoolMachine::Time now_ = 1000s;
  PoolBook book_;
  PoolScene scene_;
  PoolMachine machine_;
  std::vector<AllocationChanged> changes_;
  std::vector<PoolBook::Number> starts_;  // not answered yet
  std::vector<StartAllocation> all_starts_;
  std::vector<PoolBook::Number> stops_;
  std::vector<AgentNumber> drained_;
  std::vector<AgentNumber> gone_;
  std::vector<std::string> notices_;
  std::vector<std::string> logs_;
  std::string gave_up_;
  bool is_listing_ = false;
  PoolMachine::Time listing_since_{};

 private:
  void take(PoolAction action) {
    if (auto* start = std::get_if<StartAllocation>(&action)) {
      CHECK(book_.open().at(start->number).state == AllocationState::kRequested);
      starts_.push_back(start->number);
      all_starts_.push_back(*start);
    }
    if (std::holds_alternative<ListAllocations>(action)) {
      CHECK_FALSE(std::exchange(is_listing_, true));
      listing_since_ = now_;
    }
    if (auto* stop = std::get_if<StopAllocation>(&action)) stops_.push_back(stop->number);
    if (auto* drain = std::get_if<DrainNode>(&action)) drained_.push_back(drain->agent);
    if (auto* gone = std::get_if<TakeForGone>(&action)) gone_.push_back(gone->agent);
    if (auto* log = std::get_if<ShowLog>(&action)) logs_.push_back(log->text);
    if (auto* notice = std::get_if<PoolNotice>(&action)) notices_.push_back(notice->text);
    if (auto* end = std::get_if<PoolGivesUp>(&action)) gave_up_ = end->why;
  }
};

}  // namespace tune::testing
