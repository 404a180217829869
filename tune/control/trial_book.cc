#include "tune/control/trial_book.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "schedulers/fronts.h"

namespace tune {

TrialBook::TrialBook(Outbox& out, Objective objective, std::size_t keep)
    : out_(&out),
      objective_(std::move(objective)),
      metrics_(metrics_of(objective_)),
      keep_(std::max<std::size_t>(1, keep)) {}

bool TrialBook::has_a_metric(const Reported& report) const {
  return missing_metrics(report).size() < metrics_.size();
}

std::vector<std::string> TrialBook::missing_metrics(const Reported& report) const {
  std::vector<std::string> missing = metrics_;
  std::erase_if(missing, [&](const std::string& path) {
    return ResultView(report).number(path).has_value();
  });
  return missing;
}

// The worst there is when a metric is missing.
Merit TrialBook::merit(const Reported& report) const {
  const auto numbers = numbers_of(
      objective_, [&](std::string_view path) { return ResultView(report).number(path); });
  return merit_of(numbers.value_or(MeritNumbers{}), goals_of(objective_).size());
}

std::optional<TrialNumber> TrialBook::best() const {
  std::optional<TrialNumber> best;
  double best_value = 0;
  double best_violation = 0;
  for (const Trial& trial : trials_) {
    if (!trial.metric || !std::isfinite(*trial.metric)) continue;
    const double value = objective_.mode == Mode::kMax ? *trial.metric : -*trial.metric;
    const double violation =
        objective_.constraints.empty() || !trial.last ? 0 : merit(*trial.last).violation;
    if (std::isinf(violation)) continue;  // a metric of a constraint is missing
    const bool is_better =
        violation < best_violation || (violation == best_violation && value > best_value);
    if (best && !is_better) continue;
    best = trial.number;
    best_value = value;
    best_violation = violation;
  }
  return best;
}

std::vector<TrialNumber> TrialBook::pareto() const {
  std::vector<TrialNumber> front;
  if (objective_.goals.empty()) return front;
  std::vector<TrialNumber> trials;
  std::vector<Merit> merits;
  for (const Trial& trial : trials_) {
    if (!trial.last) continue;
    Merit found = merit(*trial.last);
    if (std::isinf(found.violation)) continue;
    trials.push_back(trial.number);
    merits.push_back(std::move(found));
  }
  for (const std::size_t i : pareto_front(merits)) front.push_back(trials[i]);
  return front;
}

Trial* TrialBook::current(AgentNumber agent, TrialNumber number, AttemptNumber attempt) {
  if (number.value >= trials_.size()) return nullptr;
  Trial& trial = trials_[number.value];
  const bool live = trial.status == TrialStatus::kRunning && trial.attempt == attempt &&
                    trial.placement->agent == agent && !trial.placement->lead_has_ended;
  return live ? &trial : nullptr;
}

Trial* TrialBook::current_part(AgentNumber agent, TrialNumber number, AttemptNumber attempt) {
  if (number.value >= trials_.size()) return nullptr;
  Trial& trial = trials_[number.value];
  if (trial.status != TrialStatus::kRunning || trial.attempt != attempt) return nullptr;
  const bool has_part = std::ranges::find(trial.placement->others, agent, &PlacementPart::agent) !=
                        trial.placement->others.end();
  return has_part ? &trial : nullptr;
}

// ---- Status

Trial& TrialBook::add(Packed config, Milestone until) {
  const TrialNumber number = next_number();
  Trial& trial = trials_.emplace_back();
  trial.number = number;
  trial.config = std::move(config);
  trial.until = std::move(until);
  ++counts_[static_cast<std::size_t>(TrialStatus::kPending)];
  waiting_.insert(number);
  out_->tell(TrialAdded{trial});
  return trial;
}

TrialBook::Numbers* TrialBook::group_of(const Trial& trial) {
  switch (trial.status) {
    case TrialStatus::kPending:
      return &waiting_;
    case TrialStatus::kRunning:
      return &running_;
    case TrialStatus::kPaused:
      if (trial.wish == Wish::kPause) return &held_back_;
      return trial.paused_by_scheduler ? &paused_ : nullptr;
    default:
      return nullptr;
  }
}

void TrialBook::set_status(Trial& trial, TrialStatus status) {
  TUNE_CHECK(transition_is_legal(trial.status, status));
  if (Numbers* from = group_of(trial)) from->erase(trial.number);
  --counts_[static_cast<std::size_t>(trial.status)];
  const TrialStatus former = std::exchange(trial.status, status);
  if (status != TrialStatus::kPaused) trial.paused_by_scheduler = false;
  if (is_over(status)) trial.wish = Wish::kNone;
  ++counts_[static_cast<std::size_t>(status)];
  if (Numbers* to = group_of(trial)) to->insert(trial.number);
  out_->tell(TrialChanged{trial, former});
}

void TrialBook::pause(Trial& trial) {
  TUNE_CHECK(trial.status != TrialStatus::kPaused);  // a pause chooses its set by its origin
  trial.paused_by_scheduler = trial.verdict == StopKind::kPause;
  trial.verdict.reset();
  set_status(trial, TrialStatus::kPaused);
  shorten(trial);
}

void TrialBook::hold(Trial& trial) {
  if (Numbers* from = group_of(trial)) from->erase(trial.number);
  trial.wish = Wish::kPause;
  trial.paused_by_scheduler = false;
  if (trial.status != TrialStatus::kPaused) {
    set_status(trial, TrialStatus::kPaused);
    return shorten(trial);
  }
  held_back_.insert(trial.number);
  out_->tell(TrialChanged{trial});
}

void TrialBook::release(Trial& trial) {
  held_back_.erase(trial.number);
  trial.wish = Wish::kNone;
  set_status(trial, TrialStatus::kPending);
}

namespace {

constexpr std::size_t kMaxReasonBytes = 256;

void shorten_text(std::string& text) {
  if (text.size() <= kMaxReasonBytes) return;
  std::size_t bytes = kMaxReasonBytes;
  while (bytes > 0 && (text[bytes] & 0xc0) == 0x80) --bytes;  // not within a character
  text = text.substr(0, bytes) + "...";
}

}  // namespace

void TrialBook::finish(Trial& trial, TrialStatus status, bool keeps_origin) {
  set_status(trial, status);
  if (status == TrialStatus::kTerminated) {
    if (!keeps_origin) let_go_of_origin(trial);
    trial.at_checkpoint.reset();
    shorten_failure(trial);
  }
  trial.expected.clear();
  shorten(trial);
}

void TrialBook::shorten(Trial& trial) const {
  for (std::optional<Reported>* report : {&trial.last, &trial.at_checkpoint}) {
    if (*report) (*report)->result = kept_result((*report)->result, metrics_);
  }
  shorten_text(trial.reason);
}

void TrialBook::shorten_failure(Trial& trial) {
  if (!trial.failure) return;
  Failure& failure = **trial.failure;
  shorten_text(failure.cause);
  failure.stderr_tail = std::string();
}

namespace {

constexpr std::size_t kMaxKeptText = 64;

struct Keeping {
  const std::vector<std::string>& metrics;
  std::size_t bytes_left = kMaxKeptBytes / 2;  // by a cautious count
};

// A leaf costs its path, its text and what the packed form adds.
bool keeps(const Value& leaf, const std::string& path, Keeping& keeping) {
  if (std::ranges::find(keeping.metrics, path) != keeping.metrics.end()) return leaf.is_number();
  if (leaf.type() == Value::Type::kList) return false;
  const std::size_t text = leaf.is_string() ? leaf.string().size() : 0;
  const std::size_t cost = path.size() + text + 16;
  if (text > kMaxKeptText || cost > keeping.bytes_left) return false;
  keeping.bytes_left -= cost;
  return true;
}

Config without_long_values(const Value& map, const std::string& prefix, Keeping& keeping) {
  Config kept;
  for (const Member& member : map.map()) {
    const std::string path = prefix + member.key;
    if (member.value.is_map()) {
      Config inner = without_long_values(member.value, path + "/", keeping);
      if (!inner.map().empty()) kept.set(member.key, std::move(inner));
    } else if (keeps(member.value, path, keeping)) {
      kept.set(member.key, member.value);
    }
  }
  return kept;
}

}  // namespace

Packed kept_result(const Packed& result, const std::vector<std::string>& metrics) try {
  if (result.bytes.size() <= kMaxKeptBytes) return result;
  Keeping keeping{metrics};
  return pack(without_long_values(unpack(result), "", keeping));
} catch (const Error&) {
  return pack(Config());  // damaged by its worker
}

void TrialBook::begin_attempt(Trial& trial, Placement placement) {
  trial.attempt = AttemptNumber{trial.attempt.value + 1};
  trial.placement = std::move(placement);
  trial.location.clear();
  set_status(trial, TrialStatus::kRunning);
}

// ---- Results and checkpoints

void TrialBook::take_result(Trial& trial, const Reported& report) const {
  trial.last = report;
  const std::optional<double> metric = ResultView(report).number(objective_.metric);
  if (metric) trial.metric = metric;
}

namespace {

CheckpointId id_of(const CheckpointRecord& record) {
  return {record.iteration, record.attempt};
}

}  // namespace

namespace {

// The result that a checkpoint was saved after. One that had a way to go may be behind the trial.
std::optional<Reported> result_at(const Trial& trial, const CheckpointSaved& saved) {
  if (trial.last && trial.last->iteration == saved.iteration) return trial.last;
  for (const ExpectedCheckpoint& expected : trial.expected) {
    if (expected.iteration == saved.iteration && expected.attempt == saved.attempt) {
      return expected.result;
    }
  }
  return std::nullopt;
}

}  // namespace

void TrialBook::expect_checkpoint(Trial& trial, const CheckpointSaved& saved) const {
  const bool is_on_its_way = saved.storing == CheckpointSaved::Storing::kOnNode;
  std::optional<Reported> result = result_at(trial, saved);  // it may be told a second time
  std::erase_if(trial.expected, [&](const ExpectedCheckpoint& old) {
    return old.attempt != saved.attempt || old.iteration == saved.iteration;
  });
  if (!is_on_its_way) return;
  trial.expected.push_back({saved.iteration, saved.attempt, std::move(result)});
}

void TrialBook::take_checkpoint(Trial& trial, const CheckpointSaved& saved) {
  std::optional<Reported> result = result_at(trial, saved);
  std::erase_if(trial.expected, [&](const ExpectedCheckpoint& old) {
    return old.attempt != saved.attempt || old.iteration <= saved.iteration;
  });
  const AttemptNumber named = saved.name_has_attempt ? saved.attempt : AttemptNumber{};
  CheckpointRecord record{saved.iteration, saved.time_total, saved.timesteps_total, {}, named};
  if (result) {
    // A result that breaks a constraint is not the best.
    const bool is_kept = objective_.constraints.empty() || merit(*result).violation == 0;
    if (is_kept) record.metric = ResultView(*result).number(objective_.metric);
  }
  trial.at_checkpoint = std::move(result);
  let_go_of_origin(trial);
  std::erase_if(trial.checkpoints, [&](const CheckpointRecord& old) {
    const bool goes = old.iteration >= saved.iteration;
    if (is_held(trial, old)) return false;
    if (goes && id_of(old) != id_of(record)) out_->remove(trial.number, id_of(old));
    return goes;
  });
  trial.checkpoints.push_back(record);
  retain_checkpoints(trial);
  out_->tell(TrialChanged{trial});
}

// Keeps the newest `keep` checkpoints and the one with the best metric; the older one wins ties.
void TrialBook::retain_checkpoints(Trial& trial) const {
  auto& all = trial.checkpoints;
  const double sign = objective_.mode == Mode::kMax ? 1 : -1;
  std::optional<std::uint64_t> best;
  double best_value = 0;
  for (const CheckpointRecord& record : all) {
    if (!record.metric || !std::isfinite(*record.metric)) continue;
    if (best && sign * *record.metric <= best_value) continue;
    best = record.iteration;
    best_value = sign * *record.metric;
  }
  for (std::size_t i = 0; all.size() > keep_ && i + keep_ < all.size();) {
    if (best == all[i].iteration || is_held(trial, all[i])) {
      ++i;
      continue;
    }
    out_->remove(trial.number, id_of(all[i]));
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// ---- Replacements

bool TrialBook::replace(Trial& trial, TrialNumber donor, Packed config, const std::string& reason) {
  if (donor.value >= trials_.size() || trials_[donor.value].checkpoints.empty()) return false;
  if (!trial.last) return false;
  const CheckpointRecord& newest = trials_[donor.value].checkpoints.back();
  const CheckpointOrigin origin =
      newest.origin.value_or(CheckpointOrigin{donor, newest.iteration, newest.attempt});
  if (donor != trial.number) {
    ++held_[origin];  // first, so that the trial's former origin may be the same one
    let_go_of_origin(trial);
    trial.checkpoints.push_back({trial.last->iteration,
                                 trial.last->time_total,
                                 trial.last->timesteps_total,
                                 std::nullopt,
                                 {},
                                 origin});
    trial.at_checkpoint = trial.last;
  }
  ++trial.replacements;
  const Packed former = std::exchange(trial.config, std::move(config));
  out_->tell(TrialReplaced{trial, donor, origin, trial.last->iteration, former, reason});
  return true;
}

bool TrialBook::is_held(const Trial& trial, const CheckpointRecord& record) const {
  if (held_.empty() || record.origin) return false;
  return held_.contains({trial.number, record.iteration, record.attempt});
}

// Without its last holder a checkpoint stays only as long as its own trial needs it.
void TrialBook::let_go_of_origin(Trial& trial) {
  if (trial.checkpoints.empty() || !trial.checkpoints.back().origin) return;
  const CheckpointOrigin origin = *trial.checkpoints.back().origin;
  trial.checkpoints.pop_back();
  const auto held = held_.find(origin);
  if (--held->second > 0) return;
  held_.erase(held);
  retain_checkpoints(trials_[origin.trial.value]);
}

// Later results are void also when the trial never gets there again.
std::uint64_t TrialBook::cut_to_checkpoint(Trial& trial) const {
  const std::uint64_t restored = trial.checkpoints.empty() ? 0 : trial.checkpoints.back().iteration;
  if (!trial.last || trial.last->iteration <= restored) return restored;
  out_->tell(ResultsCut{trial, restored});
  trial.last.reset();
  if (restored > 0) trial.last = trial.at_checkpoint;
  trial.metric.reset();
  if (trial.last) trial.metric = ResultView(*trial.last).number(objective_.metric);
  return restored;
}

bool is_saved_to_the_end(const Trial& trial) {
  return trial.last && !trial.checkpoints.empty() &&
         trial.checkpoints.back().iteration == trial.last->iteration;
}

// ---- State

void TrialBook::save(PackWriter& out) const {
  out.array(trials_.size());
  for (const Trial& trial : trials_) encode(out, trial);
}

void TrialBook::restore(PackReader& in) {
  trials_.clear();
  counts_ = {};
  held_.clear();
  for (Numbers* group : {&waiting_, &paused_, &running_, &held_back_}) group->clear();
  for (std::size_t left = in.array(); left > 0; --left) {
    Trial& trial = trials_.emplace_back();
    decode(in, trial);
    ++counts_[static_cast<std::size_t>(trial.status)];
    if (Numbers* group = group_of(trial)) group->insert(trial.number);
    if (trial.checkpoints.empty() || !trial.checkpoints.back().origin) continue;
    ++held_[*trial.checkpoints.back().origin];
  }
}

}  // namespace tune
