// A server that comes back without its last entries: the sweep goes on, and can be resumed.
#include <doctest/doctest.h>

#include <signal.h>

#include <filesystem>
#include <string>

#include "core/refusal.h"
#include "platform/redis_servers.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

fs::path append_file(const testing::PlainServer& server) {
  const fs::path latest = server.folder() / "appendonlydir/appendonly.aof.1.incr.aof";
  return fs::exists(latest) ? latest : server.folder() / "appendonly.aof";  // before 7.0
}

TEST_CASE("a store that comes back without its last entries costs no result") {
  testing::PlainServer server;
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 30}",
                  .rest = "stop: {training_iteration: 40}\ncheckpoint: {frequency: 4}\n"
                          "store: '" +
                          server.address() + "'\n"}));
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "4"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 8); }));
    const auto earlier = fs::file_size(append_file(server));
    REQUIRE(Sandbox::eventually([&] {
      return has_results(box, "results/s", 20) && fs::file_size(append_file(server)) > earlier;
    }));
    server.kill();
    fs::resize_file(append_file(server), earlier);
    server.start();
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 60); }));
    run.signal(SIGKILL);
    const Finished killed = run.wait();
    CHECK_HAS(killed.err, "the store has lost entries of the journal");
  }
  CHECK(box.is_quiet());
  const Finished resumed = box.tune({"resume", "results/s", "--quiet"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(box, "results/s", 4, 40);
  check_nothing_left(box, "results/s");
}

}  // namespace
}  // namespace tune
