// History: events.jsonl of an experiment, kept as what a page shows of it: attempts (who ran where
// and when), verdicts with their reasons, nodes, notices. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"
#include "tune/results/trial_stories.h"

namespace tune::view {

inline constexpr std::size_t kMaxNotices = 200;
inline constexpr std::size_t kMaxVerdicts = 4u << 20;
inline constexpr std::size_t kMaxRungVisits = 4u << 20;
inline constexpr std::size_t kMaxAllocations = 10'000;  // that have not ended
inline constexpr std::size_t kMaxAttempts = 8u << 20;
inline constexpr std::size_t kMaxDescents = 1u << 20;

struct Attempt {
  std::uint32_t trial = 0;
  std::uint32_t attempt = 0;
  std::uint32_t node = 0;     // of nodes()
  std::uint32_t gpus = 0;     // of gpu_lists()
  std::uint32_t outcome = 0;  // of outcomes(); 0: it runs
  double started = 0;         // unix seconds
  double ended = 0;           // 0: it runs
};

struct Verdict {
  std::uint32_t trial = 0;
  std::uint32_t iteration = 0;
  bool is_pause = false;
  float cut_off = 0;  // NaN: its reason names none
  double time = 0;
};

// A trial came to a rung.
struct RungVisit {
  std::uint32_t trial = 0;
  std::uint32_t iteration = 0;
  std::uint32_t bracket = kNoBracket;
  std::uint32_t rank = 0;  // of `of`
  std::uint32_t of = 0;
  double milestone = 0;
  float value = 0;    // of several objectives the first
  float cut_off = 0;  // NaN: none
  enum class Verdict : std::uint8_t { kGoOn, kStop, kPause } verdict = Verdict::kGoOn;
  static constexpr std::uint32_t kNoBracket = UINT32_MAX;
};

// A scheduler let a trial go on from another one's checkpoint (PBT).
struct Descent {
  std::uint32_t trial = 0;
  std::uint32_t iteration = 0;       // of the trial, which it counts on from
  std::uint32_t from = 0;            // the trial whose checkpoint it is
  std::uint32_t from_iteration = 0;  // and the iteration there
};

struct NodeView {
  std::string name;
  std::string ip = {};
  double cpus = 0;
  std::uint64_t gpus = 0;
  std::uint64_t memory_bytes = 0;
  double joined = 0;
  double left = 0;  // 0: it is there
  std::string cause = {};
  std::uint32_t running = 0;  // attempts
};

// An allocation that the pool has asked its engine for, and that has not ended.
struct AllocationView {
  std::string state, id, host, reason;
  double asked = 0;  // unix seconds
  double since = 0;  // in this state
};

struct NoticeView {
  double time = 0;
  std::string event, text;
};

class History {
 public:
  // The trial that the line is about. Lines of later versions are passed over. Throws Error
  // (kBadInput) when the line is not a JSON object.
  struct Told {
    std::optional<std::uint32_t> trial;
    bool replaced = false;  // it goes on with another configuration
  };
  Told add(std::string_view line, const std::string& where);
  void clear() { *this = {}; }

  const std::deque<Attempt>& attempts() const { return attempts_; }
  // The newest attempts that run, by trial: their places in attempts().
  const std::map<std::uint32_t, std::size_t>& open_attempts() const { return open_; }
  const std::deque<Verdict>& verdicts() const { return verdicts_; }
  const std::deque<RungVisit>& rung_visits() const { return rung_visits_; }
  const std::deque<Descent>& descents() const { return descents_; }
  const std::vector<NodeView>& nodes() const { return nodes_; }
  const std::vector<std::string>& gpu_lists() const { return gpu_lists_; }  // "0,1"; first: none
  const std::vector<std::string>& outcomes() const { return outcomes_; }    // first: running
  const std::deque<NoticeView>& notices() const { return notices_; }        // the newest
  // Nothing when no event named the trial.
  const TrialStory* story(std::uint32_t trial) const { return stories_.find(trial); }
  const std::map<std::string, double>& set_aside() const { return set_aside_; }  // places, since
  const std::map<std::uint64_t, AllocationView>& allocations() const { return allocations_; }
  const std::string& why_paused() const { return why_paused_; }  // the pool; empty: it is not
  double first() const { return first_; }  // time of the first event; 0: none
  double last() const { return last_; }
  std::uint64_t lines() const { return lines_; }

 private:
  void on_attempt_started(std::uint32_t trial, double time, const Value& event);
  void on_attempt_ended(std::uint32_t trial, double time, const Value& event);
  void on_trial(const EventLine& event);
  void on_node(std::string_view kind, double time, const Value& event);
  void on_rung(std::uint32_t trial, const Value& event);
  void on_pool(std::string_view kind, double time, const Value& event);
  void end_all(double time, const char* outcome);
  void note_order(double time, const Value& event);
  void note(double time, std::string_view event, std::string text);
  std::uint32_t node(const std::string& name);

  std::deque<Attempt> attempts_;
  std::map<std::uint32_t, std::size_t> open_;  // newest attempt that runs, by trial
  std::deque<Verdict> verdicts_;
  std::deque<RungVisit> rung_visits_;
  std::deque<Descent> descents_;
  std::vector<NodeView> nodes_;
  std::map<std::string, std::uint32_t> node_index_;  // by name
  std::vector<std::string> gpu_lists_ = {""};
  std::vector<std::string> outcomes_ = {"running"};
  std::deque<NoticeView> notices_;
  TrialStories stories_;
  std::map<std::string, double> set_aside_;
  std::map<std::uint64_t, AllocationView> allocations_;  // by number
  std::string why_paused_;
  double first_ = 0;
  double last_ = 0;
  std::uint64_t lines_ = 0;
};

// "0.81 is worse than the cut-off 0.842 of 9 values" names 0.842.
std::optional<double> cut_off_of(std::string_view reason);

}  // namespace tune::view
