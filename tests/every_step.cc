#include "every_step.h"

#include "file_calls.h"
#include "skip.h"

namespace tune::testing {

int kill_at_every_step(const EveryStep& given) {
  for (int n = 1;; ++n) {
    given.prepare();
    int steps = 0;
    const Watched outcome =
        watch_file_calls_of(given.body, given.folder, [&](const FileCall&) { return ++steps < n; });
    if (outcome == Watched::kNotTraced) {
      skip("processes may not be traced here");
      return 0;
    }
    given.check(outcome == Watched::kKilled);
    if (outcome == Watched::kEnded) return n - 1;
  }
}

}  // namespace tune::testing
