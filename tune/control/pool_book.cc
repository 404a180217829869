#include "tune/control/pool_book.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "core/strings.h"
#include "tune/spec/when.h"

namespace tune {

// ---- What happened

void PoolBook::change(const AllocationChanged& event, ExperimentTime now) {
  next_ = std::max(next_, event.number + 1);
  if (event.state == AllocationState::kEnded) return end(event.number, event, now);
  const auto [at, is_new] = open_.try_emplace(event.number);
  Allocation& one = at->second;
  if (is_new) one.requested_at = now;
  if (is_new || one.state != event.state) one.since = now;
  one.state = event.state;
  one.id = event.id;
  learn_host(one, event.host);
  one.reason = event.reason;
  if (event.state > AllocationState::kRequested) bad_submissions_ = 0;
}

void PoolBook::end(Number number, const AllocationChanged& event, ExperimentTime now) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  learn_host(found->second, event.host);
  const bool said_hello = found->second.has_joined;
  open_.erase(found);
  if (event.fault == AllocationFault::kNone) return;
  last_bad_ = now;
  why_bad_ = event.reason;
  if (event.fault == AllocationFault::kSubmission) {
    ++bad_submissions_;
    return;
  }
  ++bad_starts_;
  if (said_hello || event.host.empty() || is_drained(event.host)) return;
  if (silent_starts_.size() >= kMaxHosts) return;
  // That host was the fault: the others have another chance.
  if (++silent_starts_[event.host] == kSilentStarts) bad_starts_ = 0;
}

// An engine may tell it long after the agent there has said hello.
void PoolBook::learn_host(Allocation& one, const std::string& host) {
  if (std::exchange(one.host, host) == host) return;
  if (one.has_joined) forget_silence_of(host);
}

void PoolBook::forget_silence_of(const std::string& host) {
  if (!is_drained(host)) silent_starts_.erase(host);
}

void PoolBook::order(const PoolOrdered& event) {
  if (event.max) max_ = event.max;
  if (!event.drained.empty()) silent_starts_[event.drained] = kDrained;
  if (!event.paused) return;
  paused_ = *event.paused;
  why_paused_ = paused_ ? event.cause : "";
  if (paused_) return;
  bad_starts_ = bad_submissions_ = 0;
  silent_starts_.clear();
}

Allocation* PoolBook::find(Number number) {
  const auto found = open_.find(number);
  return found == open_.end() ? nullptr : &found->second;
}

void PoolBook::node_has_joined(Number allocation) {
  Allocation* one = find(allocation);
  if (one == nullptr) return;
  one->has_joined = true;
  one->has_left = one->is_lost = false;
  forget_silence_of(one->host);
}

void PoolBook::node_is_ready(Number allocation) {
  Allocation* one = find(allocation);
  if (one == nullptr) return;
  one->took_part = ever_took_part_ = true;
  bad_starts_ = 0;
}

void PoolBook::node_has_left(Number allocation) {
  if (Allocation* one = find(allocation)) one->has_left = true;
}

void PoolBook::node_is_lost(Number allocation) {
  if (Allocation* one = find(allocation)) one->is_lost = true;
}

// ---- Questions

bool PoolBook::is_excluded(const std::string& host) const {
  const auto found = silent_starts_.find(host);
  return found != silent_starts_.end() && found->second >= kSilentStarts;
}

std::vector<std::string> PoolBook::excluded() const {
  std::vector<std::string> hosts;
  for (const auto& [host, starts] : silent_starts_) {
    if (starts >= kSilentStarts) hosts.push_back(host);
  }
  return hosts;
}

bool PoolBook::is_drained(const std::string& host) const {
  const auto found = silent_starts_.find(host);
  return found != silent_starts_.end() && found->second == kDrained;
}

// Others may begin in the same way, and end in other numerals: of these the whole name counts.
PoolBook::Number allocation_number(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return 0;
  const std::string_view numeral = name.substr(prefix.size());
  PoolBook::Number number = 0;
  std::from_chars(numeral.data(), numeral.data() + numeral.size(), number);
  return std::to_string(number) == numeral ? number : 0;
}

namespace {

// "each needs 2 nodes, 1 of them is there"; empty: one node does, and the pool alone tells.
std::vector<std::string> words_of(const WaitingGroups& groups, std::uint64_t trials) {
  if (groups.nodes <= 1) return {};
  std::vector<std::string> parts = {
      fmt::format("{} {} nodes", trials == 1 ? "it needs" : "each needs", groups.nodes)};
  if (groups.idle > 0) {
    parts.push_back(groups.idle == 1 ? "1 waits for the others"
                                     : fmt::format("{} wait for the others", groups.idle));
  }
  if (groups.most > 0) parts.push_back(fmt::format("the pool may have {} (max)", groups.most));
  return parts;
}

std::vector<std::string> words_of_jobs(const PoolBook& book, ExperimentTime now) {
  struct Group {
    std::size_t jobs = 0;
    ExperimentTime since{};
  };
  std::map<std::string, Group> groups;
  for (const auto& [number, one] : book.open()) {
    if (one.has_joined || one.state == AllocationState::kEnded) continue;
    const char* word =
        one.state == AllocationState::kRunning ? "without an agent yet" : "asked for";
    Group& group = groups[one.reason.empty() ? word : one.reason];
    if (group.jobs++ == 0) group.since = one.requested_at;
    group.since = std::min(group.since, one.requested_at);
  }
  std::vector<std::string> parts;
  for (const auto& [reason, group] : groups) {
    parts.push_back(fmt::format("{} job{} {} for {}", group.jobs, group.jobs == 1 ? "" : "s",
                                reason, in_words(std::max(now - group.since, ExperimentTime{}))));
  }
  if (book.is_paused()) {
    parts.push_back("the pool is paused: " + book.why_paused());
  } else if (parts.empty() && book.bad_starts() + book.bad_submissions() > 0) {
    const ExperimentTime ago = std::max(now - book.last_bad(), ExperimentTime{});
    parts.push_back(fmt::format("the pool's last start was in vain {} ago ({}) and is tried again",
                                in_words(ago), book.why_bad()));
  }
  return parts;
}

}  // namespace

std::string why_trials_wait(const PoolBook& book, std::uint64_t trials, ExperimentTime now,
                            const WaitingGroups& groups) {
  if (trials == 0) return {};
  std::vector<std::string> parts = words_of(groups, trials);
  const std::vector<std::string> jobs = words_of_jobs(book, now);
  if (jobs.empty() && groups.idle == 0 && groups.most == 0) return {};
  parts.insert(parts.end(), jobs.begin(), jobs.end());
  const std::string who = trials >= 1'000'000 ? "trials wait"
                          : trials == 1       ? "1 trial waits"
                                              : fmt::format("{} trials wait", trials);
  return fmt::format("{}: {}", who, join(parts, ", "));
}

// ---- State

void PoolBook::save(PackWriter& out) const {
  out.map(open_.size());
  for (const auto& [number, one] : open_) encode(out, number), encode(out, one);
  encode(out, next_);
  encode(out, max_);
  encode(out, paused_);
  encode(out, why_paused_);
  encode(out, bad_starts_);
  encode(out, bad_submissions_);
  encode(out, last_bad_);
  encode(out, why_bad_);
  encode(out, ever_took_part_);
  encode(out, silent_starts_);
}

void PoolBook::restore(PackReader& in) {
  *this = {};
  for (std::size_t left = in.map(); left > 0; --left) {
    Number number = 0;
    decode(in, number);
    decode(in, open_[number]);
  }
  decode(in, next_);
  decode(in, max_);
  decode(in, paused_);
  decode(in, why_paused_);
  decode(in, bad_starts_);
  decode(in, bad_submissions_);
  decode(in, last_bad_);
  decode(in, why_bad_);
  decode(in, ever_took_part_);
  decode(in, silent_starts_);
}

}  // namespace tune
