// Whether the engine of a pool could start anything, with stubs in a PATH of the test's own.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"
#include "tune/drive/pool.h"
#include "tune/drive/ticking_clock.h"

namespace tune {
namespace {

using namespace std::chrono_literals;

// Not in a job of Slurm, either.
class OwnPath {
 public:
  OwnPath() : before_(std::getenv("PATH")) {
    ::unsetenv("SLURM_JOB_ID");
    ::setenv("PATH", (folder_.path().string() + ":" + before_).c_str(), 1);
  }
  ~OwnPath() { ::setenv("PATH", before_.c_str(), 1); }
  void add(const std::string& program, const std::string& text) const {
    const std::string file = folder_.path() / program;
    write_file_atomically(file, text);
    REQUIRE(::chmod(file.c_str(), 0755) == 0);
  }
  // Nothing else is found.
  void be_alone() const { ::setenv("PATH", folder_.path().c_str(), 1); }

 private:
  testing::TemporaryFolder folder_;
  std::string before_;
};

ExperimentSpec over_ssh(const std::vector<std::string>& hosts) {
  ExperimentSpec spec;
  spec.name = "s";
  spec.options.pool.engine = "ssh";
  for (const std::string& host : hosts) spec.options.pool.hosts.push_back({host});
  return spec;
}

ExperimentSpec on_slurm() {
  ExperimentSpec spec;
  spec.name = "s";
  spec.options.pool.engine = "slurm";
  return spec;
}

constexpr const char* kSsh = R"(#!/bin/sh
case "$*" in
*hangs*) exec sleep 1000 ;;
*refuses*) echo "connect to host refuses port 22: Connection refused" >&2; exit 255 ;;
esac
)";

TEST_CASE("a host is asked however many before it hang, and each that is left out is named") {
  const OwnPath path;
  path.add("ssh", kSsh);
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < 2 * EngineCalls::kAtOnce; ++i) {
    hosts.push_back("hangs" + std::to_string(i));
  }
  hosts.insert(hosts.end(), {"refuses", "good"});
  const testing::TickingClock clock(50ms);
  const CheckedEngine engine = checked_engine(over_ssh(hosts), {.clock = clock});
  CHECK(engine.words.hosts == std::vector<std::string>{"good"});
  CHECK(engine.notice.starts_with("hosts without agents: hangs0: ssh did not end within 30 s; "));
  CHECK_HAS(engine.notice,
            "hangs15: ssh did not end within 30 s; refuses: ssh exited with code 255");
}

TEST_CASE("hosts none of which answers are refused, each with its reason") {
  const OwnPath path;
  path.add("ssh", kSsh);
  const testing::TickingClock clock(200ms);
  CHECK_HAS(testing::refusal([&] {
              checked_engine(over_ssh({"hangs", "refuses"}), {.clock = clock});
            }),
            "no host can be reached (hangs: ssh did not end within 30 s; refuses: ssh exited with");
}

TEST_CASE("a program of the engine that is missing is named") {
  const OwnPath path;
  path.be_alone();
  CHECK_HAS(testing::refusal([] { checked_engine(over_ssh({"a"})); }), "pool: the engine ssh: ");
  CHECK_HAS(testing::refusal([] { checked_engine(over_ssh({"a"})); }), "'ssh'");
  CHECK_HAS(testing::refusal([&] { checked_engine(on_slurm()); }), "'sbatch'");
  CHECK_HAS(testing::refusal([&] { checked_engine(on_slurm(), {.is_resumed = true}); }),
            "'sbatch'");
}

TEST_CASE("an engine that refuses for the moment is an error at first, and a notice for a resume") {
  const OwnPath path;
  path.add("sbatch", "#!/bin/sh\necho allocation failure: nodes are drained >&2\nexit 1\n");
  for (const char* program : {"squeue", "scancel"}) path.add(program, "#!/bin/sh\n");
  CHECK_HAS(testing::refusal([] { checked_engine(on_slurm()); }), "nodes are drained");
  const CheckedEngine engine = checked_engine(on_slurm(), {.is_resumed = true});
  CHECK_HAS(engine.notice,
            "would start nothing now (sbatch exited with code 1: allocation failure");
  CHECK(engine.words.start.front() == "sbatch");
}

TEST_CASE("a resume keeps hosts none of which answers now") {
  const OwnPath path;
  path.add("ssh", kSsh);
  const CheckedEngine engine =
      checked_engine(over_ssh({"refuses", "refuses-too"}), {.is_resumed = true});
  CHECK(engine.words.hosts.size() == 2);
  CHECK_HAS(engine.notice, "no host can be reached (refuses: ssh exited");
}

}  // namespace
}  // namespace tune
