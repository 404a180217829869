// AnswerTimes: the time that an answer of the searcher is said to have taken, from which a stock of
// proposals is reckoned (tune/control/asking.h). Pure.
//
// It is the longest of the last answers. Said as it was, the time of a question for one proposal
// shrinks the stock just before a wave of trials ends, whose question for fifty takes five times as
// long: with 64 places and trials of a second a tenth of the places stood empty for that.
//
// Up to kFewProposals are said to take at least as long as a search in full of each. Those of the
// start-up take no time, so that the first wave of ends found neither a stock nor haste, and half
// of the places stood empty for .4 s. Of haste a smaller stock came, then full searches of what was
// missing, and places that stood empty. The controller's means could see to all this as well, but
// would decide otherwise than journals that are there.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include "core/clock.h"
#include "tune/search/proposal.h"

namespace tune {

class AnswerTimes {
 public:
  static constexpr std::size_t kWatched = 64;
  // Of gp with few results; with 250 it is 25 to 40 ms.
  static constexpr Duration kSearchInFull = std::chrono::milliseconds(10);

  // To be said of an answer of so many proposals that took so long.
  Duration said(Duration took, std::size_t proposals) {
    const auto few = static_cast<Duration::rep>(std::min(proposals, kFewProposals));
    newest_[count_++ % kWatched] = std::max(took, few * kSearchInFull);
    return *std::ranges::max_element(newest_);
  }

 private:
  std::array<Duration, kWatched> newest_{};
  std::size_t count_ = 0;
};

}  // namespace tune
