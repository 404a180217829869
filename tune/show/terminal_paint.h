// The additions of a terminal with colours to the plain block: colours for lines that are rendered
// and fit already, and about how long the sweep still takes. Pure.
#pragma once

#include <string>
#include <string_view>

#include "tune/results/reporter.h"

namespace tune {

// "about 12 min to go": what trials took so far, for those that are not over yet. Rough, as a
// scheduler stops some of them early. Empty while there is nothing to tell it by.
std::string time_to_go(const ExperimentStatus& status);

// A line of the block in colours; `best` is the best trial's name, whose row is bold; empty: none.
// Without its colours it is the same line.
std::string painted(const std::string& line, std::string_view best);

}  // namespace tune
