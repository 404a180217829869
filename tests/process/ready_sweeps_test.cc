// The sweeps of config/, as a user who copies one of them finds them.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "process/sandbox.h"
#include "skip.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// Relative to the sweep; empty: it has none.
std::string plugin_of(const Sandbox& box, const fs::path& sweep) {
  for (const std::string& line : lines_of(box.read(sweep))) {
    constexpr std::string_view kKey = "plugin: ";
    if (line.starts_with(kKey)) return line.substr(kKey.size(), line.find(".so") + 3 - kKey.size());
  }
  return {};
}

TEST_CASE("every sweep of config/ is one that tune validate finds nothing wrong with") {
  if (!fs::exists(TUNE_SOURCE_DIR "/build/lib")) {
    return testing::skip("there is no build/lib, of which the sweeps of config/ name plugins");
  }
  const Sandbox box;
  int checked = 0;
  for (const auto& file : fs::directory_iterator(TUNE_SOURCE_DIR "/config")) {
    const fs::path sweep = file.path();
    if (sweep.extension() != ".yaml") continue;
    CAPTURE(sweep);
    const std::string plugin = plugin_of(box, sweep);
    const bool is_built = plugin.empty() || fs::exists(sweep.parent_path() / plugin);
    if (!is_built) continue;  // without LibTorch
    const Finished told = box.tune({"validate", sweep});
    INFO(told.err);
    ++checked;
    if (sweep.filename() == "warm_start.yaml") {  // which wants the experiment that is to be known
      CHECK(told.code == 2);
      CHECK(told.err.find("results/latest holds no experiment") != std::string::npos);
      continue;
    }
    CHECK(told.code == 0);
    CHECK(told.out.starts_with("ok: "));
  }
  CHECK(checked >= 7);  // those of the engines need no LibTorch
}

}  // namespace
}  // namespace tune
