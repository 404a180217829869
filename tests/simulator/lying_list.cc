#include "simulator/lying_list.h"

namespace tune::simulator {

namespace {

constexpr PoolBook::Number kForeign = 1'000'000;  // nobody has asked for it

}  // namespace

void deceive(std::vector<ListedAllocation>& listed, RandomStream& random, PoolTally& tally) {
  ListedAllocation& one = listed.back();
  ListedAllocation other = one;
  switch (random.integer(0, 4)) {
    case 0:
      if (one.state == AllocationState::kEnded) {
        one.state = AllocationState::kRunning, ++tally.called_alive;
      } else {
        one.state = AllocationState::kEnded, ++tally.called_ended;
      }
      return;
    case 1:
      one.id = kWrongId, ++tally.wrong_ids;
      return;
    case 2:  // one of that name has ended before
      ++tally.twice;
      other.state = AllocationState::kEnded;
      listed.insert(random.uniform() < 0.5 ? listed.begin() : listed.end(), other);
      return;
    default:
      ++tally.foreign;
      listed.push_back({kForeign, AllocationState::kRunning, "foreign", one.host});
  }
}

}  // namespace tune::simulator
