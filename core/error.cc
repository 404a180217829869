#include "core/error.h"

#include <cstdio>
#include <cstdlib>

namespace tune {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kTrialFailed:
      return 1;
    case ErrorCode::kBadInput:
      return 2;
    default:
      return 3;
  }
}

namespace detail {

void check_failed(const char* expression, const char* file, int line,
                  const std::string& operands) {
  std::fprintf(stderr, "%s:%d: check failed: %s (%s)\n", file, line, expression, operands.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace detail
}  // namespace tune
