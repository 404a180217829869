// The real surrogates and tables, where a folder of them is. Their files are not in this tree:
// github.com/slds-lmu/yahpo_data has them.
#include <doctest/doctest.h>

#include <cstdlib>

#include "skip.h"
#include "tune/simulate/said.h"
#include "tune/simulate/task_files.h"

namespace tune {
namespace {

TEST_CASE("the real surrogates compute what onnxruntime does") {
  const char* tasks = std::getenv("TUNE_TASKS_DIR");
  if (tasks == nullptr) {
    testing::skip("TUNE_TASKS_DIR names no folder with YAHPO's lcbench and rbv2_xgboost");
    return;
  }
  const Value expected = said_in("yahpo.json");
  for (const char* folder : {"lcbench", "rbv2_xgboost"}) {
    CAPTURE(folder);
    check_same(network_in(std::filesystem::path(tasks) / folder), expected.at(folder));
  }
  for (const auto& task : tasks_in(tasks)) {
    CAPTURE(task->name());
    CHECK(!task->space().domains().empty());
    CHECK(!task->metrics().empty());
  }
}

}  // namespace
}  // namespace tune
