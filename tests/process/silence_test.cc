// A trial that reports nothing for much longer than its steps take.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <string>

#include "core/refusal.h"
#include "process/sandbox.h"

namespace tune {
namespace {

TEST_CASE("a trial that has stopped to report is named, and goes on") {
  Sandbox box;
  box.write("sweep.yaml", R"(
command: [sh, -c, 'for i in 1 2 3; do echo "tune: {\"loss\": $i}"; done; exec sleep 600', sh, "${x}"]
config: {x: {uniform: [0, 1]}}
num_samples: 1
metric: loss
mode: min
)");
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
  const auto is_named = [&] { return testing::has(run.said(), "has reported nothing for "); };
  CHECK(Sandbox::eventually(is_named, std::chrono::seconds(90)));  // after a minute
  CHECK_FALSE(run.ends_within(std::chrono::seconds(0)));
  run.signal(SIGINT);
  run.signal(SIGINT);  // at once
  CHECK(run.wait().code == 128 + SIGINT);
  CHECK(box.is_quiet());
}

}  // namespace
}  // namespace tune
