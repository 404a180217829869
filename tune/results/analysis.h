// Analysis: what an experiment found, read from its folder alone. It works for finished, running
// and killed experiments, and for folders that were moved. Not for watching one live: see
// tune/cli/status.h.
//
// Values are copied cheaply: only names and statuses are held; results are read when asked for.
// Throws Error (kBadInput) for a folder or a question that makes no sense, Error (kIo) when a file
// cannot be read. A last line that was not written to its end is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/trial.h"
#include "core/value.h"
#include "schedulers/trial_scheduler.h"
#include "tune/results/importance.h"
#include "tune/results/schedule.h"

namespace tune {

// Which of a trial's values stands for the trial: the last it reported, the best of all, or the
// average of all, the last 5 or the last 10. An average over a value that is not finite is none.
enum class Scope { kLast, kAll, kAvg, kLast5Avg, kLast10Avg };
// "last", "all", "avg", "last-5-avg", "last-10-avg".
std::optional<Scope> scope_from_name(std::string_view name);
const char* scope_name(Scope scope);

// One trial as its folder tells.
struct TrialSummary {
  std::string id;  // "2f1e0_00003"
  // From results.csv, unless a driver runs or was killed since; then from the trial's files:
  // TERMINATED after a result that was its last, ERROR after a failure for good, PAUSED by its
  // events, else RUNNING with results, PENDING without.
  TrialStatus status = TrialStatus::kPending;
  std::filesystem::path directory;

  Config config() const;                // params.json: its newest, when it was replaced
  Result last_result() const;           // empty when it never reported
  // The newest number reported at a key path, which the last result may lack; nothing: none.
  std::optional<double> newest(std::string_view metric) const;
  std::vector<Result> results() const;  // result.json; null is NaN, "inf" and "-inf" are infinite
  // The configurations that its model was trained with: one, unless a scheduler replaced it.
  std::vector<ScheduleEntry> schedule() const;
};

struct BestCheckpoint {
  std::filesystem::path path;
  std::uint64_t iteration = 0;  // it was saved after this training_iteration
  std::optional<double> value;  // of the metric there; nothing when it was not reported
};

// One result of one trial.
struct ResultRow {
  const TrialSummary* trial = nullptr;  // valid as long as the rows or their Analysis
  Result result;
};

// Every result of every trial, in order of trial and iteration; one trial's are in memory at a
// time.
class ResultRows {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = ResultRow;
    using difference_type = std::ptrdiff_t;
    using pointer = const ResultRow*;
    using reference = const ResultRow&;

    explicit Iterator(const std::vector<TrialSummary>& trials);
    const ResultRow& operator*() const { return row_; }
    const ResultRow* operator->() const { return &row_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& at, std::default_sentinel_t) { return !at.row_.trial; }

   private:
    const std::vector<TrialSummary>* trials_;
    std::size_t trial_ = 0;
    std::vector<Result> results_;  // of that trial
    std::size_t next_ = 0;
    ResultRow row_;
  };

  explicit ResultRows(std::shared_ptr<const std::vector<TrialSummary>> trials)
      : trials_(std::move(trials)) {}
  Iterator begin() const { return Iterator(*trials_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::shared_ptr<const std::vector<TrialSummary>> trials_;
};

struct AnalysisQuestion;  // what is looked for
struct ResultLine;

class Analysis {
 public:
  // `directory` is an experiment's folder, or a link to it ("results/latest").
  static Analysis load(const std::filesystem::path& directory);

  const std::string& name() const { return name_; }
  // Empty: none was given, or there are several objectives.
  const std::string& metric() const { return objective_.metric; }
  Mode mode() const { return objective_.mode; }
  const std::vector<Goal>& objectives() const { return objective_.goals; }  // several, or none
  const std::vector<Constraint>& constraints() const { return objective_.constraints; }
  const std::filesystem::path& directory() const { return directory_; }

  // The best trial by a metric (a key path): the experiment's metric and mode unless others are
  // given. Values that are not finite never win; the first trial wins ties. One whose last result
  // breaks the experiment's constraints wins only where all do, the one that breaks them least
  // first. Throws Error (kBadInput) when no trial is eligible, saying why.
  TrialSummary best_trial(std::string_view metric = {}, std::optional<Mode> mode = {},
                          Scope scope = Scope::kLast) const;
  Config best_config(std::string_view metric = {}, std::optional<Mode> mode = {},
                     Scope scope = Scope::kLast) const;
  // The best trial's last result; with Scope::kAll the result that made it the best.
  Result best_result(std::string_view metric = {}, std::optional<Mode> mode = {},
                     Scope scope = Scope::kLast) const;
  // Of the best trial's saved checkpoints the one with the best metric (the older of equals), else
  // the newest. Error (kBadInput) when none was saved, naming the setting. One that is kept in an
  // object store is fetched into the trial's folder first, which may take its time, unless it is
  // there already; Error (kIo) when it cannot be.
  BestCheckpoint best_checkpoint(std::string_view metric = {}, std::optional<Mode> mode = {},
                                 Scope scope = Scope::kLast) const;

  // Which parameters set the best trials apart, by the experiment's metric and mode unless others
  // are given. Throws Error (kBadInput), saying why, when fewer than kFewestForImportance trials
  // have a value, when all values are alike, and as best_trial.
  Importance importance(std::string_view metric = {}, std::optional<Mode> mode = {}) const;
  // The trials that no other one dominates by the last results of both (Pareto's front): none is
  // better by one of the objectives, or by the metric, without being worse by another. Those that
  // break constraints are not on it; when all do, those that break them least are. The best by the
  // first objective comes first. Throws Error (kBadInput) when no trial is eligible, saying why.
  std::vector<TrialSummary> pareto() const;
  // Whether the trial's last result keeps all constraints; false without a result.
  bool keeps_constraints(const TrialSummary& trial) const;

  // By number; a copy where the Analysis goes away: for (... : Analysis::load(x).trials()).
  const std::vector<TrialSummary>& trials() const& { return *trials_; }
  std::vector<TrialSummary> trials() && { return *trials_; }
  ResultRows results() const { return ResultRows(trials_); }

  // One row a trial: trial_id, status, the last result, config/...: what results.csv holds.
  std::string to_csv() const;
  void write_csv(const std::filesystem::path& file) const;

 private:
  struct Best;
  Best find_best(std::string_view metric, std::optional<Mode> mode, Scope scope) const;
  AnalysisQuestion question_of(std::string_view metric, std::optional<Mode> mode,
                               Scope scope) const;
  Mode mode_for(std::string_view metric) const;
  double violation_of(const ResultLine& line) const;

  std::filesystem::path directory_;
  std::string name_;
  std::string object_address_;  // of the store that keeps the checkpoints; empty: the folder does
  Objective objective_;
  std::shared_ptr<const std::vector<TrialSummary>> trials_;
};

// All trials have ended and some of them failed.
class TrialError : public Error {
 public:
  TrialError(Analysis analysis, std::uint64_t errored);
  const Analysis& analysis() const { return analysis_; }

 private:
  Analysis analysis_;
};

}  // namespace tune
