#include "core/agent/joining.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "core/platform/files.h"
#include "core/rank_start.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

TEST_CASE("a node without GPUs prepares its zygote for none") {
  const std::map<std::string, std::string> environment = {{"A", "1"}, {kGpuTrialsVariable, "1"}};
  NodeResources node;
  CHECK(zygote_environment_on(node, environment) == std::map<std::string, std::string>{{"A", "1"}});
  node.gpus.resize(1);
  CHECK(zygote_environment_on(node, environment) == environment);
}

// A driver's folder, with its proof.
struct Folder {
  explicit Folder(const std::string& proof) {
    setup.experiment_directory = files.path() / "s";
    setup.joined.proof_file = "nodes/proof";
    setup.joined.proof = "of this driver";
    fs::create_directories(files.path() / "s/nodes");
    write_file_atomically(files.path() / "s/nodes/proof", proof);
  }
  Sight sight() const { return sight_of(setup.experiment_directory, setup.joined); }
  bool is_still(const std::string& former) const {
    return sees_still(files.path() / former, setup);
  }
  TemporaryFolder files;
  SetupExperiment setup;
};

TEST_CASE("no life of an agent has the name of another one") {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) names.insert(life_name());
  CHECK(names.size() == 100);
}

TEST_CASE("a folder is the driver's when it holds that driver's own proof, not any") {
  const Folder folder("of this driver");
  CHECK(folder.sight() == Sight::kWhole);
  for (const auto& entry : fs::directory_iterator(folder.files.path() / "s/nodes")) {
    CHECK(entry.path().filename() == "proof");  // no trace of the look
  }
  CHECK(Folder("of an earlier driver").sight() == Sight::kNone);
  SetupExperiment elsewhere = folder.setup;
  elsewhere.experiment_directory += "2";
  CHECK(sight_of(elsewhere.experiment_directory, elsewhere.joined) == Sight::kNone);
}

TEST_CASE("a later driver's folder is the same when its proof is there and its path leads there") {
  const Folder folder("of this driver");
  CHECK(folder.is_still("s"));
  fs::create_directory_symlink("s", folder.files.path() / "link");
  CHECK(folder.is_still("link"));
  fs::create_directory(folder.files.path() / "other");
  CHECK_FALSE(folder.is_still("other"));
  CHECK_FALSE(folder.is_still("none"));
  CHECK_FALSE(Folder("of an earlier driver").is_still("s"));
}

}  // namespace
}  // namespace tune
