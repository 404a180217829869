// The rungs of an experiment as columns: which trials came to each, and what became of them there.
#pragma once

#include <string>

#include "tune/view/experiment.h"

namespace tune::view {

// "milestone" has the rungs, from the lowest. One entry a trial and rung that it has reached, in
// the order of the decisions: "rung" (of those), "row", "value", "cut_off", "rank" and "of" (0: not
// told), "bracket" (kNoBracket: there is one alone), "verdict" (0: it went on, 1: stopped there, 2:
// it waits there, 3: it waited there and went on). Of folders whose events tell of no rung the
// values are those at the scheduler's rungs and where verdicts were given. The header's "time"
// names what milestones are counted in.
std::string rungs_blob(const Experiment& experiment);

}  // namespace tune::view
