#include "tune/view/rungs_blob.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tune/view/columns_blob.h"
#include "tune/view/experiment_blobs.h"

namespace tune::view {

namespace {

constexpr std::size_t kMaxRungs = 32;
constexpr std::size_t kMaxEntries = 4u << 20;
constexpr const char* kIteration = "training_iteration";
enum Fate : std::uint8_t { kWentOn = 0, kStoppedHere = 1, kWaits = 2, kWaitedAndWentOn = 3 };

std::string option_path(const ExperimentHead& head, const char* option) {
  return "scheduler/" + head.scheduler + "/" + option;
}

double option_of(const ExperimentHead& head, const char* option) {
  const Value* found = head.spec.find(option_path(head, option));
  return found != nullptr && found->is_number() ? found->number() : 0;
}

std::string time_of(const ExperimentHead& head) {
  const Value* time = head.spec.find(option_path(head, "time_attr"));
  return time != nullptr && time->is_string() ? time->string() : kIteration;
}

struct Entries {
  std::vector<double> milestones;
  std::vector<std::uint32_t> rung, row, rank, of, bracket;
  std::vector<float> value, cut_off;
  std::vector<std::uint8_t> verdict;

  bool is_full() const { return row.size() >= kMaxEntries; }
  void add(std::size_t at, std::size_t of_row, const RungVisit& visit, Fate fate) {
    rung.push_back(static_cast<std::uint32_t>(at));
    row.push_back(static_cast<std::uint32_t>(of_row));
    value.push_back(visit.value);
    cut_off.push_back(visit.cut_off);
    rank.push_back(visit.rank);
    of.push_back(visit.of);
    bracket.push_back(visit.bracket);
    verdict.push_back(fate);
  }
};

// Of many the most frequent, in order.
template <class Milestone>
std::vector<double> most_frequent(const std::map<Milestone, std::size_t>& counts,
                                  std::set<double> chosen) {
  std::vector<std::pair<std::size_t, double>> frequent;
  for (const auto& [milestone, count] : counts) {
    frequent.emplace_back(count, static_cast<double>(milestone));
  }
  std::sort(frequent.rbegin(), frequent.rend());
  for (const auto& [count, milestone] : frequent) {
    if (chosen.size() < kMaxRungs) chosen.insert(milestone);
  }
  return {chosen.begin(), chosen.end()};
}

Fate fate_of(const TrialRow& trial, bool is_stop, bool is_pause, std::uint32_t iteration) {
  if (is_stop) return kStoppedHere;
  if (!is_pause) return kWentOn;
  return trial.iterations > iteration ? kWaitedAndWentOn : kWaits;
}

// ---- As the events tell

// A trial that came to max_t is stopped by a verdict without a rung: it is shown there as well.
void add_ends(const Experiment& experiment, Entries& entries) {
  const ExperimentHead& head = experiment.head();
  const double max_t = option_of(head, "max_t");
  if (time_of(head) != kIteration || max_t < 1 || max_t > 1e9 || head.metric.empty()) return;
  const auto last = static_cast<std::uint32_t>(std::ceil(max_t));
  const TrialTable& table = experiment.trials();
  std::map<std::uint32_t, std::uint32_t> brackets;  // by trial
  std::set<std::uint32_t> told;                     // trials with a rung there
  for (const RungVisit& visit : experiment.history().rung_visits()) {
    brackets[visit.trial] = visit.bracket;
    if (visit.iteration == last) told.insert(visit.trial);
  }
  auto at = static_cast<std::size_t>(std::ranges::find(entries.milestones, max_t) -
                                     entries.milestones.begin());
  for (std::size_t row = 0; row < table.size() && !entries.is_full(); ++row) {
    const std::uint32_t number = table.row(row).number;
    if (table.row(row).iterations < last || told.contains(number)) continue;
    if (at == entries.milestones.size()) entries.milestones.push_back(max_t);
    const auto bracket = brackets.find(number);
    RungVisit visit{.trial = number, .iteration = last};
    visit.bracket = bracket == brackets.end() ? RungVisit::kNoBracket : bracket->second;
    visit.value = table.curve(row).at(last).value_or(std::nanf(""));
    visit.cut_off = std::nanf("");
    entries.add(at, row, visit, kWentOn);
  }
}

Entries told_entries(const Experiment& experiment) {
  const std::deque<RungVisit>& visits = experiment.history().rung_visits();
  const TrialTable& table = experiment.trials();
  std::map<double, std::size_t> counts;
  for (const RungVisit& visit : visits) ++counts[visit.milestone];
  Entries entries;
  entries.milestones = most_frequent(counts, {});
  for (const RungVisit& visit : visits) {
    const auto at = std::ranges::lower_bound(entries.milestones, visit.milestone);
    const auto row = table.find(visit.trial);
    if (at == entries.milestones.end() || *at != visit.milestone || !row || entries.is_full()) {
      continue;
    }
    using Verdict = RungVisit::Verdict;
    entries.add(static_cast<std::size_t>(at - entries.milestones.begin()), *row, visit,
                fate_of(table.row(*row), visit.verdict == Verdict::kStop,
                        visit.verdict == Verdict::kPause, visit.iteration));
  }
  add_ends(experiment, entries);
  return entries;
}

// ---- Of older folders, and of schedulers without rungs

// The rungs that the scheduler's options name, where it judges by iteration.
std::set<double> spec_rungs(const ExperimentHead& head) {
  std::set<double> rungs;
  if (time_of(head) != kIteration) return rungs;
  const double max = option_of(head, "max_t");
  const double factor = option_of(head, "reduction_factor");
  double rung = option_of(head, "grace_period");
  if (factor <= 1 || rung < 1 || max > 1e9) return rungs;
  for (; rung <= max && rungs.size() < kMaxRungs; rung *= factor) rungs.insert(std::ceil(rung));
  return rungs;
}

Entries guessed_entries(const Experiment& experiment) {
  const TrialTable& table = experiment.trials();
  std::map<std::pair<std::uint32_t, std::uint32_t>, const Verdict*> verdicts;  // trial, iteration
  std::map<std::uint32_t, std::size_t> counts;
  for (const Verdict& verdict : experiment.history().verdicts()) {
    verdicts[{verdict.trial, verdict.iteration}] = &verdict;
    ++counts[verdict.iteration];
  }
  Entries entries;
  entries.milestones = most_frequent(counts, spec_rungs(experiment.head()));
  struct Visited {
    double time = 0;  // of the verdict
    std::size_t rung = 0, row = 0;
    RungVisit visit;
    Fate fate = kWentOn;
  };
  std::vector<Visited> all;
  for (std::size_t i = 0; i < entries.milestones.size(); ++i) {
    const auto iteration = static_cast<std::uint32_t>(entries.milestones[i]);
    for (std::size_t row = 0; row < table.size(); ++row) {
      const TrialRow& trial = table.row(row);
      if (trial.iterations < iteration || all.size() >= kMaxEntries) continue;
      Visited one{.time = 0, .rung = i, .row = row, .visit = {.trial = trial.number}};
      one.visit.value = table.curve(row).at(iteration).value_or(std::nanf(""));
      one.visit.cut_off = std::nanf("");
      if (const auto found = verdicts.find({trial.number, iteration}); found != verdicts.end()) {
        const Verdict& verdict = *found->second;
        one.time = verdict.time;
        one.visit.cut_off = verdict.cut_off;
        one.fate = fate_of(trial, !verdict.is_pause, verdict.is_pause, iteration);
      }
      all.push_back(one);
    }
  }
  std::ranges::stable_sort(all, {}, &Visited::time);
  for (const Visited& one : all) entries.add(one.rung, one.row, one.visit, one.fate);
  return entries;
}

}  // namespace

std::string rungs_blob(const Experiment& experiment) {
  const bool are_told = !experiment.history().rung_visits().empty();
  const Entries entries = are_told ? told_entries(experiment) : guessed_entries(experiment);
  ColumnsBlob blob;
  blob.add("milestone", entries.milestones);
  blob.add("rung", entries.rung);
  blob.add("row", entries.row);
  blob.add("value", entries.value);
  blob.add("cut_off", entries.cut_off);
  blob.add("rank", entries.rank);
  blob.add("of", entries.of);
  blob.add("bracket", entries.bracket);
  blob.add("verdict", entries.verdict);
  Value header = header_of(experiment);
  header.set("time", time_of(experiment.head()));
  return blob.finish(std::move(header));
}

}  // namespace tune::view
