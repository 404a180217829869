// Asking: when a searcher whose proposals take time is asked for some, and for how many. Pure.
//
// A configuration is asked for when there is room for it, so that the newest result counts. Asked
// like that and for one at a time, a place would stand empty for as long as each proposal takes;
// with trials as short as that, half of the time. So there is one question at a time, for all
// places that are free; and where trials end so fast that a proposal's time counts beside theirs,
// proposals are kept in stock, about as many as are used up while an answer is made. Where trials
// last minutes there is no stock. The simpler way, a stock of fixed size, makes every proposal
// older by so many results.
//
// Times are experiment time and those of answers in the journal, so that a replay asks the same;
// the driver says of each answer what the longest of the last ones took
// (tune/drive/answer_times.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire.h"
#include "tune/search/proposal.h"

namespace tune {

class Asking {
 public:
  struct Question {
    std::uint64_t number = 0;  // each question has another one
    std::uint32_t count = 0;   // of the proposals that are wanted
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.number, s.count);
    }
  };
  // More would keep the first of them waiting; what is missing is asked for next. A searcher may
  // take less care with each of many (kFewProposals), so many are asked for only where the stock is
  // to be as large: elsewhere there is time for the best of each.
  static constexpr std::uint32_t kMostAtOnce = 64;
  // Where an answer takes less than this part of a trial, there is no stock.
  static constexpr int kNoticedPart = 100;

  const std::optional<Question>& open() const { return open_; }
  // When none is open; `stock` of these are beside those for free places.
  void ask(std::uint64_t count, std::uint32_t stock);
  // False: that question is not open, the answer is nobody's. Else it is closed.
  bool answered(std::uint64_t number, Duration took);
  // The driver that would answer is gone.
  void forget() { open_.reset(); }

  void attempt_began(TrialNumber trial, ExperimentTime now);
  void attempt_ended(TrialNumber trial, ExperimentTime now);
  void attempt_lost(TrialNumber trial) { began_.erase(trial); }
  // The number of proposals that should be ready beside those for free places, when so many trials
  // run.
  std::uint32_t stock(std::uint64_t places) const;

  void save(PackWriter& out) const;
  void restore(PackReader& in);

 private:
  std::optional<Question> open_;
  std::uint64_t newest_ = 0;  // question
  Duration takes_{};          // an answer, a mean over the last ones; 0: there was none
  Duration lasts_{};          // an attempt, likewise
  std::map<TrialNumber, ExperimentTime> began_;  // of attempts that run
};

}  // namespace tune
