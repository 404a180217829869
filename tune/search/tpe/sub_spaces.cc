#include "tune/search/tpe/sub_spaces.h"

#include <algorithm>

namespace tune::search::tpe {

std::vector<SubSpace> sub_spaces_of(const Encoding& encoding) {
  // A parameter comes after its choice, and so does its sub-space after the choice's.
  std::vector<SubSpace> found;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const auto& condition = encoding.parameters()[i].condition;
    const auto same = [&](const SubSpace& each) { return each.condition == condition; };
    const auto at = std::find_if(found.begin(), found.end(), same);
    if (at == found.end()) {
      found.push_back({condition, {i}});
    } else {
      at->parameters.push_back(i);
    }
  }
  return found;
}

bool is_active(const SubSpace& sub_space, const UnitPoint& point, const Encoding& encoding) {
  return encoding.is_active(sub_space.parameters.front(), point);
}

}  // namespace tune::search::tpe
