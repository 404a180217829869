#include "core/build.h"

namespace tune {

std::string_view build_version() {
  return TUNE_VERSION;
}

}  // namespace tune
