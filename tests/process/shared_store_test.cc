// Experiments on one server that is there: each has keys of its own, also under one name and seed,
// and one that never began leaves none.
#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "core/json.h"
#include "core/platform/redis_store.h"
#include "core/refusal.h"
#include "platform/redis_servers.h"
#include "process/outcome.h"
#include "process/sweep.h"
#include "tune/results/experiment_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::FakeServer;
using testing::PlainServer;

std::string shared_sweep(const PlainServer& server, SweepText text = {}) {
  text.rest += "store: '" + server.address() + "'\n";
  return yaml(text);
}

SweepText slow_shared_sweep() {
  return {.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 15}",
          .rest = "stop: {training_iteration: 20}\ncheckpoint: {frequency: 1}\n"};
}

std::string number_of_keys(const PlainServer& server) {
  const FileDescriptor connection = testing::connect_to(server.socket());
  const std::string_view asked = "DBSIZE\r\n";
  char answer[32] = {};
  REQUIRE(::write(connection.get(), asked.data(), asked.size()) > 0);
  REQUIRE(::read(connection.get(), answer, sizeof answer - 1) > 0);
  return answer;
}

TEST_CASE("a fresh experiment of an earlier one's name and seed runs its own trials") {
  const PlainServer server;
  Sandbox box;
  box.write("sweep.yaml", shared_sweep(server));
  REQUIRE(box.tune({"run", "sweep.yaml", "--name", "s", "--quiet"}).code == 0);
  box.write("sweep.yaml", shared_sweep(server, {.config = "{lr: {uniform: [5, 6]}}",
                                                .num_samples = 2,
                                                .rest = "stop: {training_iteration: 7}\n"}));
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--quiet", "--fresh"});
  INFO(run.err);
  CHECK(run.code == 0);
  check_complete(box, "results/s", 2, 7);
  check_complete(box, "results/s.old-1", 4, 3);
}

TEST_CASE("two of one name and seed in different storages run at once, and end as one alone") {
  const PlainServer server;
  Sandbox box;
  box.write("sweep.yaml", shared_sweep(server, slow_shared_sweep()));
  Running first = box.start_tune(
      {"run", "sweep.yaml", "--name", "s", "--storage", "a", "--quiet", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "a/s", 3); }));
  const Finished second =
      box.tune({"run", "sweep.yaml", "--name", "s", "--storage", "b", "--quiet", "--cpus", "2"});
  INFO(second.err);
  CHECK(second.code == 0);
  const Finished finished = first.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "a/s", 4, 20);
  check_complete(box, "b/s", 4, 20);
  CHECK(lasting_table(box, "a/s") == lasting_table(box, "b/s"));
}

TEST_CASE("a start that was refused leaves no keys, and the name and the store are free") {
  const PlainServer server;
  Sandbox box;
  box.write("sweep.yaml", shared_sweep(server, {.trainable = "Curv"}));
  const Finished refused = box.tune({"run", "sweep.yaml", "--name", "s", "--quiet"});
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK(number_of_keys(server) == ":0\r\n");
  box.write("sweep.yaml", shared_sweep(server));
  CHECK(box.tune({"run", "sweep.yaml", "--name", "s", "--quiet"}).code == 0);
  check_complete(box, "results/s", 4, 3);
}

// One that was interrupted amidst its steps.
void interrupt_one(const Sandbox& box) {
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--quiet", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 5); }));
  run.signal(SIGINT);
  CHECK(run.wait().code == 128 + SIGINT);
}

void check_shared_resumes(const Sandbox& box) {
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_FALSE(testing::has(resumed.err + resumed.out, "begins anew"));
  check_complete(box, "results/s", 4, 20);
}

TEST_CASE("an interrupted one finds its journal again, also when its folder was renamed") {
  const PlainServer server;
  Sandbox box;
  box.write("sweep.yaml", shared_sweep(server, slow_shared_sweep()));
  interrupt_one(box);
  fs::rename(box.path() / "results/s", box.path() / "results/t");
  const Finished resumed = box.tune({"resume", "results/t"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_FALSE(testing::has(resumed.err + resumed.out, "begins anew"));
  check_complete(box, "results/t", 4, 20);
}

// Under the prefix that was made of name and seed, and with no word of it in the folder.
void make_it_of_an_earlier_version(const Sandbox& box, const PlainServer& server) {
  const std::string former = read_record(box.path() / "results/s")->prefix;
  const std::string file = "results/s/experiment.json";
  Value spec = parse_json(box.read(file), file);
  spec.erase("store_prefix");
  box.write(file, to_json(spec, 2));
  RedisStoreOptions options;
  options.address = server.address();
  options.prefix = former;
  RedisStore from(options);
  const std::string trial = trial_folders(box, "results/s").front().filename();
  options.prefix = "tune:s:" + trial.substr(0, trial.find('_'));
  RedisStore to(options);
  for (const Entry& entry : from.read({}, 1'000'000)) to.append(entry.id, entry.payload);
  from.remove_all();
}

TEST_CASE("a folder of a version that drew no prefix is resumed") {
  const PlainServer server;
  Sandbox box;
  box.write("sweep.yaml", shared_sweep(server, slow_shared_sweep()));
  interrupt_one(box);
  make_it_of_an_earlier_version(box, server);
  check_shared_resumes(box);
}

TEST_CASE("a new experiment whose keys are there already is refused, and they are left alone") {
  std::string requests;
  std::optional<FakeServer> server(std::in_place, [&](const std::string& request) -> std::string {
    requests += request;
    if (testing::has(request, "INFO\r\n$6\r\nSTREAM")) {
      return "*2\r\n$17\r\nlast-generated-id\r\n$3\r\n4-0\r\n";
    }
    return testing::has(request, "INFO") ? "$13\r\naof_enabled:1\r\n" : "+PONG\r\n";
  });
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.rest = "stop: {training_iteration: 3}\nstore: '" + server->address() + "'\n"}));
  const Finished refused = box.tune({"run", "sweep.yaml", "--name", "s"});
  server.reset();  // with its thread, which writes `requests`
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "there is a journal under tune:s:");
  CHECK_FALSE(testing::has(requests, "XADD"));
  CHECK_FALSE(testing::has(requests, "DEL"));
  CHECK_FALSE(fs::exists(box.path() / "results/s"));
}

}  // namespace
}  // namespace tune
