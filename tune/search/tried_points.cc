#include "tune/search/tried_points.h"

namespace tune {

namespace {

constexpr int kMostTries = 1000;

}  // namespace

DrawnPoint draw_untried(const Encoding& encoding, const TriedPoints& tried, RandomStream& random) {
  DrawnPoint drawn;
  for (int i = 0; i < kMostTries; ++i) {
    drawn.point = encoding.draw(random);
    if (const WhereRule* broken = encoding.broken_by(drawn.point)) throw_none_holds(*broken);
    if (!tried.contains(drawn.point)) return drawn;
  }
  drawn.note = "no configuration was found that had not been tried";
  return drawn;
}

}  // namespace tune
