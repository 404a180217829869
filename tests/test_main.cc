#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "skip.h"

namespace tune::testing {

namespace {
bool skipped = false;
}  // namespace

void skip(const std::string& why) {
  skipped = true;
  std::printf("skipped: %s\n", why.c_str());
}

}  // namespace tune::testing

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int code = context.run();
  return code == 0 && tune::testing::skipped ? tune::testing::kSkippedCode : code;
}
