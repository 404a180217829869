#include "schedulers/fronts.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace tune {

bool Fronts::is_dominated(const Merit& merit, const Members& front) const {
  return std::ranges::any_of(front,
                             [&](std::uint32_t other) { return dominates(merits_[other], merit); });
}

// The first one of which no member dominates it; there may be none yet.
std::size_t Fronts::front_for(const Merit& merit) const {
  const auto found = std::ranges::partition_point(
      fronts_, [&](const Members& front) { return is_dominated(merit, front); });
  return static_cast<std::size_t>(found - fronts_.begin());
}

void Fronts::add(Merit merit) {
  const auto number = static_cast<std::uint32_t>(size());
  merits_.push_back(std::move(merit));
  const Merit& added = merits_.back();
  if (added.violation > 0) {
    const auto at =
        std::ranges::upper_bound(broken_, added.violation, {},
                                 [&](std::uint32_t other) { return merits_[other].violation; });
    broken_.insert(at, number);
  } else {
    put({number}, front_for(added));
  }
}

// Removes from a front what is dominated by the others.
Fronts::Members Fronts::taken_over(const Members& by, Members& front) const {
  Members dominated;
  std::erase_if(front, [&](std::uint32_t member) {
    if (!is_dominated(merits_[member], by)) return false;
    dominated.push_back(member);
    return true;
  });
  return dominated;
}

// Members that the moving ones dominate move on; when that is a whole front, those behind it stay
// as they are behind it.
void Fronts::put(Members moving, std::size_t front) {
  while (front < fronts_.size()) {
    Members dominated = taken_over(moving, fronts_[front]);
    const bool was_all = fronts_[front].empty();
    Members merged;
    std::ranges::merge(fronts_[front], moving, std::back_inserter(merged));
    fronts_[front] = std::move(merged);
    if (dominated.empty()) return;
    moving = std::move(dominated);
    ++front;
    if (was_all) break;
  }
  fronts_.insert(fronts_.begin() + static_cast<std::ptrdiff_t>(front), std::move(moving));
}

namespace {

// Distances between the members of one front.
class FrontSpace {
 public:
  FrontSpace(const Fronts::Members& front, const std::vector<Merit>& merits)
      : front_(front), merits_(merits) {
    const std::size_t goals = merits[front.front()].values.size();
    for (std::size_t goal = 0; goal < goals; ++goal) {
      const auto [low, high] = std::ranges::minmax(values(goal));
      widths_.push_back(high > low ? high - low : 1);
    }
  }

  // The best by the first objective, then by the next; of equal ones the earlier.
  std::size_t first() const {
    const auto better = [&](std::uint32_t a, std::uint32_t b) {
      return merits_[a].values > merits_[b].values;
    };
    return static_cast<std::size_t>(std::ranges::min_element(front_, better) - front_.begin());
  }
  double square(std::size_t a, std::size_t b) const {
    double sum = 0;
    for (std::size_t goal = 0; goal < widths_.size(); ++goal) {
      const double way = (value(a, goal) - value(b, goal)) / widths_[goal];
      sum += way * way;
    }
    return sum;
  }

 private:
  double value(std::size_t at, std::size_t goal) const { return merits_[front_[at]].values[goal]; }
  std::vector<double> values(std::size_t goal) const {
    std::vector<double> all;
    for (const std::uint32_t member : front_) all.push_back(merits_[member].values[goal]);
    return all;
  }

  const Fronts::Members& front_;
  const std::vector<Merit>& merits_;
  std::vector<double> widths_;
};

}  // namespace

Fronts::Members Fronts::spread(const Members& front, std::size_t count) const {
  constexpr double kTaken = -1;
  const std::size_t picks = std::min({count, front.size(), kMostPicks});
  Members picked;
  if (picks == 0) return picked;
  const FrontSpace space(front, merits_);
  std::vector<double> nearest(front.size(), std::numeric_limits<double>::infinity());
  for (std::size_t next = space.first();;) {
    picked.push_back(front[next]);
    nearest[next] = kTaken;
    if (picked.size() == picks) break;
    for (std::size_t i = 0; i < front.size(); ++i) {
      if (nearest[i] != kTaken) nearest[i] = std::min(nearest[i], space.square(i, next));
    }
    next = static_cast<std::size_t>(std::ranges::max_element(nearest) - nearest.begin());
  }
  for (std::size_t i = 0; i < front.size() && picked.size() < count; ++i) {
    if (nearest[i] != kTaken) picked.push_back(front[i]);
  }
  return picked;
}

std::size_t Fronts::place(std::size_t member) const {
  TUNE_CHECK(member < size());
  const Merit& merit = merits_[member];
  const auto is_alike = [&](std::uint32_t other) { return merits_[other] == merit; };
  const auto first_alike = [&](const Members& order) {
    return static_cast<std::size_t>(std::ranges::find_if(order, is_alike) - order.begin());
  };
  if (merit.violation > 0) {
    const auto alike =
        std::ranges::lower_bound(broken_, merit.violation, {},
                                 [&](std::uint32_t other) { return merits_[other].violation; });
    return size() - broken_.size() + static_cast<std::size_t>(alike - broken_.begin());
  }
  const std::size_t own = front_for(merit);
  std::size_t before = 0;
  for (std::size_t front = 0; front < own; ++front) before += fronts_[front].size();
  return before + first_alike(spread(fronts_[own], fronts_[own].size()));
}

Fronts::Members Fronts::best(std::size_t count) const {
  Members all;
  for (const Members& front : fronts_) {
    if (all.size() >= count) return all;
    const Members next = spread(front, count - all.size());
    all.insert(all.end(), next.begin(), next.end());
  }
  const std::size_t left = std::min(count - std::min(count, all.size()), broken_.size());
  all.insert(all.end(), broken_.begin(), broken_.begin() + static_cast<std::ptrdiff_t>(left));
  return all;
}

std::vector<std::size_t> pareto_front(const std::vector<Merit>& merits) {
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < merits.size(); ++i) {
    const bool is_in = std::ranges::none_of(
        front, [&](std::size_t other) { return dominates(merits[other], merits[i]); });
    if (!is_in) continue;
    std::erase_if(front, [&](std::size_t other) { return dominates(merits[i], merits[other]); });
    front.push_back(i);
  }
  return front;
}

// In the order of their first objective none dominates an earlier one: nothing ever moves.
std::vector<std::size_t> best_first(const std::vector<Merit>& merits) {
  std::vector<std::size_t> order(merits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (merits[a].violation != merits[b].violation) {
      return merits[a].violation < merits[b].violation;
    }
    return merits[a].values > merits[b].values;
  });
  Fronts fronts;
  for (const std::size_t i : order) fronts.add(merits[i]);
  std::vector<std::size_t> best;
  for (const std::uint32_t member : fronts.best(merits.size())) best.push_back(order[member]);
  return best;
}

}  // namespace tune
