#include "tune/search/gp/candidate_search.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "tune/search/gp/candidates.h"

namespace tune::search::gp {

namespace {

constexpr int kDrawn = 500;
constexpr int kNearEach = 60;
constexpr double kWideChance = 0.4;  // that one near an observation is further off
constexpr double kWide = 0.15;
constexpr double kNarrow = 0.02;
// Wide steps of some parameters come first: the acquisition is often best in corners of the space,
// near which none of the candidates was drawn.
constexpr std::array kRounds = {Move{0.3, 0.4}, Move{0.25, 0.4}, Move{0.15, 0.4}, Move{0.08, 0.5},
                                Move{0.05},     Move{0.02},      Move{0.01}};
constexpr std::size_t kKept = 8;  // from round to round
constexpr int kNearKept = 40;
// Of a short search.
constexpr int kFewDrawn = 10;
constexpr std::array kFewRounds = {Move{0.3, 0.4}, Move{0.15, 0.4}, Move{0.08, 0.5}, Move{0.03}};
constexpr int kFewNearKept = 5;

class Search {
 public:
  Search(const Score& score, const Encoding& encoding, const TriedPoints& tried)
      : score_(score), encoding_(encoding), tried_(tried) {}

  // Adds those that hold and were not tried.
  void add(std::vector<UnitPoint> points) {
    std::erase_if(points, [&](const UnitPoint& point) {
      return tried_.contains(point) || !encoding_.holds(point);
    });
    if (points.empty()) return;
    const std::vector<Expectation> expected = score_(points);
    std::vector<Scored> scored;
    for (std::size_t i = 0; i < points.size(); ++i) {
      scored.push_back({std::move(points[i]), expected[i]});
    }
    keep(std::move(scored));
  }
  // Leaves the best kKept of these and those before.
  void keep(std::vector<Scored> scored) {
    std::ranges::move(scored, std::back_inserter(kept_));
    std::stable_sort(kept_.begin(), kept_.end(), [](const Scored& a, const Scored& b) {
      return a.expected.acquisition > b.expected.acquisition;
    });
    const auto same = [](const Scored& a, const Scored& b) { return a.point == b.point; };
    kept_.erase(std::unique(kept_.begin(), kept_.end(), same), kept_.end());
    if (kept_.size() > kKept) kept_.resize(kKept);
  }
  // Rounds of candidates near the best, so many near each.
  void go_on(std::span<const Move> rounds, int near_each, RandomStream& random) {
    for (const Move& move : rounds) {
      std::vector<UnitPoint> points;
      for (const Scored& each : kept_) {
        for (int i = 0; i < near_each; ++i) {
          points.push_back(near(each.point, move, encoding_, random));
        }
      }
      add(std::move(points));
    }
  }
  std::optional<Scored> best() const {
    if (kept_.empty()) return std::nullopt;
    return kept_.front();
  }

 private:
  const Score& score_;
  const Encoding& encoding_;
  const TriedPoints& tried_;
  std::vector<Scored> kept_;
};

std::vector<UnitPoint> first_candidates(const std::vector<UnitPoint>& best,
                                        const Encoding& encoding, RandomStream& random) {
  std::vector<UnitPoint> points;
  for (int i = 0; i < kDrawn; ++i) points.push_back(encoding.draw(random));
  for (const UnitPoint& one : best) {
    for (int i = 0; i < kNearEach; ++i) {
      const double scale = random.uniform() < kWideChance ? kWide : kNarrow;
      points.push_back(near(one, {scale}, encoding, random));
    }
  }
  return points;
}

}  // namespace

std::optional<Scored> best_candidate(const std::vector<UnitPoint>& best, const Score& score,
                                     const Encoding& encoding, const TriedPoints& tried,
                                     RandomStream& random) {
  Search search(score, encoding, tried);
  search.add(first_candidates(best, encoding, random));
  search.go_on(kRounds, kNearKept, random);
  return search.best();
}

std::optional<Scored> better_candidate(std::vector<Scored> known, const Score& score,
                                       const Encoding& encoding, const TriedPoints& tried,
                                       RandomStream& random) {
  Search search(score, encoding, tried);
  search.keep(std::move(known));
  std::vector<UnitPoint> points;
  for (int i = 0; i < kFewDrawn; ++i) points.push_back(encoding.draw(random));
  search.add(std::move(points));
  search.go_on(kFewRounds, kFewNearKept, random);
  return search.best();
}

Eigen::MatrixXd features_of(const std::vector<UnitPoint>& points, const Encoding& encoding) {
  const auto rows = encoding.feature_count();
  Eigen::MatrixXd features(rows, points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    encoding.write_features(points[i], std::span(features.data() + i * rows, rows));
  }
  return features;
}

std::vector<UnitPoint> best_of(const std::vector<UnitPoint>& points,
                               const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(std::min(order.size(), kBestPoints));
  std::vector<UnitPoint> best;
  for (const std::size_t i : order) best.push_back(points[i]);
  return best;
}

}  // namespace tune::search::gp
