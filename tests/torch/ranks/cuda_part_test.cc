// Tests without a GPU, but with all libraries of LibTorch's CUDA part: a file of its own, so that
// where these are missing no other test is shown as skipped.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "ranks.h"
#include "skip.h"
#include "trainables/torch/device.h"
#include "trainables/torch/random.h"

namespace tune {
namespace {

using testing::is_refused;
using testing::values_of;

TEST_CASE("a seed leaves CUDA to be loaded later; who asks for it too early hears so") {
  for (const bool early : {false, true}) {
    CAPTURE(early);
    const auto ends = testing::run_ranks(1, [&](const Rendezvous&) {
      ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
      early ? at::manual_seed(1) : seed_all(1);
      if (is_refused([] { own_device(); }, "cannot be loaded")) return std::vector<double>{-1};
      const bool too_late = is_refused([] { own_device(); }, "keeps the answer that there is none");
      return std::vector<double>{too_late ? 1.0 : 0.0};
    });
    const std::vector<double> seen = values_of(ends);
    if (seen == std::vector<double>{-1}) {
      testing::skip("no CUDA part");
      return;
    }
    CHECK(seen == std::vector<double>{early ? 1.0 : 0.0});
  }
}

}  // namespace
}  // namespace tune
