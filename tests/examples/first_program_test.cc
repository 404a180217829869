#include <doctest/doctest.h>

#include "process/sandbox.h"

namespace tune {
namespace {

TEST_CASE("the first program prints the best configuration and writes its CSV") {
  Sandbox box;
  const Finished run = box.run({TUNE_BINARY_DIR "/examples/first_program", "--seed", "1"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(lines_of(run.out).back().starts_with("Best config is: {\"lr\":"));
  CHECK(lines_of(box.read("result.csv")).size() == 17);  // 8 samples of a grid of 2, and the header
  CHECK(box.is_quiet());
}

}  // namespace
}  // namespace tune
