#include "tune/search/gp/candidate_pool.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

namespace tune::search::gp {

namespace {

constexpr std::size_t kRoom = 400;
constexpr std::size_t kRenewedAfter = 32;  // proposals
constexpr std::size_t kBegunFrom = 32;     // of the pool, for a short search

// The first so many are the best by their acquisition.
std::vector<std::size_t> best_first(const std::vector<Expectation>& expected, std::size_t count) {
  std::vector<std::size_t> order(expected.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
    const double of_a = expected[a].acquisition;
    const double of_b = expected[b].acquisition;
    return of_a != of_b ? of_a > of_b : a < b;
  });
  return order;
}

}  // namespace

std::optional<Scored> CandidatePool::best(const std::vector<UnitPoint>& best,
                                          const Following& following, const Encoding& encoding,
                                          const TriedPoints& tried, RandomStream& random) {
  if (made_++ % kRenewedAfter == 0 || points_.empty()) {
    return best_of_all(best, following, encoding, tried, random);
  }
  std::vector<Expectation> expected = following.expected(0);
  const auto score = [&](const std::vector<UnitPoint>& points) {
    following.follow(points);
    std::vector<Expectation> of_new = following.expected(points_.size());
    points_.insert(points_.end(), points.begin(), points.end());
    expected.insert(expected.end(), of_new.begin(), of_new.end());
    return of_new;
  };
  auto found = better_candidate(best_known(expected), score, encoding, tried, random);
  shrink(expected, following.unfollow);
  return found;
}

std::optional<Scored> CandidatePool::best_of_all(const std::vector<UnitPoint>& best,
                                                 const Following& following,
                                                 const Encoding& encoding, const TriedPoints& tried,
                                                 RandomStream& random) {
  std::vector<UnitPoint> seen;
  std::vector<Expectation> expected;
  const auto score = [&](const std::vector<UnitPoint>& points) {
    std::vector<Expectation> of_new = following.score(points);
    seen.insert(seen.end(), points.begin(), points.end());
    expected.insert(expected.end(), of_new.begin(), of_new.end());
    return of_new;
  };
  auto found = best_candidate(best, score, encoding, tried, random);
  if (!found) return std::nullopt;
  std::vector<UnitPoint> points;
  const std::vector<std::size_t> order = best_first(expected, kRoom);
  for (std::size_t i = 0; i < std::min(kRoom, order.size()); ++i) points.push_back(seen[order[i]]);
  following.follow(points);
  std::ranges::move(points, std::back_inserter(points_));
  return found;
}

std::vector<Scored> CandidatePool::best_known(const std::vector<Expectation>& expected) const {
  const std::vector<std::size_t> order = best_first(expected, kBegunFrom);
  std::vector<Scored> known;
  for (std::size_t i = 0; i < std::min(kBegunFrom, order.size()); ++i) {
    known.push_back({points_[order[i]], expected[order[i]]});
  }
  return known;
}

void CandidatePool::remove(const UnitPoint& point,
                           const std::function<void(std::size_t)>& unfollow) {
  for (std::size_t i = points_.size(); i-- > 0;) {
    if (points_[i] == point) remove_at(i, unfollow);
  }
}

void CandidatePool::remove_at(std::size_t place, const std::function<void(std::size_t)>& unfollow) {
  std::swap(points_[place], points_.back());
  points_.pop_back();
  unfollow(place);
}

// The best stay.
void CandidatePool::shrink(const std::vector<Expectation>& expected, const Unfollow& unfollow) {
  std::vector<std::size_t> order = best_first(expected, kRoom);
  if (order.size() <= kRoom) return;
  const auto rest = order.begin() + static_cast<std::ptrdiff_t>(kRoom);
  std::sort(rest, order.end(), std::greater());  // the last first: places of the others stay
  for (auto place = rest; place != order.end(); ++place) remove_at(*place, unfollow);
}

}  // namespace tune::search::gp
