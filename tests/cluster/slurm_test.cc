// Sweeps on a real Slurm of this host: two nodes, and two partitions, one of which preempts.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <optional>

#include "cluster/cluster.h"
#include "core/refusal.h"
#include "skip.h"

namespace tune {
namespace {

using std::chrono::seconds;
using testing::has;

class Slurm {
 public:
  // Nothing: it is not installed, and the test is skipped.
  static std::unique_ptr<Slurm> start(Takes takes = Takes::kMoments) {
    if (is_not_asked_for(takes)) return nullptr;
    const Sandbox probe;
    const char* have =
        "command -v slurmctld && command -v slurmd && command -v munged && [ $(id -u) = 0 ]";
    if (probe.run({"sh", "-c", have}).code != 0) {
      testing::skip("no Slurm, or not root: tests/cluster/setup.sh installs it");
      return nullptr;
    }
    return std::unique_ptr<Slurm>(new Slurm);
  }
  ~Slurm() { box.run({"bash", script(), "stop", folder()}); }

  Finished run(const std::string& command) const { return box.run({"sh", "-c", command}); }
  void start_sweep() {
    sweep.reset(new Running(box.start_tune({"run", "sweep.yaml", "--name", "s"})));
  }
  bool has_joined(std::size_t count) const {
    return Sandbox::eventually([&] { return joined(box) > count; },
                               seconds(60));  // and the own one
  }
  Finished finish() {
    Finished finished = sweep->wait(seconds(200));
    INFO(finished.err);
    CHECK(finished.code == 0);
    CHECK(Sandbox::eventually([&] { return run("squeue -h").out.empty(); }));
    return finished;
  }

  Sandbox box;
  std::unique_ptr<Running> sweep;

 private:
  Slurm() {
    ::chmod(box.path().c_str(), 0755);  // the user munge goes through it
    const Finished started = box.run({"bash", script(), "start", folder(), "2", "2"});
    INFO(started.err);
    REQUIRE(started.code == 0);
    box.set("SLURM_CONF", folder() + "/slurm.conf");
  }
  static std::string script() {
    return std::string(TUNE_SOURCE_DIR) + "/tests/cluster/slurm_on_one_host.sh";
  }
  std::string folder() const { return box.path() / "slurm"; }
};

TEST_CASE("a sweep runs in jobs of Slurm, and none stays") {
  const auto slurm = Slurm::start();
  if (!slurm) return;
  Sandbox& box = slurm->box;
  box.write("sweep.yaml", pooled_sweep(8, 40, "  engine: slurm\n  max: 2\n  time: 10m\n"));
  const Finished shown = box.tune({"validate", "sweep.yaml", "--pool"});
  INFO(shown.err);
  CHECK(shown.code == 0);
  CHECK_HAS(shown.out, "sbatch --parsable");
  CHECK_HAS(shown.out, "--time=10");
  CHECK_HAS(shown.out, "agent --join-file");
  slurm->start_sweep();
  CHECK(slurm->has_joined(2));
  CHECK_HAS(box.tune({"nodes", "results/s"}).out, "in 9");  // when the job ends
  slurm->finish();
  check_complete(box, "results/s", 8, 8);
  CHECK_FALSE(has(slurm->run("scontrol show job").out, "tune1."));
}

TEST_CASE("a partition that does not exist is refused before a trial starts") {
  const auto slurm = Slurm::start();
  if (!slurm) return;
  slurm->box.write("sweep.yaml",
                   pooled_sweep(2, 1, "  engine: slurm\n  submit: [--partition=nope]\n"));
  const Finished refused = slurm->box.tune({"run", "sweep.yaml", "--name", "s"});
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "invalid partition specified: nope");
  CHECK_HAS(refused.err, "pool: the engine slurm");
  CHECK(slurm->box.read("results/s/experiment.json").empty());
  slurm->box.write("sweep.yaml",
                   pooled_sweep(2, 1, "  engine: slurm\n  submit: [--constraint=none]\n"));
  CHECK(slurm->box.tune({"run", "sweep.yaml", "--name", "s"}).code == 2);
}

TEST_CASE("jobs that are preempted cost no trial a failure") {
  const auto slurm = Slurm::start();
  if (!slurm) return;
  Sandbox& box = slurm->box;
  box.write("sweep.yaml", pooled_sweep(6, 800, "  engine: slurm\n  max: 2\n  drain: 1s\n"));
  slurm->start_sweep();
  CHECK(slurm->has_joined(2));
  CHECK(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
  const Finished urgent = slurm->run(
      "sbatch --partition=urgent --nodes=2 --exclusive --output=/dev/null --wrap='sleep 4'");
  INFO(urgent.err);
  CHECK(urgent.code == 0);
  CHECK(slurm->has_joined(3));  // later, in other jobs
  const Finished finished = slurm->finish();
  CHECK_FALSE(has(finished.err, "ERROR"));
  CHECK_FALSE(has(box.read("results/s/events.jsonl"), "\"event\":\"failure\""));
  check_complete(box, "results/s", 6, 8);
}

TEST_CASE("trials that wait for a queue say so, and a killed driver's jobs are taken over") {
  const auto slurm = Slurm::start();
  if (!slurm) return;
  Sandbox& box = slurm->box;
  CHECK(
      slurm
          ->run(
              "sbatch --nodes=2 --exclusive --output=/dev/null --job-name=full --wrap='sleep 600'")
          .code == 0);
  CHECK(Sandbox::eventually([&] { return has(slurm->run("squeue -h").out, " R "); }));
  box.write("sweep.yaml", pooled_sweep(4, 20, "  engine: slurm\n  max: 2\n  time: 10m\n"));
  slurm->start_sweep();
  std::string told;
  // Within a second Slurm gives each of the two jobs a reason of its own: Resources, and Priority.
  CHECK_MESSAGE(Sandbox::eventually(
                    [&] {
                      told = box.tune({"nodes", "results/s"}).out;
                      return count_of(told, " queued ") == 2 &&
                             has(told, "4 trials wait: 1 job PENDING (");
                    },
                    seconds(40)),
                told);
  slurm->sweep->signal(SIGKILL);
  slurm->sweep->wait();
  slurm->sweep.reset(new Running(box.start_tune({"resume", "results/s"})));
  CHECK(Sandbox::eventually([&] { return has(box.read("results/s/events.jsonl"), "\"epoch\":2"); },
                            seconds(30)));
  slurm->run("scancel --name=full");
  slurm->finish();
  check_complete(box, "results/s", 4, 8);
  CHECK(count_of(slurm->run("scontrol -o show job").out, "JobName=tune-") == 2);
}

TEST_CASE("groups of ranks run in two jobs of Slurm each, on a node of their own") {
  const auto slurm = Slurm::start();
  if (!slurm) return;
  Sandbox& box = slurm->box;
  box.write("sweep.yaml", pooled_sweep(2, 40,
                                       "  engine: slurm\n  max: 2\n  time: 10m\n"
                                       "  submit: [--exclusive]\n") +
                              "resources_per_trial: {cpu: 2, ranks: 2}\n");
  slurm->start_sweep();
  CHECK(slurm->has_joined(2));
  const std::string nodes = slurm->run("squeue -h -t running -o %N").out;
  CHECK((has(nodes, "n1") && has(nodes, "n2")));
  const Finished finished = slurm->finish();
  CHECK_FALSE(has(finished.err, "ERROR"));
  check_complete(box, "results/s", 2, 8);
  CHECK(count_of(slurm->run("scontrol -o show job").out, "JobName=tune-") == 2);
}

TEST_CASE("in a job an agent starts on each of its nodes, and nothing is submitted") {
  const auto slurm = Slurm::start();
  if (!slurm) return;
  Sandbox& box = slurm->box;
  box.write("sweep.yaml", pooled_sweep(8, 40, "  engine: slurm\n"));
  const Finished ran =
      slurm->run("salloc -N 2 -n 2 -c 2 -- " TUNE_BINARY_DIR "/bin/tune run sweep.yaml --name s");
  INFO(ran.err);
  CHECK(ran.code == 0);
  CHECK_HAS(ran.err, "nothing is submitted");
  CHECK(joined(box) == 3);  // with the driver's own, which runs no trials
  check_complete(box, "results/s", 8, 8);
  CHECK_FALSE(has(slurm->run("scontrol -o show job").out, "JobName=tune-"));
}

TEST_CASE("in a job that is to submit all the same agents are jobs of their own") {
  const auto slurm = Slurm::start();
  if (!slurm) return;
  Sandbox& box = slurm->box;
  box.write("sweep.yaml",
            pooled_sweep(4, 20, "  engine: slurm\n  max: 1\n  time: 10m\n  inside: submit\n"));
  // What salloc has set for this job is inherited by sbatch.
  const Finished ran =
      slurm->run("salloc -N 1 -n 2 -c 1 -- " TUNE_BINARY_DIR "/bin/tune run sweep.yaml --name s");
  INFO(ran.err);
  CHECK(ran.code == 0);
  CHECK_FALSE(has(ran.err, "nothing is submitted"));
  CHECK(joined(box) == 2);
  check_complete(box, "results/s", 4, 8);
  const std::string jobs = slurm->run("scontrol -o show job").out;
  CHECK(count_of(jobs, "JobName=tune-") == 1);
  const std::string agent = jobs.substr(jobs.find("JobName=tune-"));
  for (const char* fact : {"NumNodes=1 ", "NumCPUs=1 ", "TimeLimit=00:10:00"}) {
    CHECK_HAS(agent.substr(0, agent.find('\n')), fact);
  }
}

TEST_CASE("a run that goes on inside a job ends the jobs that it had submitted before") {
  const auto slurm = Slurm::start();
  if (!slurm) return;
  Sandbox& box = slurm->box;
  box.write("sweep.yaml", pooled_sweep(4, 20, "  engine: slurm\n  max: 4\n  submit: [--hold]\n"));
  slurm->start_sweep();
  const auto held = [&] { return count_of(slurm->run("squeue -h -o %j").out, "tune-"); };
  CHECK(Sandbox::eventually([&] { return held() == 2; }, seconds(40)));
  CHECK(Sandbox::eventually(
      [&] {
        return count_of(box.tune({"nodes", "results/s"}).out, " queued ") == 2;
      },
      seconds(40)));
  slurm->sweep->signal(SIGKILL);
  slurm->sweep->wait();
  slurm->sweep.reset(new Running(box.start(
      {"salloc", "-N", "1", "-n", "1", "--", TUNE_BINARY_DIR "/bin/tune", "resume", "results/s"})));
  slurm->finish();
  check_complete(box, "results/s", 4, 8);
}

TEST_CASE("in a job without a word on nodes agents have all that the job has there") {
  const auto slurm = Slurm::start();
  if (!slurm) return;
  Sandbox& box = slurm->box;
  box.write("sweep.yaml",
            yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 150}",
                  .num_samples = 8,
                  .rest = "stop: {training_iteration: 8}\npool: {engine: slurm, poll: 1}\n"}));
  Running job(box.start({"salloc", "-N", "2", "-n", "2", "-c", "2", "--",
                         TUNE_BINARY_DIR "/bin/tune", "run", "sweep.yaml", "--name", "s"}));
  // Two trials on each of the nodes.
  CHECK(Sandbox::eventually(
      [&] {  // trials, CPUs
        return count_of(box.tune({"nodes", "results/s"}).out, "ready         2     2") == 2;
      },
      seconds(60)));
  const Finished ran = job.wait(seconds(100));
  INFO(ran.err);
  CHECK(ran.code == 0);
  CHECK(joined(box) == 3);
  check_complete(box, "results/s", 8, 8);
}

TEST_CASE("jobs that reach the end of their time are replaced, and nothing is lost") {
  const auto slurm = Slurm::start(Takes::kMinutes);
  if (!slurm) return;
  Sandbox& box = slurm->box;
  // The shortest that Slurm has. Four trials of 80 s on two agents do not end in it.
  box.write("sweep.yaml",
            pooled_sweep(4, 10'000, "  engine: slurm\n  max: 2\n  time: 1m\n  drain: 12s\n"));
  slurm->start_sweep();
  CHECK(slurm->has_joined(2));
  const Finished finished = slurm->finish();
  CHECK_HAS(finished.out + finished.err, "leaves first, in ");
  CHECK_FALSE(has(finished.err, "ERROR"));
  CHECK_FALSE(has(box.read("results/s/events.jsonl"), "\"event\":\"failure\""));
  CHECK(joined(box) >= 5);  // with the driver's own: others came in the place of both
  check_complete(box, "results/s", 4, 8);
}

}  // namespace
}  // namespace tune
