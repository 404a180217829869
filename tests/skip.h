// For a test that this machine cannot run: it says so and returns. Its program then ends with
// kSkippedCode, which ctest and run.sh show as skipped, unless another of its tests fails.
#pragma once

#include <string>

namespace tune::testing {

inline constexpr int kSkippedCode = 77;

// Once a test case. `why` is a short text: "no mount namespaces here".
void skip(const std::string& why);

}  // namespace tune::testing
