#include "tune/drive/kubernetes_words.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "core/strings.h"

namespace tune {
namespace {

using Words = std::vector<std::string>;
using testing::has;

struct KubernetesCase {
  KubernetesCase() {
    pool.engine = "kubernetes";
    pool.image = "registry/tune:1";
    pool.submit = {"--namespace=ml"};
    place.node.cpu_units = 8 * kUnit;
    place.script = "#!/bin/sh\nexec tune agent --name \"$1\"\n";
    values = {{"name", "tune-x-3"},
              {"prefix", "tune-x-"},
              {"experiment", "tune-x"},
              {"log", "/e f/3.log"},
              {"join_file", "/e/nodes/join"},
              {"host", ""},
              {"exclude", ""},
              {"id", ""}};
  }
  std::string manifest() const { return kubernetes_manifest(pool, place, values); }
  PoolOptions pool;
  EnginePlace place;
  PoolValues values;
};

TEST_CASE_FIXTURE(KubernetesCase, "an agent is a Job that is never tried again") {
  const std::string text = manifest();
  for (const char* part :
       {"kind: Job\n", "name: \"tune-x-3\"\n", "backoffLimit: 0\n", "restartPolicy: Never\n",
        "ttlSecondsAfterFinished: 3600\n", "terminationGracePeriodSeconds: 150\n",
        "{tune/experiment: \"tune-x\", tune/allocation: \"tune-x-3\"}",
        "image: \"registry/tune:1\"\n", "requests: {cpu: \"8\"}\n", "limits: {cpu: \"8\"}\n",
        "secretName: \"tune-x\"",
        "          exec tune agent --name \"$1\"\n        - agent\n        - \"tune-x-3\"\n"}) {
    CHECK_HAS(text, part);
  }
  for (const char* part : {"activeDeadlineSeconds", "kueue", "affinity", "nvidia", "memory: \""}) {
    CHECK_FALSE_MESSAGE(has(text, part), part);
  }
}

TEST_CASE_FIXTURE(KubernetesCase, "a Job asks for what the node and the time of the pool say") {
  pool.node.memory = "60GiB";
  pool.time = "4h";
  pool.drain = "5m";
  pool.queue = "team-a";
  place.node.memory_bytes = pool.node.memory.bytes();
  place.node.gpus.resize(4);
  const std::string text = manifest();
  const std::string share = "{cpu: \"8\", memory: \"61440Mi\", nvidia.com/gpu: \"4\"}\n";
  CHECK_HAS(text, "requests: " + share);
  CHECK_HAS(text, "limits: " + share);
  CHECK_HAS(text, "activeDeadlineSeconds: 14400\n");
  CHECK_HAS(text, "terminationGracePeriodSeconds: 330\n");
  // The queue admits Jobs: its label is theirs alone.
  CHECK_HAS(text, "tune/allocation: \"tune-x-3\", kueue.x-k8s.io/queue-name: \"team-a\"}\nspec:");
  CHECK(text.find("kueue") == text.rfind("kueue"));
}

TEST_CASE_FIXTURE(KubernetesCase, "nodes on which no agent ever came are left out") {
  values["exclude"] = "n1,n2";
  CHECK_HAS(manifest(), "{key: metadata.name, operator: NotIn, values: [\"n1\"]}\n");
  CHECK_HAS(manifest(), "{key: metadata.name, operator: NotIn, values: [\"n2\"]}\n");
}

TEST_CASE_FIXTURE(KubernetesCase, "lines before the agent come to its shell as they are") {
  pool.setup = {"module load cuda"};
  place.script = "#!/bin/bash -l\necho $(hostname) $$ $HOME\n\nexec tune\n";
  // Kubernetes would read $(hostname) and $$.
  CHECK_HAS(manifest(), "          echo $$(hostname) $$$ $HOME\n\n          exec tune\n");
  CHECK_HAS(manifest(), "[/bin/bash, -lc]");
}

TEST_CASE_FIXTURE(KubernetesCase, "the token is in no word of any command and in no manifest") {
  const EngineWords engine = kubernetes_jobs(pool, place);
  for (const Words* words : {&engine.check, &engine.start, &engine.list, &engine.stop,
                             &engine.last_words, &engine.finish}) {
    const std::string line = join(filled_pool_words(*words, values), " ");
    CHECK_FALSE(has(line, "/e/nodes/join"));
    CHECK_HAS(line, "--namespace=ml");
  }
  const Words prepare = filled_pool_words(engine.prepare, values);
  CHECK(Words(prepare.end() - 3, prepare.end()) ==
        Words{"tune-x", "/e/nodes/join", "--namespace=ml"});
  CHECK_HAS(prepare[2], "--from-file=token=\"$file\"");
  CHECK_FALSE(has(manifest(), "join"));
}

TEST_CASE_FIXTURE(KubernetesCase, "a patch is passed on untouched, and shown with its Job") {
  CHECK(kubernetes_jobs(pool, place).show.empty());
  pool.patch = "spec: {a: \"${b}\"}";
  const EngineWords engine = kubernetes_jobs(pool, place);
  for (const Words* words : {&engine.start, &engine.check, &engine.show}) {
    const Words filled = filled_pool_words(*words, values);
    CHECK(std::ranges::find(filled, pool.patch) != filled.end());
    CHECK(std::ranges::find(filled, kInputFile) != filled.end());
  }
}

// ---- The list

TEST_CASE("Jobs are listed with the states of their pods, in words") {
  const std::string list =
      "tune-x-1\tJob\tfalse\t<no value>\t<no value>\t<no value>\t\t\t\t\n"
      "tune-x-2\tJob\tfalse\t<no value>\t<no value>\t<no value>\t\t\t\t\n"
      "tune-x-3\tJob\ttrue\t<no value>\t<no value>\t<no value>\tSuspended:;\t\t\t\n"
      "tune-x-4\tJob\tfalse\t<no value>\t<no value>\t<no value>\t\t\t\t\n"
      "tune-x-5\tJob\tfalse\t<no value>\t<no value>\t<no "
      "value>\tFailureTarget:BackoffLimitExceeded;"
      "Failed:BackoffLimitExceeded;\t\t\t\n"
      "tune-x-6\tJob\tfalse\t<no value>\t<no value>\t<no "
      "value>\tComplete:CompletionsReached;\t\t\t\n"
      "tune-y-7\tJob\tfalse\t<no value>\t<no value>\t<no value>\t\t\t\t\n"
      "tune-x-1\tPod\t<no value>\tRunning\tnode-a\t<no value>\tReady:<no value>;\t\t\t\n"
      "tune-x-2\tPod\t<no value>\tPending\t<no value>\t<no value>\t\tUnschedulable: 0/3 nodes are "
      "available: 3 Insufficient nvidia.com/gpu.\t\t\n"
      "tune-x-5\tPod\t<no value>\tFailed\tnode-b\t<no value>\t\t\t\tOOMKilled, exit code 137\n"
      "tune-x-8\tPod\t<no value>\tRunning\tnode-b\t<no value>\t\t\t\t\n";
  const auto listed = listed_in(ListForm::kKubernetes, list, "tune-x-");
  REQUIRE(listed.size() == 6);  // a pod without its Job is one that ends
  using enum AllocationState;
  CHECK(listed[0].state == kRunning);
  CHECK(listed[0].host == "node-a");
  CHECK(listed[0].reason.empty());
  CHECK(listed[1].state == kQueued);
  CHECK(listed[1].reason ==
        "Pending (Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.)");
  CHECK_FALSE(listed[1].is_hopeless);
  CHECK_HAS(listed[2].reason, "Suspended");
  CHECK(listed[2].state == kQueued);
  CHECK(listed[3].reason == "Pending (no pod yet)");
  CHECK(listed[4].state == kEnded);
  CHECK(listed[4].reason == "OOMKilled, exit code 137");
  CHECK(listed[4].host == "node-b");
  CHECK(listed[5].state == kEnded);
  CHECK(listed[5].reason == "Complete (CompletionsReached)");
}

TEST_CASE("a pod whose image cannot be had is hopeless, one that is still asked for is not") {
  const auto listed = listed_in(
      ListForm::kKubernetes,
      "tune-x-1\tJob\tfalse\t\t\t\t\t\t\t\ntune-x-2\tJob\tfalse\t\t\t\t\t\t\t\n"
      "tune-x-1\tPod\t\tPending\tn1\t\t\t\tErrImagePull: not found\t\n"
      "tune-x-2\tPod\t\tPending\tn1\t\t\t\tImagePullBackOff: Back-off pulling image \"x\"\t\n",
      "tune-x-");
  REQUIRE(listed.size() == 2);
  CHECK_FALSE(listed[0].is_hopeless);
  CHECK(listed[1].is_hopeless);
  CHECK(listed[1].reason == "Pending (ImagePullBackOff: Back-off pulling image \"x\")");
  CHECK(listed[1].host.empty());  // the image is at fault, not the node
}

TEST_CASE("an evicted pod tells its cause, and the pod that lives counts") {
  const auto listed = listed_in(
      ListForm::kKubernetes,
      "tune-x-1\tJob\tfalse\t\t\t\t\t\t\t\ntune-x-2\tJob\tfalse\t\t\t\t\t\t\t\n"
      "tune-x-1\tPod\t\tFailed\tn1\tEvicted\tDisruptionTarget:PreemptionByScheduler;\t\t\t\n"
      "tune-x-2\tPod\t\tFailed\tn1\tEvicted\t\t\t\t\n"
      "tune-x-2\tPod\t\tRunning\tn2\t\t\t\t\t\n"
      "tune-x-2\tPod\t\tFailed\tn3\tEvicted\t\t\t\t\n",
      "tune-x-");
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].state == AllocationState::kEnded);
  CHECK(listed[0].reason == "PreemptionByScheduler");
  CHECK(listed[1].state == AllocationState::kRunning);
  CHECK(listed[1].host == "n2");
}

}  // namespace
}  // namespace tune
