// TrialSource: where new trials come from, the searcher's proposals and users' own configurations.
// It asks the searcher, and knows whether there will be more. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "core/journal_format.h"
#include "core/trial.h"
#include "tune/control/control_state.h"
#include "tune/search/proposal.h"

namespace tune {

class TrialSource {
 public:
  explicit TrialSource(ControlState& state) : state_(state) {}

  // A new driver: the one that would answer a question is gone, and num_samples may be another.
  void serve(const DriverStarted& driver);

  // Whether the searcher may have another trial, as far as can be told without asking it.
  bool has_more() const;
  // The next trial, PENDING. False: there is none, or the searcher has failed and the experiment
  // with it.
  bool draw();
  // A trial of a user, PENDING.
  Trial& add(Packed config);

  // Puts a question to a searcher whose proposals take time, unless one is open. `free_places`: the
  // trials that could begin at once.
  void ask(std::uint64_t free_places);
  std::optional<Asking::Question> question() const;
  // True: it answers the open question. An answer that nobody asked for, as of a question before a
  // restart, changes nothing.
  bool answer(const Proposed& event);

 private:
  void take_num_samples(std::int64_t of_driver);
  void tell(const Trial& trial, const Proposal& proposal);

  ControlState& state_;
};

}  // namespace tune
