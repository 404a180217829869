#include "simulator/start_promises.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "core/strings.h"
#include "simulator/violation.h"

namespace tune::simulator {

namespace {

using namespace std::chrono_literals;

constexpr int kStarts = 3;
constexpr int kSubmissions = 10;
constexpr ExperimentTime kFirstPause = 5s;
constexpr ExperimentTime kLastPause = 10min;

}  // namespace

void StartPromises::changed(const AllocationChanged& change, ExperimentTime now) {
  if (change.state != AllocationState::kEnded) {
    learn_host(open_[change.number], change.host);
    if (change.state > AllocationState::kRequested) submissions_ = 0;
    return;
  }
  const auto ended = open_.extract(change.number);
  if (ended.empty()) return;
  Open one = ended.mapped();
  learn_host(one, change.host);
  count(change, one, now);
}

void StartPromises::count(const AllocationChanged& end, const Open& one, ExperimentTime now) {
  if (end.fault == AllocationFault::kNone) return;
  last_bad_ = now;
  if (end.fault == AllocationFault::kSubmission) {
    ++submissions_;
    return;
  }
  ++starts_;
  if (one.has_joined || end.host.empty()) return;
  if (++in_vain_[end.host] == kStarts && !drained_.contains(end.host)) starts_ = 0;
}

void StartPromises::learn_host(Open& one, const std::string& host) {
  if (one.has_joined && one.host != host) in_vain_.erase(host);
  one.host = host;
}

void StartPromises::ordered(const PoolOrdered& order) {
  if (!order.drained.empty()) drained_.insert(order.drained);
  if (order.paused.value_or(true)) return;
  in_vain_.clear();
  drained_.clear();
  starts_ = submissions_ = 0;
}

void StartPromises::said_hello(Number number) {
  const auto one = open_.find(number);
  if (one == open_.end()) return;
  one->second.has_joined = true;
  in_vain_.erase(one->second.host);
  starts_ = 0;
}

void StartPromises::looks(ExperimentTime now, int at_once) {
  why_not_.clear();
  ExperimentTime pause = kFirstPause;
  for (int i = 1; i < starts_ || i * at_once < submissions_; ++i) {
    pause = std::min(2 * pause, kLastPause);
  }
  if (starts_ >= kStarts || submissions_ >= kSubmissions) {
    why_not_ = "a pool whose starts are all in vain asks for no more";
  } else if (starts_ + submissions_ > 0 && now < last_bad_ + pause) {
    why_not_ = "after a start in vain there is a pause";
  }
}

void StartPromises::asks() const {
  if (why_not_.empty()) return;
  violate(why_not_,
          fmt::format("{} starts and {} submissions were in vain", starts_, submissions_));
}

bool StartPromises::is_out(const std::string& host) const {
  const auto found = in_vain_.find(host);
  return drained_.contains(host) || (found != in_vain_.end() && found->second >= kStarts);
}

void StartPromises::starts(const StartAllocation& start) const {
  if (is_out(start.host)) violate("nothing starts on a host that is left out", start.host);
  for (const auto& [host, count] : in_vain_) {
    const bool is_said = std::ranges::count(start.excluded, host) > 0;
    if (!start.host.empty() || !is_out(host) || is_said) continue;
    violate("nothing starts on a host that is left out", host + ", as the engine is not told");
  }
}

void StartPromises::excludes(const std::vector<std::string>& hosts) const {
  std::set<std::string> expected = drained_;
  for (const auto& [host, count] : in_vain_) {
    if (count >= kStarts) expected.insert(host);
  }
  if (expected == std::set<std::string>(hosts.begin(), hosts.end())) return;
  violate("a host is left out after three starts in vain, and no other is",
          fmt::format("these are out: {}", join(hosts, ", ")));
}

}  // namespace tune::simulator
