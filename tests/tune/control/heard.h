// An open Outbox and its content.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tune/control/outbox.h"

namespace tune::testing {

struct Heard {
  Heard() { out.open(sink); }
  Heard(const Heard&) = delete;

  Outbox out;
  std::vector<std::string> records;
  Outbox::Sink sink = [this](const Record& record) {
    if (std::holds_alternative<TrialAdded>(record)) records.emplace_back("added");
    if (std::holds_alternative<TrialChanged>(record)) records.emplace_back("changed");
    if (const auto* cut = std::get_if<ResultsCut>(&record)) {
      records.push_back("cut to " + std::to_string(cut->iteration));
    }
    if (const auto* notice = std::get_if<Notice>(&record)) records.push_back(notice->text);
  };
};

inline Reported result_of(const Trial& trial, std::uint64_t iteration, double metric) {
  Reported report;
  report.trial = trial.number;
  report.attempt = trial.attempt;
  report.iteration = iteration;
  report.result = pack(Result{{"m", metric}});
  return report;
}

}  // namespace tune::testing
