// Sweeps in Jobs of Kubernetes, with a stub as kubectl, whose cluster is this host. Manifests are
// checked by kubernetes-validate and the list's template by a real kubectl, where these are
// installed.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "cluster/cluster.h"
#include "core/refusal.h"
#include "process/sweep.h"
#include "skip.h"
#include "tune/drive/kubernetes_words.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::has;

struct Kubernetes {
  explicit Kubernetes(const std::string& text) {
    fs::create_directories(box.path() / "cluster");
    fs::create_directories(box.path() / "bin");
    fs::copy_file(TUNE_SOURCE_DIR "/tests/cluster/kubectl.sh", box.path() / "bin/kubectl");
    box.set("PATH",
            (box.path() / "bin").string() + ":" TUNE_BINARY_DIR "/bin:" + std::getenv("PATH"));
    box.write("sweep.yaml", text);
  }
  Running start() const { return box.start_tune({"run", "sweep.yaml", "--name", "s"}); }
  bool says(const std::string& part) const {
    return Sandbox::eventually([&] { return has(box.read("results/s/events.jsonl"), part); });
  }
  bool is_empty() const {
    for (const auto& entry : fs::directory_iterator(box.path() / "cluster")) {
      const std::string name = entry.path().filename();
      if (name == "token" || name.starts_with("tune-")) return false;
    }
    return true;
  }
  Sandbox box;
};

std::string in_jobs(int trials, int step_ms, const std::string& more = "") {
  return pooled_sweep(trials, step_ms,
                      "  engine: kubernetes\n  image: registry/tune:1\n  max: 2\n"
                      "  submit: [--namespace=ml]\n" +
                          more + "listen: lo\n");
}

TEST_CASE("a sweep runs in Jobs of Kubernetes, and neither Job nor Secret stays") {
  const Kubernetes cluster(in_jobs(8, 20));
  const Finished finished = cluster.start().wait(seconds(60));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(joined(cluster.box) >= 2);  // with the driver's own, which runs no trials
  check_complete(cluster.box, "results/s", 8, 8);
  check_nothing_left(cluster.box, "results/s");
  CHECK(cluster.is_empty());
  const std::string calls = cluster.box.read("cluster/calls");
  CHECK_HAS(calls, "--namespace=ml create -f - -o name");
  CHECK_FALSE(has(calls, "tune1."));
  CHECK_FALSE(has(cluster.box.read("cluster/manifests"), "tune1."));
  std::string logs;
  for (const auto& entry : fs::directory_iterator(cluster.box.path() / "results/s/nodes")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("tune-")) logs += cluster.box.read("results/s/nodes/" + name);
  }
  CHECK_HAS(logs, "joined the experiment");
}

TEST_CASE("trials say why their pods wait, and a replaced token comes to the cluster") {
  const Kubernetes cluster(in_jobs(2, 20));
  cluster.box.write("cluster/full", "");
  Running run = cluster.start();
  constexpr const char* kWait =
      "2 trials wait: 2 jobs Pending (Unschedulable: 0/1 nodes are available) for ";
  CHECK(Sandbox::eventually([&] {
    return has(cluster.box.tune({"nodes", "results/s"}).out, kWait);
  }));
  {
    const Running status = cluster.box.start_tune({"status", "results/s"});  // follows the run
    CHECK(Sandbox::eventually([&] { return has(status.said(), kWait); }));
  }
  const std::string before = cluster.box.read("cluster/token");
  CHECK(before == cluster.box.read("results/s/nodes/join"));
  cluster.box.write("cluster/no-secrets", "");
  CHECK(cluster.box.tune({"token", "results/s", "--rotate"}).code == 0);
  CHECK(cluster.says("preparing the pool's nodes, tried again"));
  CHECK(cluster.box.read("cluster/token") == before);
  fs::remove(cluster.box.path() / "cluster/no-secrets");
  CHECK(Sandbox::eventually([&] {
    const std::string now = cluster.box.read("cluster/token");
    return now != before && now == cluster.box.read("results/s/nodes/join");
  }));
  fs::remove(cluster.box.path() / "cluster/full");
  const Finished finished = run.wait(seconds(60));
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(cluster.box, "results/s", 2, 8);
}

TEST_CASE("an image that cannot be had is a start in vain, told in words, and its Job goes") {
  const Kubernetes cluster(in_jobs(2, 20));
  cluster.box.write("cluster/no-image", "");
  Running run = cluster.start();
  CHECK(cluster.says("Pending (ImagePullBackOff: Back-off pulling image)"));
  CHECK(cluster.says("has ended before its agent took part"));  // the queue was told before
  run.signal(SIGINT);
  const Finished finished = run.wait(seconds(30));
  INFO(finished.err);
  CHECK_HAS(finished.err, "has ended before its agent took part");
  CHECK(cluster.is_empty());
}

TEST_CASE("an image without tune is told by the last words of its pod") {
  const Kubernetes cluster(in_jobs(2, 20));
  cluster.box.write("cluster/bare", "");
  Running run = cluster.start();
  CHECK(cluster.says("tune: not found"));
  run.signal(SIGINT);
  const Finished finished = run.wait(seconds(30));
  CHECK_HAS(finished.err, "Error, exit code 127");
  CHECK(cluster.is_empty());
}

TEST_CASE("a cluster that refuses, or has no kubectl, is told of before a trial starts") {
  const Kubernetes cluster(in_jobs(2, 20));
  const auto refused = [&](const char* cause) {
    const Finished finished = cluster.start().wait();
    CHECK(finished.code == 2);
    CHECK_HAS(finished.err, "pool: the engine kubernetes");
    CHECK_HAS(finished.err, cause);
    CHECK_FALSE(fs::exists(cluster.box.path() / "results/s"));
  };
  cluster.box.write("cluster/forbidden", "");
  refused("cannot create");
  cluster.box.write("cluster/down", "");
  refused("connection to the server was refused");
  Sandbox bare;
  bare.set("TUNE_REDIS_SERVER", lines_of(bare.run({"which", "redis-server"}).out).at(0));
  fs::create_symlink("/bin/sh", bare.path() / "sh");
  bare.set("PATH", bare.path());
  bare.write("sweep.yaml", in_jobs(2, 20));
  const Finished none = bare.tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(none.code == 2);
  CHECK_HAS(none.err, "there is no program 'kubectl' in PATH");
}

// ---- With programs that may be missing

bool is_installed(const Sandbox& box, const std::string& program) {
  return box.run({"sh", "-c", "command -v " + program}).code == 0;
}

TEST_CASE("the manifest that validate prints is one of Kubernetes, to the last field") {
  const Kubernetes cluster(
      in_jobs(2, 20, "  time: 4h\n  queue: team\n  setup: [echo $(hostname), \"echo 'a: b'\"]\n"));
  const Finished shown = cluster.box.tune({"validate", "sweep.yaml", "--pool"});
  INFO(shown.err);
  CHECK(shown.code == 0);
  CHECK_HAS(shown.out, "kind: Job");
  CHECK_HAS(shown.out, "activeDeadlineSeconds: 14400");
  CHECK_FALSE(has(cluster.box.read("cluster/calls"), "apply"));  // nothing was made
  if (!is_installed(cluster.box, "kubernetes-validate")) {
    return testing::skip("no kubernetes-validate: tests/cluster/setup.sh installs it");
  }
  const auto validated = [&](const std::string& manifest) {
    cluster.box.write("job.yaml", manifest);
    return cluster.box.run({"kubernetes-validate", "--strict", "job.yaml"});
  };
  CHECK(validated(shown.out).code == 0);
  std::string wrong = shown.out;
  wrong.replace(wrong.find("backoffLimit"), 7, "backOff");
  CHECK(validated(wrong).code != 0);
  // One on which nodes are left out, and GPUs are asked for.
  PoolOptions pool{.engine = "kubernetes", .node = {.memory = "1GiB"}, .image = "a"};
  EnginePlace place;
  place.node.cpu_units = kUnit / 2;
  place.node.gpus.resize(2);
  place.node.memory_bytes = 1 << 30;
  place.script = "#!/bin/sh\n";
  const Finished other = validated(kubernetes_manifest(
      pool, place, {{"name", "tune-x-1"}, {"experiment", "tune-x"}, {"exclude", "n1,n2"}}));
  CHECK_MESSAGE(other.code == 0, other.out);
}

TEST_CASE("a real kubectl prints the list as it is read, and patches a Job") {
  const Sandbox box;
  if (!is_installed(box, "kubectl")) return testing::skip("no kubectl");
  const EngineWords engine = kubernetes_jobs({.image = "a", .patch = "spec: {suspend: true}"}, {});
  // Without a server it prints one object after the other.
  std::string form = engine.list.back();
  const std::string begin = "go-template={{range .items}}";
  REQUIRE(form.starts_with(begin));
  form = form.substr(begin.size(), form.size() - begin.size() - std::string("{{end}}").size());
  std::string list;
  const auto add = [&](const std::string& object) {
    box.write("object.yaml", object);
    const Finished shown = box.run(
        {"kubectl", "label", "--local", "-f", "object.yaml", "a=b", "-o", "go-template=" + form});
    INFO(shown.err);
    REQUIRE(shown.code == 0);
    list += shown.out;
  };
  const std::string meta =
      "metadata: {name: tune-x-1, labels: {tune/allocation: tune-x-1, tune/experiment: tune-x}}\n";
  add("apiVersion: batch/v1\nkind: Job\n" + meta +
      "spec: {template: {spec: {containers: [{name: a}]}}}\n");
  add("apiVersion: v1\nkind: Pod\n" + meta +
      "spec: {containers: [{name: a}]}\nstatus:\n  phase: Pending\n  conditions:\n"
      "  - {type: PodScheduled, status: \"False\", reason: Unschedulable, message: no node}\n");
  auto listed = listed_by_kubernetes(list, "tune-x-");
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].reason == "Pending (Unschedulable: no node)");
  add("apiVersion: v1\nkind: Pod\n" + meta +
      "spec: {nodeName: n1, containers: [{name: a}]}\nstatus:\n  phase: Pending\n"
      "  containerStatuses:\n  - {name: a, ready: false, restartCount: 0, image: a, imageID: a,\n"
      "     state: {waiting: {reason: ImagePullBackOff, message: gone}}}\n");
  listed = listed_by_kubernetes(list, "tune-x-");
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].is_hopeless);
  add("apiVersion: v1\nkind: Pod\n" + meta +
      "spec: {nodeName: n1, containers: [{name: a}]}\nstatus:\n  phase: Running\n"
      "  conditions:\n  - {type: Ready, status: \"True\"}\n");
  listed = listed_by_kubernetes(list, "tune-x-");
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].state == AllocationState::kRunning);
  CHECK(listed[0].host == "n1");

  box.write("job.yaml", "apiVersion: batch/v1\nkind: Job\n" + meta +
                            "spec: {template: {spec: {containers: [{name: a}]}}}\n");
  std::vector<std::string> show = filled_pool_words(engine.show, {});
  std::ranges::replace(show, std::string(kInputFile), std::string("job.yaml"));
  CHECK_HAS(box.run(show).out, "suspend: true");
}

}  // namespace
}  // namespace tune
