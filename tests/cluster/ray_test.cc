// Sweeps on actors of Ray: with a stub as the interpreter, and on a real Ray cluster of this host.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cluster/cluster.h"
#include "core/refusal.h"
#include "process/sweep.h"
#include "skip.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::has;

// Stands in for `python -c HELPER`: $3 and what follows are the helper's words.
constexpr const char* kPython = R"sh(#!/bin/sh
shift 2
echo "$*" >>calls
[ -e down ] && { echo "no Ray cluster at address auto: it is down" >&2; exit 1; }
what=$1; shift
while [ $# -gt 1 ]; do
  case "$1" in
  --name) name=$2 ;; --script) script=$2 ;; --log) log=$2 ;; --prefix) prefix=$2 ;;
  esac
  shift 2
done
case "$what" in
start)
  if [ -e full ]; then echo "$script" >"$name.actor"; exit; fi
  setsid "$script" "$name" >>"$log" 2>&1 </dev/null &
  echo $! >"$name.actor" ;;
list)
  for file in "$prefix"*.actor; do
    [ -e "$file" ] || continue
    if [ -e full ]; then echo "${file%.actor}||PENDING|Ray has no room for it|"
    elif kill -0 "$(cat "$file")" 2>/dev/null; then echo "${file%.actor}||RUNNING||here"
    else rm "$file"; fi
  done ;;
stop)
  [ -e "$name.actor" ] && kill "$(cat "$name.actor")" 2>/dev/null
  rm -f "$name.actor" ;;
esac
exit 0
)sh";

std::string on_actors(int trials, int step_ms, const std::string& more) {
  return pooled_sweep(trials, step_ms, "  engine: ray\n  max: 2\n" + more + "listen: lo\n");
}

struct StubOfRay {
  StubOfRay() {
    box.write("python", kPython);
    ::chmod((box.path() / "python").c_str(), 0755);
    box.write("sweep.yaml", on_actors(6, 20,
                                      "  interpreter: ./python\n"
                                      "  submit: [--address, \"head:6379\"]\n"));
  }
  Sandbox box;
};

TEST_CASE("a sweep runs on actors of Ray, and none stays") {
  const StubOfRay ray;
  const Finished finished =
      ray.box.start_tune({"run", "sweep.yaml", "--name", "s"}).wait(seconds(60));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(joined(ray.box) >= 2);  // with the driver's own, which runs no trials
  check_complete(ray.box, "results/s", 6, 8);
  check_nothing_left(ray.box, "results/s");
  const std::string calls = ray.box.read("calls");
  CHECK_HAS(calls, "--cpu 1 --gpu 0 --address head:6379");
  CHECK_FALSE(has(calls, "tune1."));
  CHECK_HAS(ray.box.read("results/s/nodes/agent.sh"), "--gpus 0");
}

TEST_CASE("trials say that Ray has no room, and a cluster that is not there is refused") {
  const StubOfRay ray;
  ray.box.write("full", "");
  Running run = ray.box.start_tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(Sandbox::eventually([&] {
    return has(ray.box.tune({"nodes", "results/s"}).out, "PENDING (Ray has no room for it)");
  }));
  run.signal(SIGINT);
  run.wait(seconds(30));
  for (const auto& entry : fs::directory_iterator(ray.box.path())) {
    CHECK_MESSAGE(entry.path().extension() != ".actor", entry.path());
  }
  ray.box.write("down", "");
  const Finished refused = ray.box.tune({"run", "sweep.yaml", "--name", "t"});
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "pool: the engine ray: ");
  CHECK_HAS(refused.err, "no Ray cluster at address auto");
  CHECK_FALSE(fs::exists(ray.box.path() / "results/t"));
}

TEST_CASE("an interpreter without Ray is refused by name") {
  const StubOfRay ray;
  ray.box.write("python", "#!/bin/sh\nexec python3 -I -S \"$@\"\n");  // no package is found by it
  const Finished refused = ray.box.tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "No module named 'ray': name the interpreter of your Ray: interpreter: ");
  CHECK_FALSE(has(refused.err, "Traceback"));
  CHECK_FALSE(fs::exists(ray.box.path() / "results/s"));
}

// ---- A real one

// A Python that has Ray: of the comparisons with Ray, or TUNE_RAY_PYTHON.
std::string python_with_ray() {
  if (const char* named = std::getenv("TUNE_RAY_PYTHON")) return named;
  const char* home = std::getenv("HOME");
  for (const char* peer : {"ray", "ray_torch"}) {
    const fs::path at = fs::path(home == nullptr ? "/" : home) / ".cache/tune/peers" / peer;
    if (fs::exists(at / "bin/ray")) return at / "bin/python";
  }
  return {};
}

// A cluster of this host alone, with a token of its own.
class Ray {
 public:
  static std::unique_ptr<Ray> start() {
    if (is_not_asked_for(Takes::kMinutes)) return nullptr;
    const std::string python = python_with_ray();
    if (!python.empty()) return std::unique_ptr<Ray>(new Ray(python));
    testing::skip("no Ray: bench/peers/setup.sh ray installs it, or set TUNE_RAY_PYTHON");
    return nullptr;
  }
  // Not by `ray stop`, which ends all clusters of a host.
  ~Ray() {
    head_->signal(SIGTERM);
    head_->wait(seconds(20));
    for (const pid_t pid : box.processes()) ::kill(pid, SIGKILL);
  }
  Running sweep(int trials, int step_ms, const std::string& more = "") const {
    box.write("sweep.yaml", on_actors(trials, step_ms, "  interpreter: " + python_ + "\n" + more));
    return box.start_tune({"run", "sweep.yaml", "--name", "s"});
  }
  bool has_joined(std::size_t count) const {
    return Sandbox::eventually([&] { return joined(box) > count; }, seconds(120));
  }
  std::vector<pid_t> agents() const { return box.processes("--join-file"); }

  Sandbox box;

 private:
  explicit Ray(std::string python) : python_(std::move(python)) {
    const std::string port = std::to_string(20000 + ::getpid() % 30000);
    const Finished token =
        box.run({"sh", "-c", "head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \\n'"});
    box.set("RAY_AUTH_MODE", "token");
    box.set("RAY_AUTH_TOKEN", token.out);
    box.set("RAY_TMPDIR", box.path());
    box.set("RAY_ADDRESS", "127.0.0.1:" + port);
    const std::string ray = fs::path(python_).parent_path() / "ray";
    head_.reset(new Running(box.start(
        {ray, "start", "--head", "--block", "--node-ip-address=127.0.0.1", "--port=" + port,
         "--include-dashboard=false", "--num-cpus=2", "--disable-usage-stats"})));
    const std::string connect = "import ray; ray.init(address='auto', logging_level='error')";
    REQUIRE(Sandbox::eventually(
        [&] {
          return box.run({python_, "-c", connect}).code == 0;
        },
        seconds(90)));
  }

  std::string python_;
  std::unique_ptr<Running> head_;
};

TEST_CASE("a real Ray runs a sweep: an actor that is killed is replaced, and none stays") {
  const auto ray = Ray::start();
  if (!ray) return;
  Running run = ray->sweep(6, 500, "lease_s: 40\n");
  CHECK(ray->has_joined(1));  // beside the driver's own
  CHECK(Sandbox::eventually([&] { return has_results(ray->box, "results/s", 1); }, seconds(60)));
  const std::vector<pid_t> agents = ray->agents();
  REQUIRE_FALSE(agents.empty());
  const std::size_t before = joined(ray->box);
  ::kill(agents.front(), SIGKILL);
  CHECK(ray->has_joined(before));
  const Finished finished = run.wait(seconds(200));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_FALSE(has(finished.err, "ERROR"));
  check_complete(ray->box, "results/s", 6, 8);
  CHECK(Sandbox::eventually([&] { return ray->agents().empty(); }));
}

TEST_CASE("a driver that resumes takes back the actors of a killed one on a real Ray") {
  const auto ray = Ray::start();
  if (!ray) return;
  Running run = ray->sweep(4, 500);
  CHECK(ray->has_joined(1));  // beside the driver's own
  CHECK(Sandbox::eventually([&] { return has_results(ray->box, "results/s", 1); }, seconds(60)));
  run.signal(SIGKILL);
  run.wait();
  const Finished finished = ray->box.start_tune({"resume", "results/s"}).wait(seconds(200));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(joined(ray->box) <= 4);  // two on actors, and the own ones of two drivers
  check_complete(ray->box, "results/s", 4, 8);
  CHECK(Sandbox::eventually([&] { return ray->agents().empty(); }));
}

}  // namespace
}  // namespace tune
