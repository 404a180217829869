#include "tune/search/tpe/model.h"

#include <algorithm>
#include <utility>

namespace tune::search::tpe {

namespace {

constexpr int kRounds = 8;  // in which no candidate could be proposed

}  // namespace

Model::Model(const Encoding& encoding, const std::vector<SubSpace>& sub_spaces,
             const Evidence& evidence)
    : encoding_(encoding),
      sub_spaces_(sub_spaces),
      evidence_(evidence),
      densities_(sub_spaces.size()) {}

const Model::Densities& Model::densities(std::size_t sub_space) {
  auto& found = densities_[sub_space];
  if (!found) {
    const SubSpace& parameters = sub_spaces_[sub_space];
    found.emplace(Densities{{encoding_, parameters, evidence_.good_points},
                            {encoding_, parameters, evidence_.other_points}});
  }
  return *found;
}

// Of the sub-space's parameters, beside what the point has; the best first.
std::vector<Candidate> Model::drawn(std::size_t sub_space, const Candidate& begun,
                                    std::size_t draws, RandomStream& random) {
  const Densities& made = densities(sub_space);
  std::vector<UnitPoint> points(draws, begun.point);
  for (UnitPoint& point : points) made.good.draw(point, random);
  const std::vector<double> of_good = made.good.log_densities(points);
  const std::vector<double> of_others = made.others.log_densities(points);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < draws; ++i) {
    candidates.push_back({std::move(points[i]), begun.log_proportion + of_good[i] - of_others[i]});
  }
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.log_proportion > b.log_proportion; });
  return candidates;
}

// The first sub-space has been drawn.
Candidate Model::completed(Candidate begun, std::size_t draws, RandomStream& random) {
  for (std::size_t i = 1; i < sub_spaces_.size(); ++i) {
    if (!is_active(sub_spaces_[i], begun.point, encoding_)) continue;
    begun = std::move(drawn(i, begun, draws, random).front());
  }
  return begun;
}

std::optional<Candidate> Model::best(std::size_t draws,
                                     const std::function<bool(const UnitPoint&)>& is_free,
                                     RandomStream& random) {
  const Candidate nothing = {UnitPoint(encoding_.size(), kInactive), 0};
  for (int round = 0; round < kRounds; ++round) {
    for (Candidate& each : drawn(0, nothing, draws, random)) {
      Candidate candidate = completed(std::move(each), draws, random);
      if (is_free(candidate.point)) return candidate;
    }
  }
  return std::nullopt;
}

}  // namespace tune::search::tpe
