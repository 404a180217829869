// PoolBook: the allocations that a pool has asked its engine for, and what became of them. Pure,
// and a fold over the journal: it knows the same after a resume. tune/drive/pool_machine.h decides
// by it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/journal_format.h"
#include "core/wire.h"

namespace tune {

struct Allocation {
  AllocationState state = AllocationState::kRequested;
  std::string id;
  std::string host;
  std::string reason;
  ExperimentTime requested_at{};
  ExperimentTime since{};   // it is in this state
  bool has_joined = false;  // an agent of it has said hello
  bool took_part = false;   // one was ready for trials
  bool has_left = false;    // one has left in order
  bool is_lost = false;     // one was lost, and none has joined since
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.state, s.id, s.host, s.reason, s.requested_at, s.since, s.has_joined, s.took_part,
      s.has_left, s.is_lost);
  }
};

class PoolBook {
 public:
  using Number = std::uint64_t;
  // Starts on a host, without any agent that said hello, after which it gets no more.
  static constexpr std::uint32_t kSilentStarts = 3;
  static constexpr std::size_t kMaxHosts = 10'000;  // of which such starts are counted

  void change(const AllocationChanged& event, ExperimentTime now);
  void order(const PoolOrdered& event);
  // Of an agent of this allocation; 0, of none, changes nothing.
  void node_has_joined(Number allocation);
  void node_is_ready(Number allocation);
  void node_has_left(Number allocation);
  void node_is_lost(Number allocation);

  const std::map<Number, Allocation>& open() const { return open_; }  // not ended
  Number next_number() const { return next_; }
  std::optional<std::uint32_t> max() const { return max_; }  // that a user has ordered
  bool is_paused() const { return paused_; }
  const std::string& why_paused() const { return why_paused_; }
  // In a row, without an agent that took part in between.
  std::uint32_t bad_starts() const { return bad_starts_; }
  std::uint32_t bad_submissions() const { return bad_submissions_; }
  ExperimentTime last_bad() const { return last_bad_; }
  const std::string& why_bad() const { return why_bad_; }  // the last one
  bool ever_took_part() const { return ever_took_part_; }  // any agent
  std::vector<std::string> excluded() const;               // hosts
  bool is_excluded(const std::string& host) const;
  bool is_drained(const std::string& host) const;  // by a user, and so excluded

  void save(PackWriter& out) const;
  void restore(PackReader& in);

 private:
  // Of `silent_starts_`; also in the snapshots of builds that drain no hosts, which keep such a
  // host out all the same.
  static constexpr std::uint32_t kDrained = std::numeric_limits<std::uint32_t>::max();

  Allocation* find(Number number);
  void learn_host(Allocation& one, const std::string& host);
  void forget_silence_of(const std::string& host);
  void end(Number number, const AllocationChanged& event, ExperimentTime now);

  std::map<Number, Allocation> open_;
  Number next_ = 1;
  std::optional<std::uint32_t> max_;
  bool paused_ = false;
  std::string why_paused_;
  std::uint32_t bad_starts_ = 0;
  std::uint32_t bad_submissions_ = 0;
  ExperimentTime last_bad_{};
  std::string why_bad_;
  bool ever_took_part_ = false;
  std::map<std::string, std::uint32_t> silent_starts_;  // by host
};

// 7 of "tune-2f1e0-7", the prefix being "tune-2f1e0-"; 0: the name is not one of these.
PoolBook::Number allocation_number(std::string_view name, std::string_view prefix);

// Trials that need several nodes, and wait for them.
struct WaitingGroups {
  std::uint64_t nodes = 1;  // of each trial
  std::uint64_t idle = 0;   // that wait for the rest of a group
  std::uint64_t most = 0;   // that the pool may have; 0: as many as they need
};
// The reason why trials wait for the pool, for people: "12 trials wait: 2 jobs PENDING (Priority)
// for 41 min", "3 trials wait: each needs 2 nodes, 1 waits for the others, 1 job
// PENDING (Priority) for 4 min". Empty: none does.
std::string why_trials_wait(const PoolBook& book, std::uint64_t trials, ExperimentTime now,
                            const WaitingGroups& groups = {});

}  // namespace tune
