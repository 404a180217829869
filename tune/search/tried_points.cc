#include "tune/search/tried_points.h"

namespace tune {

namespace {

constexpr int kMostTries = 1000;

}  // namespace

DrawnPoint draw_untried(const Encoding& encoding, const TriedPoints& tried, RandomStream& random) {
  DrawnPoint drawn;
  for (int i = 0; i < kMostTries; ++i) {
    drawn.point = encoding.draw(random);
    if (!tried.contains(drawn.point)) break;
  }
  if (!encoding.holds(drawn.point)) {
    drawn.note = "no configuration was found that keeps where";
  } else if (tried.contains(drawn.point)) {
    drawn.note = "no configuration was found that had not been tried";
  }
  return drawn;
}

}  // namespace tune
