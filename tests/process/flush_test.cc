// A whole run has on the disk what it says. A kill does not show that, it leaves what the
// kernel has: here each call that changes a file of the experiment is noted, of all processes.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "file_calls.h"
#include "process/outcome.h"
#include "process/sweep.h"
#include "skip.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::FileCall;
using testing::listed;
using testing::Unflushed;
using testing::Watched;

struct Noted {
  Unflushed unflushed;
  bool spec_is_lasting = false;    // when the first checkpoint was named
  std::set<fs::path> checkpoints;  // folders that got their final name
  std::set<std::string> renamed;   // other names that were given, of run.json say
};

void note(const FileCall& call, Noted& noted) {
  noted.unflushed.note(call);
  if (!call.done || call.failed || call.kind != FileCall::Kind::kRename) return;
  const std::string name = call.target.filename();
  if (!name.starts_with("checkpoint_")) {
    noted.renamed.insert(name);
    return;
  }
  if (noted.checkpoints.empty()) {
    const std::set<fs::path>& names = noted.unflushed.names();
    noted.spec_is_lasting = std::none_of(names.begin(), names.end(), [](const fs::path& given) {
      return given.filename() == "experiment.json";
    });
  }
  noted.checkpoints.insert(call.target);
}

TEST_CASE("checkpoints and files that are replaced are on the disk before they have their names") {
  Sandbox box;
  box.set("ASAN_OPTIONS", "detect_leaks=0");  // which it cannot under watch
  box.write("sweep.yaml", yaml({.num_samples = 2,
                                .rest = "stop: {training_iteration: 4}\n"
                                        "checkpoint: {frequency: 1, keep: 2}\n"}));
  fs::create_directory(box.path() / "results");
  Noted noted;
  const Watched outcome = testing::watch_file_calls_of(
      [&] {
        box.become_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1"});
      },
      box.path() / "results",
      [&](const FileCall& call) {
        note(call, noted);
        return true;
      });
  if (outcome == Watched::kNotTraced) return testing::skip("processes may not be traced here");
  INFO(box.read("err"));
  check_complete(box, "results/s", 2, 4);
  CHECK(noted.checkpoints.size() == 2 * 4);
  for (const char* name : {"experiment.json", "run.json", "results.csv"}) {
    CAPTURE(name);
    CHECK(noted.renamed.contains(name));
  }
  CHECK(listed(noted.unflushed.renamed_too_early()) == "");
  CHECK(noted.spec_is_lasting);
  // The last names of a run are as lasting as its checkpoints'.
  for (const char* name : {"experiment.json", "run.json", "results.csv"}) {
    CAPTURE(name);
    CHECK_FALSE(noted.unflushed.names().contains(box.path() / "results/s" / name));
  }
  for (const fs::path& checkpoint : noted.checkpoints) {
    CHECK(listed(noted.unflushed.at_or_below(checkpoint)) == "");
    CHECK_FALSE(noted.unflushed.names().contains(checkpoint));
  }
}

}  // namespace
}  // namespace tune
