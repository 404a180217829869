// AnswerTimes: the time that an answer of the searcher is said to have taken, from which a stock of
// proposals is reckoned (tune/control/asking.h). Pure.
//
// It is the longest of the last answers. Said as it was, the time of a question for one proposal
// shrinks the stock just before a wave of trials ends, whose question for fifty takes five times as
// long: with 64 places and trials of a second a tenth of the places stood empty for that. The
// controller's means could see to it as well, but would decide otherwise than journals that are
// there.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/clock.h"

namespace tune {

class AnswerTimes {
 public:
  static constexpr std::size_t kWatched = 8;

  // To be said of an answer that took so long.
  Duration said(Duration took) {
    newest_[count_++ % kWatched] = took;
    return *std::ranges::max_element(newest_);
  }

 private:
  std::array<Duration, kWatched> newest_{};
  std::size_t count_ = 0;
};

}  // namespace tune
