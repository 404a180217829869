#include "tune/drive/engine_words.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "core/strings.h"
#include "tune/spec/pool_words.h"

namespace tune {
namespace {

using Words = std::vector<std::string>;
using enum AllocationState;

EnginePlace place(std::int64_t cpus = 8, std::size_t gpus = 0) {
  EnginePlace place;
  place.node.cpu_units = cpus * kUnit;
  place.node.gpus.resize(gpus);
  place.user = "alice";
  return place;
}

bool holds(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

PoolValues values() {
  return {{"name", "tune-x-3"},
          {"prefix", "tune-x-"},
          {"id", "77"},
          {"experiment", "tune-x"},
          {"script", "/e/nodes/agent.sh"},
          {"join_file", "/e/nodes/join"},
          {"log", "/e/nodes/tune-x-3.log"},
          {"host", ""},
          {"exclude", ""}};
}

// ---- Templates

TEST_CASE("placeholders are filled in, without a shell") {
  PoolValues one = values();
  one["log"] = "/a folder/it's.log";
  CHECK(filled_pool_words({"run", "--out=${log}", "${name}:${name}", "$${HOME}"}, one) ==
        Words{"run", "--out=/a folder/it's.log", "tune-x-3:tune-x-3", "${HOME}"});
}

TEST_CASE("a value is one word of a shell where that is asked for") {
  PoolValues one = values();
  one["log"] = "/it's a folder/x.log";
  CHECK(filled_pool_words({"exec a >>${word:log}", "${word:name}"}, one) ==
        Words{"exec a >>" + shell_word("/it's a folder/x.log"), "tune-x-3"});
  std::vector<Complaint> complaints;
  check_pool_words({"${word:log}", "${word:lgo}"}, "pool/start", complaints);
  REQUIRE(complaints.size() == 1);
  CHECK_HAS(complaints[0].message, "did you mean 'log'?");
}

TEST_CASE("words of a host or of excluded hosts are left out when there are none") {
  CHECK(filled_pool_words({"sbatch", "--exclude=${exclude}", "-w${host}", "x"}, values()) ==
        Words{"sbatch", "x"});
  PoolValues some = values();
  some["exclude"] = "a,b";
  CHECK(filled_pool_words({"--exclude=${exclude}"}, some) == Words{"--exclude=a,b"});
  // An option of two words.
  const Words two = {"-l${if:exclude}", "h=!(${exclude})", "x"};
  CHECK(filled_pool_words(two, values()) == Words{"x"});
  CHECK(filled_pool_words(two, some) == Words{"-l", "h=!(a,b)", "x"});
  std::vector<Complaint> complaints;
  check_pool_words(two, "pool/start", complaints);
  CHECK(complaints.empty());
}

TEST_CASE("an unknown placeholder is refused, with the nearest") {
  std::vector<Complaint> complaints;
  check_pool_words({"a", "${nam}", "${name", "$${x}"}, "pool/start", complaints);
  REQUIRE(complaints.size() == 2);
  CHECK(complaints[0].path == "pool/start/1");
  CHECK_HAS(complaints[0].message, "did you mean 'name'?");
  CHECK(complaints[1].path == "pool/start/2");
  CHECK_HAS(complaints[1].message, "has no end");
}

// ---- Slurm

PoolOptions slurm() {
  PoolOptions pool;
  pool.engine = "slurm";
  pool.submit = {"--partition=gpu"};
  return pool;
}

TEST_CASE("Slurm is asked for a node by sbatch, with what the user passes on") {
  PoolOptions pool = slurm();
  pool.time = "4h";
  pool.node.memory = "60GiB";
  EnginePlace here = place(8, 4);
  here.node.memory_bytes = pool.node.memory.bytes();
  const EngineWords engine = engine_words(pool, here);
  const Words start = filled_pool_words(engine.start, values());
  CHECK(start.front() == "sbatch");
  for (const char* word : {"--parsable", "--job-name=tune-x-3", "--cpus-per-task=8", "--gres=gpu:4",
                           "--mem=61440M", "--time=240", "--no-requeue", "--partition=gpu",
                           "--signal=B:USR2@120", "--output=/e/nodes/tune-x-3.log"}) {
    CHECK_MESSAGE(holds(start, word), word);
  }
  CHECK(start[start.size() - 2] == "/e/nodes/agent.sh");
  CHECK(start.back() == "tune-x-3");
  CHECK(holds(filled_pool_words(engine.check, values()), "--test-only"));
  for (const std::string& word : start)
    CHECK_FALSE(testing::has(word, "join"));  // no key, no token
}

TEST_CASE("without memory and time Slurm is told of neither") {
  const EngineWords engine = engine_words(slurm(), place());
  for (const std::string& word : filled_pool_words(engine.start, values())) {
    CHECK_FALSE(word.starts_with("--mem"));
    CHECK_FALSE(word.starts_with("--time"));
    CHECK_FALSE(word.starts_with("--gres"));
    CHECK_FALSE(word.starts_with("--exclude"));
  }
}

TEST_CASE("in a Slurm job agents are steps of it, unless it is to submit") {
  EnginePlace inside = place();
  inside.job = "55";
  inside.job_hosts = {"n1", "n2"};
  PoolOptions pool = slurm();
  const EngineWords steps = engine_words(pool, inside);
  CHECK(steps.hosts == Words{"n1", "n2"});
  CHECK(holds(steps.start, "srun"));
  CHECK_FALSE(holds(steps.start, "sbatch"));
  CHECK(holds(steps.start, "--jobid=55"));
  CHECK(holds(steps.start, "--whole"));
  CHECK(steps.start.back() == kWholeNode);
  CHECK_HAS(steps.environment_note, "nothing is submitted");
  // The jobs of a run that has begun outside are listed, too.
  CHECK(holds(steps.list, "55"));
  CHECK(holds(steps.list, "alice"));
  CHECK(steps.list.back() == engine_words(pool, place()).list.back() + "|outside");
  pool.node.cpu = 8;
  const EngineWords parts = engine_words(pool, inside);
  CHECK(holds(parts.start, "--cpus-per-task=8"));
  CHECK_FALSE(holds(parts.start, "--whole"));
  CHECK_FALSE(holds(parts.start, kWholeNode));
  pool.inside = "submit";
  CHECK(engine_words(pool, inside).start.front() == "sbatch");
}

TEST_CASE("squeue's lines are read, and those of others are not") {
  const auto listed = listed_in(ListForm::kLines,
                                "tune-x-1|101|PENDING|Priority|\n"
                                "tune-x-2|102|RUNNING|None|n1\n"
                                "tune-x-3|103|TIMEOUT|TimeLimit|n2\n"
                                "tune-y-4|104|RUNNING|None|n2\n"
                                "other|105|RUNNING|None|n2\n"
                                "tune-x-6|106|PENDING|Resources\n",
                                "tune-x-");
  REQUIRE(listed.size() == 4);
  CHECK(listed[0].number == 1);
  CHECK(listed[0].state == kQueued);
  CHECK(listed[0].reason == "PENDING (Priority)");
  CHECK(listed[1].state == kRunning);
  CHECK(listed[1].id == "102");
  CHECK(listed[1].host == "n1");
  CHECK(listed[1].reason.empty());
  CHECK(listed[2].state == kEnded);
  CHECK(listed[2].reason == "TIMEOUT (TimeLimit)");
  CHECK(listed[3].reason == "PENDING (Resources)");
}

TEST_CASE("of a run that goes on inside a job, jobs that wait outside are to be stopped") {
  const auto listed = listed_in(ListForm::kLines,
                                "tune-x-1|55.1|RUNNING||n1\n"
                                "tune-x-2|102|RUNNING|None|n2|outside\n"
                                "tune-x-3|103|PENDING|Priority||outside\n"
                                "tune-x-4|104|COMPLETED|None|n2|outside\n"
                                "other|105|PENDING|Priority||outside\n",
                                "tune-x-");
  REQUIRE(listed.size() == 4);
  for (const ListedAllocation& one : listed) CHECK(one.is_hopeless == (one.number == 3));
  CHECK_HAS(listed[2].reason, "it waited outside the job");
  CHECK_HAS(listed[2].reason, "PENDING (Priority)");
}

TEST_CASE("the id is read from what start prints") {
  CHECK(id_of(IdForm::kLastWord, "4711\n") == "4711");
  CHECK(id_of(IdForm::kLastWord, "4711;cluster\n") == "4711");
  CHECK(id_of(IdForm::kLastWord, "warning: quota\nstarted as 12.server\n") == "12.server");
  CHECK(id_of(IdForm::kNumber, "Job <903> is submitted to queue <normal>.\n") == "903");
  CHECK(id_of(IdForm::kNumber, "12.0 - 12.0\n") == "12");
  CHECK(id_of(IdForm::kNumber, "no job").empty());
  CHECK(id_of(IdForm::kNone, "4711").empty());
  CHECK(id_of(IdForm::kLastWord, "").empty());
}

// ---- ssh

TEST_CASE("ssh starts the agent apart, finds it by its name and ends it by that") {
  PoolOptions pool;
  pool.engine = "ssh";
  pool.hosts = {{"a"}, {"bob@b"}};
  const EngineWords engine = engine_words(pool, place());
  CHECK(engine.hosts == Words{"a", "bob@b"});
  CHECK(engine.list_by_host);
  PoolValues at = values();
  at["host"] = "bob@b";
  const Words start = filled_pool_words(engine.start, at);
  CHECK(holds(start, "ssh"));
  CHECK(start[start.size() - 2] == "bob@b");
  CHECK_HAS(start.back(), "exec setsid -f");
  CHECK_HAS(start.back(),
            "sh /e/nodes/agent.sh tune-x-3 bob@b /e/nodes/tune-x-3.log /e/nodes/join tune-x");
  CHECK_FALSE(testing::has(join(start, " "), "-R"));
  CHECK_HAS(filled_pool_words(engine.stop, at).back(), "name tune-x-3");
}

TEST_CASE("through a tunnel the agent finds the driver on its own machine") {
  PoolOptions pool;
  pool.engine = "ssh";
  pool.hosts = {{"a"}};
  pool.tunnel = true;
  EnginePlace here = place();
  here.driver_port = 7000;
  here.tunnel_port = tunnel_port_of(7000);
  here.relay_port = 7001;
  CHECK(here.tunnel_port != 7000);
  CHECK(here.tunnel_port >= 20000);
  const EngineWords engine = engine_words(pool, here);
  CHECK(holds(engine.start, "127.0.0.1:" + std::to_string(here.tunnel_port) + ":127.0.0.1:7000"));
  CHECK(holds(engine.start, "ExitOnForwardFailure=yes"));
  const std::string relay = std::to_string(tunnel_port_of(7001));
  CHECK(holds(engine.start, "127.0.0.1:" + relay + ":127.0.0.1:7001"));
  CHECK_HAS(engine.start.back(), "TUNE_RELAY_PORT=" + relay);
}

TEST_CASE("processes are told by the name of their allocation") {
  const auto listed =
      listed_in(ListForm::kProcesses,
                "812 /opt/tune agent --join-file /e/nodes/join --drain 120s --name tune-x-4\n"
                "913 /opt/tune agent --join-file /e/nodes/join --drain 120s --name tune-xy-5\n"
                "914 sh -c pgrep -fa 'agent[.]sh tune-x-|[-]-name tune-x-'\n"
                "915 /bin/bash -l /e/nodes/agent.sh tune-x-6 bob@b\n",
                "tune-x-");
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].number == 4);
  CHECK(listed[0].id == "812");
  CHECK(listed[0].state == kRunning);
  CHECK(listed[1].number == 6);  // its lines of setup are being run
}

// ---- Presets

TEST_CASE("qsub of PBS takes no arguments for a script: its agent has the name by a variable") {
  PoolOptions pool;
  pool.engine = "pbs";
  const Words start = filled_pool_words(engine_words(pool, place()).start, values());
  CHECK(Words(start.end() - 3, start.end()) ==
        Words{"-v", "TUNE_ALLOCATION=tune-x-3", "/e/nodes/agent.sh"});
}

TEST_CASE("qstat -f of PBS is read") {
  const auto listed =
      listed_in(ListForm::kPbs,
                "Job Id: 12.head\n"
                "    Job_Name = tune-x-1\n"
                "    job_state = Q\n"
                "    comment = Not Running: Insufficient amount of resource: ncpus\n"
                "\n"
                "Job Id: 13.head\n"
                "    Job_Name = tune-x-2\n"
                "    job_state = R\n"
                "    exec_host = n7/0*8\n"
                "Job Id: 14.head\n"
                "    Job_Name = other\n"
                "    job_state = R\n",
                "tune-x-");
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].id == "12.head");
  CHECK(listed[0].reason == "Q (Not Running: Insufficient amount of resource: ncpus)");
  CHECK(listed[1].state == kRunning);
  CHECK(listed[1].host == "n7");
}

TEST_CASE("qstat -r of Grid Engine is read, by the whole name of a job") {
  const auto listed =
      listed_in(ListForm::kGridEngine,
                "job-ID  prior   name       user   state submit/start at     queue          slots "
                "ja-task-ID\n"
                "--------------------------------------------------------------------------------\n"
                "     31 0.55500 tune-x-1   alice  r     11/22/2026 17:00:01 all.q@n3           8\n"
                "       Full jobname:     tune-x-1\n"
                "       Master Queue:     all.q@n3\n"
                "     32 0.00000 tune-x-123 alice  qw    11/22/2026 17:00:02                    8\n"
                "       Full jobname:     tune-x-12345\n",
                "tune-x-");
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].host == "n3");
  CHECK(listed[0].state == kRunning);
  CHECK(listed[1].number == 12345);
  CHECK(listed[1].state == kQueued);
  CHECK(listed[1].id == "32");
}

TEST_CASE("the list of HTCondor is read, with the host where a job runs") {
  const auto listed = listed_in(ListForm::kHtcondor,
                                "tune-x-4, 12, 1, undefined, undefined\n"
                                "tune-x-5, 13, 2, slot1_2@n4.site, undefined\n"
                                "other, 14, 2, slot1@n4.site, undefined\n"
                                "tune-x-6, 15, 5, undefined, Error from slot1@n4: no file, no\n"
                                "tune-x-7, 16, 9, undefined\n",
                                "tune-x-");
  REQUIRE(listed.size() == 4);
  CHECK(listed[0].reason == "Idle");
  CHECK(listed[2].state == kQueued);
  CHECK(listed[2].reason == "Held (Error from slot1@n4: no file, no)");
  CHECK(listed[3].reason == "9");
  CHECK(listed[0].state == kQueued);
  CHECK(listed[0].host.empty());
  CHECK(listed[1].state == kRunning);
  CHECK(listed[1].id == "13");
  CHECK(listed[1].host == "n4.site");
}

TEST_CASE("the lists of LSF and Flux are read") {
  const auto listed = listed_in(ListForm::kLines,
                                "tune-x-1|903|PEND|New job is waiting for scheduling|-\n"
                                "tune-x-2|904|RUN|-|n4\n"
                                "tune-x-3|905|EXIT|-|n4\n"
                                "tune-x-6|88|DEPEND||\n"
                                "tune-x-7|89|RUN||f[1-2]\n"
                                "tune-x-8|90|INACTIVE||f1\n",
                                "tune-x-");
  const std::vector<AllocationState> states = {kQueued, kRunning, kEnded,
                                               kQueued, kRunning, kEnded};
  REQUIRE(listed.size() == states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    CAPTURE(i);
    CHECK(listed[i].number == (i < 3 ? i + 1 : i + 3));
    CHECK(listed[i].state == states[i]);
  }
  CHECK(listed[0].reason == "PEND (New job is waiting for scheduling)");
  CHECK(listed[1].host == "n4");
}

TEST_CASE("engines are told of the hosts that are not wanted, each in its way") {
  const std::map<std::string, Words> expected = {
      {"slurm", {"--exclude=n1,n2"}},
      {"lsf", {"-R", "select[hname!='n1' && hname!='n2']"}},
      {"grid_engine", {"-l", "h=!(n1|n2)"}},
      {"htcondor", {"-append", "requirements = (Machine =!= \"n1\") && (Machine =!= \"n2\")"}},
      {"flux", {"--requires=-host:n1,n2"}}};
  for (const auto& [name, words] : expected) {
    INFO(name);
    PoolOptions pool;
    pool.engine = name;
    const EngineWords engine = engine_words(pool, place());
    REQUIRE(engine.exclusion);
    PoolValues some = values();
    some["exclude"] = engine.exclusion({"n1", "n2"});
    const Words without = filled_pool_words(engine.start, values());
    const Words with = filled_pool_words(engine.start, some);
    CHECK(with.size() == without.size() + words.size());
    CHECK_FALSE(std::ranges::search(with, words).empty());
    CHECK(std::ranges::search(without, Words{words.back()}).empty());
  }
}

TEST_CASE("an engine that cannot be told of a host has no words for it") {
  for (const char* name : {"pbs", "ray"}) {
    PoolOptions pool;
    pool.engine = name;
    CHECK_FALSE(engine_words(pool, place()).exclusion);
  }
  PoolOptions command;
  command.engine = "command";
  command.start = {"start", "${script}", "${name}"};
  CHECK_FALSE(engine_words(command, place()).exclusion);
  command.start.push_back("-x${exclude}");
  CHECK(engine_words(command, place()).exclusion);
}

TEST_CASE("each preset starts the script with the allocation's name and a log") {
  for (const char* name : {"pbs", "lsf", "grid_engine", "htcondor", "flux"}) {
    INFO(name);
    PoolOptions pool;
    pool.engine = name;
    pool.time = "90m";
    pool.submit = {"--own-word"};
    EnginePlace here = place(4, 2);
    const EngineWords engine = engine_words(pool, here);
    const std::string line = join(filled_pool_words(engine.start, values()), " ");
    CHECK_HAS(line, "tune-x-3");
    CHECK_HAS(line, "/e/nodes/tune-x-3.log");
    CHECK_HAS(line, "/e/nodes/agent.sh");
    CHECK_HAS(line, "--own-word");
    CHECK_FALSE(testing::has(line, "/e/nodes/join"));
    CHECK_HAS(join(filled_pool_words(engine.stop, values()), " "), "77");
    filled_pool_words(engine.list, values());
  }
}

TEST_CASE("states of all engines are known by their words") {
  for (const char* word : {"PENDING", "Q", "qw", "PEND", "1"})
    CHECK(state_of_word(word) == kQueued);
  for (const char* word : {"RUNNING", "R", "r", "RUN", "2"}) CHECK(state_of_word(word) == kRunning);
  for (const char* word : {"TIMEOUT", "PREEMPTED", "C", "EXIT", "4", "INACTIVE"}) {
    CHECK(state_of_word(word) == kEnded);
  }
  for (const char* word : {"LAUNCH_FAILED", "RECONFIG_FAIL"}) CHECK(state_of_word(word) == kEnded);
  CHECK(state_of_word("UNKWN") == kRunning);
  CHECK_FALSE(state_of_word("SOMETHING"));
}

TEST_CASE("an allocation in a state without a known word is there, and the word is told") {
  const auto listed = listed_in(ListForm::kLines, "tune-x-1|101|SOMETHING|Why|n1\n", "tune-x-");
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].state == kQueued);
  CHECK(listed[0].reason == "SOMETHING (Why)");
  CHECK(listed[0].host.empty());
}

}  // namespace
}  // namespace tune
