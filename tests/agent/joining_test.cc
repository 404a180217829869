#include "core/agent/joining.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "core/rank_start.h"

namespace tune {
namespace {

TEST_CASE("a node without GPUs prepares its zygote for none") {
  const std::map<std::string, std::string> environment = {{"A", "1"}, {kGpuTrialsVariable, "1"}};
  NodeResources node;
  CHECK(zygote_environment_on(node, environment) == std::map<std::string, std::string>{{"A", "1"}});
  node.gpus.resize(1);
  CHECK(zygote_environment_on(node, environment) == environment);
}

}  // namespace
}  // namespace tune
