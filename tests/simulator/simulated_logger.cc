#include "simulator/simulated_logger.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "simulator/violation.h"

namespace tune::simulator {

namespace {

constexpr const char* kResultsOnce = "no result is lost or counted twice";

// Stands for a result that a snapshot knows and the file does not hold: it was cut away since, and
// will be cut again.
constexpr std::uint64_t kCutSince = ~std::uint64_t{0};

}  // namespace

void SimulatedLogger::record(const Record& record, const Telling&) {
  if (const auto* recorded = std::get_if<ResultRecorded>(&record)) on(*recorded);
  if (const auto* cut = std::get_if<ResultsCut>(&record)) on(*cut);
  if (const auto* replaced = std::get_if<TrialReplaced>(&record)) on(*replaced);
}

void SimulatedLogger::on(const TrialReplaced& replaced) {
  const CheckpointOrigin& origin = replaced.origin;
  const std::vector<std::uint64_t>& of_origin = results_[origin.trial];
  if (origin.iteration == 0 || origin.iteration > of_origin.size()) {
    violate("a replacement's origin has reported",
            fmt::format("trial {} has no result {}", origin.trial.value, origin.iteration));
  }
  bases_[replaced.trial.number] = {replaced.iteration, of_origin[origin.iteration - 1]};
}

std::uint64_t SimulatedLogger::state_before(TrialNumber trial,
                                            const std::vector<std::uint64_t>& results) const {
  const auto base = bases_.find(trial);
  if (base != bases_.end() && base->second.iteration == results.size()) return base->second.state;
  return results.empty() ? 0 : results.back();
}

void SimulatedLogger::on(const ResultRecorded& recorded) {
  const Reported& report = recorded.report;
  std::vector<std::uint64_t>& results = results_[report.trial];
  if (report.iteration != results.size() + 1) {
    violate(kResultsOnce, fmt::format("trial {}: result {} comes after {} results",
                                      report.trial.value, report.iteration, results.size()));
  }
  PackReader in(report.result.bytes);
  std::uint64_t state = 0;
  for (std::size_t left = in.map(); left > 0; --left) {
    in.text() == "state" ? void(state = in.unsigned_integer()) : in.skip();
  }
  LearningCurve curve(recorded.trial.config);
  const std::uint64_t before = state_before(report.trial, results);
  curve.load(before);
  curve.step();
  const bool is_known = before != kCutSince;
  if (is_known && curve.state() != state) {
    violate("a result is what the trainable makes of its configuration",
            fmt::format("trial {}: result {} comes from another state", report.trial.value,
                        report.iteration));
  }
  results.push_back(state);
}

void SimulatedLogger::on(const ResultsCut& cut) {
  std::vector<std::uint64_t>& results = results_[cut.trial.number];
  if (results.size() > cut.iteration) results.resize(cut.iteration);
}

void SimulatedLogger::flush() {
  for (const auto& [trial, results] : results_) {
    if (results.empty() || results.back() != kCutSince) continue;
    violate(kResultsOnce, fmt::format("trial {}: its file lacks results", trial.value));
  }
  *files_ = results_;
}

std::future<std::string> SimulatedLogger::save() {
  flush();
  PackWriter out;
  out.array(results_.size());
  for (const auto& [trial, results] : results_) encode(out, trial), encode(out, results.size());
  out.array(bases_.size());
  for (const auto& [trial, base] : bases_) encode(out, trial), encode(out, base);
  return ready(out.take());
}

// The content of the files up to the saved lengths is taken over.
void SimulatedLogger::restore(std::string_view state) {
  results_.clear();
  PackReader in(state);
  for (std::size_t left = in.array(); left > 0; --left) {
    TrialNumber trial;
    std::size_t length = 0;
    decode(in, trial);
    decode(in, length);
    std::vector<std::uint64_t>& results = results_[trial] = (*files_)[trial];
    results.resize(length, kCutSince);
  }
  bases_.clear();
  for (std::size_t left = in.array(); left > 0; --left) {
    TrialNumber trial;
    decode(in, trial);
    decode(in, bases_[trial]);
  }
  in.expect_end();
}

}  // namespace tune::simulator
