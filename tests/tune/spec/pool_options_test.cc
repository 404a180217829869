#include "tune/spec/pool_options.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/refusal.h"
#include "tune/spec/options_value.h"
#include "tune/spec/pool_value.h"

namespace tune {
namespace {

struct Read {
  RunOptions options;
  std::vector<Complaint> complaints;

  bool complains(const std::string& path, const std::string& part) const {
    return std::ranges::any_of(complaints, [&](const Complaint& one) {
      return one.path == path && testing::has(one.message, part);
    });
  }
};

Read read(const std::string& pool, const Resources& trial = {}) {
  const Value value = parse_json("{\"pool\":" + pool + "}", "a test");
  Read result;
  OptionReader reader(value, "", result.complaints);
  read_options(reader, result.options);
  reader.finish();
  check_pool(result.options.pool, to_request(trial), result.complaints);
  return result;
}

TEST_CASE("a pool is read with its defaults") {
  const Read slurm = read(R"({"engine": "slurm"})");
  CHECK(slurm.complaints.empty());
  const PoolOptions& pool = slurm.options.pool;
  CHECK(pool.is_given());
  CHECK(most_agents(pool, 0) == 16);
  CHECK(most_agents(pool, 20) == 20);  // one on each host
  CHECK(pool.backlog == 2);
  CHECK(pool.drain.seconds() == 120);
  CHECK(pool.idle.seconds() == 300);
  CHECK_FALSE(pool.local);
  CHECK_FALSE(RunOptions().pool.is_given());
}

TEST_CASE("times are seconds or words") {
  const Read one = read(R"({"engine": "slurm", "time": "4h", "drain": 90, "idle": "1h30m"})");
  CHECK(one.complaints.empty());
  CHECK(one.options.pool.time.seconds() == 4 * 3600);
  CHECK(one.options.pool.drain.seconds() == 90);
  CHECK(one.options.pool.idle.seconds() == 5400);
  CHECK(read(R"({"engine": "slurm", "time": "4 hours"})").complains("pool/time", "such as 90s"));
  CHECK(read(R"({"engine": "slurm", "time": [1]})").complains("pool/time", "found a list"));
}

TEST_CASE("what is stored of a pool is read back") {
  const Read first = read(
      R"({"engine": "ssh", "hosts": ["a", {"bob@b": {"gpu": 2}}], "tunnel": true, "max": 2, "min": 1,
          "time": "2h", "node": {"cpu": 4, "gpu": 1, "memory": "60GiB"}, "submit": ["-p", "22"],
          "setup": ["module load cuda"], "local": true, "program": "/opt/tune", "folder": "~/a"})");
  CHECK(first.complaints.empty());
  REQUIRE(first.options.pool.hosts.size() == 2);
  CHECK(first.options.pool.hosts[1].name == "bob@b");
  CHECK(first.options.pool.hosts[1].gpu == 2.0);
  const Value stored = pool_to_value(first.options.pool);
  const Read second = read(to_json(stored));
  CHECK(second.complaints.empty());
  CHECK(to_json(pool_to_value(second.options.pool)) == to_json(stored));
  CHECK(second.options.pool.node.memory.bytes() == std::int64_t{60} << 30);
}

TEST_CASE("mistakes of a pool are named by their keys, all at once") {
  CHECK(read(R"({"max": 2})").complains("pool/engine", "is missing"));
  CHECK(read(R"({"engine": "slrum"})").complains("pool/engine", "did you mean 'slurm'?"));
  CHECK(read(R"({"engine": "slurm", "maxx": 2})").complains("pool/maxx", "did you mean 'max'?"));
  CHECK(read(R"({"engine": "slurm", "node": {"gpus": 2}})").complains("pool/node/gpus", "'gpu'"));
  CHECK(read(R"({"engine": "slurm", "max": 0})").complains("pool/max", "at least 1"));
  CHECK(read(R"({"engine": "slurm", "min": 20})").complains("pool/min", "which is 16"));
  CHECK(read(R"({"engine": "slurm", "backlog": 0})").complains("pool/backlog", "at least 1"));
  CHECK(
      read(R"({"engine": "slurm", "time": "1m"})").complains("pool/time", "no trial would begin"));
  CHECK(read(R"({"engine": "slurm", "inside": "x"})").complains("pool/inside", "agents or submit"));
  CHECK(read(R"({"engine": "slurm", "hosts": ["a"]})").complains("pool/hosts", "engine ssh"));
  CHECK(read(R"({"engine": "slurm", "start": ["a"]})").complains("pool/start", "of its own"));
  CHECK(read(R"({"engine": "ssh"})").complains("pool/hosts", "is missing"));
  CHECK(read(R"({"engine": "ssh", "hosts": ["a", "a"]})").complains("pool/hosts/1", "twice"));
  CHECK(read(R"({"engine": "ssh", "hosts": ["-oProxyCommand=x"]})")
            .complains("pool/hosts/0", "not a host"));
  CHECK(read(R"({"engine": "command", "start": ["a"], "stop": ["b"]})")
            .complains("pool/list", "is missing"));
  CHECK(read(R"({"engine": "command", "start": ["${nam}"], "list": ["a"], "stop": ["b"]})")
            .complains("pool/start/0", "did you mean 'name'?"));
  CHECK(read(R"({"engine": "slurm", "folder": "meet"})")
            .complains("pool/folder", "begin it with / or ~/"));
  CHECK(read(R"({"engine": "kubernetes", "image": "i", "folder": "/meet"})")
            .complains("pool/folder", "by a Secret"));
  CHECK(read(R"({"engine": "slurm", "folder": "~/meet"})").complaints.empty());
  CHECK(read(R"({"maxx": 1, "engine": "x"})").complaints.size() == 2);
}

TEST_CASE("a pool that could never hold a trial is refused") {
  const Read small = read(R"({"engine": "slurm", "node": {"cpu": 2}})", {.cpu = 4});
  CHECK(small.complains("pool/node", "4"));
  CHECK(read(R"({"engine": "slurm", "node": {"cpu": 4}})", {.cpu = 4}).complaints.empty());
  CHECK(read(R"({"engine": "slurm", "node": {"cpu": 4}})", {.cpu = 1, .gpu = 1})
            .complains("pool/node", "GPU"));
  CHECK(
      read(R"({"engine": "slurm"})", {.cpu = 3, .gpu = 2}).complaints.empty());  // as a trial needs
}

TEST_CASE("a pool whose nodes hold a trial in equal parts is refused where these are too many") {
  const Resources eight{.cpu = 8, .gpu = 8, .ranks = 8};
  CHECK(read(R"({"engine": "slurm", "max": 4, "node": {"cpu": 8, "gpu": 4}})", eight)
            .complaints.empty());
  CHECK(read(R"({"engine": "slurm", "max": 2, "node": {"cpu": 8, "gpu": 4}})", eight)
            .complaints.empty());
  CHECK(read(R"({"engine": "slurm", "max": 3, "node": {"cpu": 8, "gpu": 3}})", eight)
            .complains("pool/max",
                       "a trial needs 4 nodes of {cpu: 8, gpu: 3}; the pool has max: 3: give it"));
  CHECK(read(R"({"engine": "ssh", "hosts": ["a"], "node": {"cpu": 8, "gpu": 4}})", eight)
            .complains("pool/hosts",
                       "a trial needs 2 nodes of {cpu: 8, gpu: 4}; the pool has 1 host"));
  CHECK(read(R"({"engine": "slurm", "node": {"cpu": 8}})", eight)
            .complains("pool/node", "8 ranks need 8 GPUs, the node has 0"));
  CHECK(read(R"({"engine": "slurm", "max": 1})", eight).complaints.empty());  // one that holds it
  CHECK(read(R"({"engine": "slurm", "node": {"cpu": 1}})", {.cpu = 2}).complains("pool/node", "2"));
}

TEST_CASE("a host's own amounts are checked as those of a node are") {
  const auto host = [](const std::string& amounts) {
    return read(R"({"engine": "ssh", "hosts": ["a", {"b": )" + amounts + "}]}");
  };
  CHECK(host(R"({"cpu": 0})").complains("pool/hosts/1/b/cpu", "it must be above 0"));
  CHECK(host(R"({"gpu": -1})").complains("pool/hosts/1/b/gpu", "give a whole number"));
  CHECK(host(R"({"gpu": 1.5})").complains("pool/hosts/1/b/gpu", "give a whole number"));
  CHECK(host(R"({"cpu": 0.5, "gpu": 0})").complaints.empty());
}

TEST_CASE("hosts with amounts of their own that could never hold a trial are refused") {
  const auto hosts = [](const std::string& text, const Resources& trial,
                        const std::string& more = "") {
    return read(R"({"engine": "ssh", "hosts": [)" + text + "]" + more + "}", trial);
  };
  const std::string small = R"({"a": {"cpu": 2}}, {"b": {"cpu": 3}})";
  CHECK(hosts(small, {.cpu = 4})
            .complains("pool/hosts",
                       "a trial needs 4 CPUs, the largest node has 3: give a host more"));
  CHECK(hosts(small, {.cpu = 3}).complaints.empty());
  CHECK(hosts(small + R"(, "c")", {.cpu = 4}).complaints.empty());  // c's are not known yet
  CHECK(hosts(R"({"a": {"gpu": 0}})", {.cpu = 1, .gpu = 1}).complains("pool/hosts", "GPU"));
  CHECK(hosts(R"({"a": {"gpu": 1}})", {.cpu = 64, .gpu = 1}).complaints.empty());
  // A host's own come before those of all.
  const std::string node = R"(, "node": {"cpu": 2})";
  CHECK(hosts(R"({"a": {"cpu": 8}}, "b")", {.cpu = 4}, node).complaints.empty());
  CHECK(hosts(R"({"a": {"cpu": 1}}, "b")", {.cpu = 4}, node).complains("pool/hosts", "has 2"));
  // Groups: on one host, or in equal parts on several.
  const Resources eight{.cpu = 8, .gpu = 8, .ranks = 8};
  const std::string unequal = R"({"a": {"gpu": 6}}, {"b": {"gpu": 4}}, {"c": {"gpu": 2}})";
  CHECK(hosts(unequal, eight).complaints.empty());  // 4 on a, 4 on b
  CHECK(hosts(unequal, eight, R"(, "max": 1)").complains("pool/hosts", "8 ranks need 8 GPUs"));
  CHECK(hosts(R"({"a": {"gpu": 6}}, {"b": {"gpu": 2}})", eight)
            .complains("pool/hosts", "and no equal parts fit on 2 hosts"));
}

TEST_CASE("with a pool the driver listens by itself") {
  RunOptions options;
  CHECK_FALSE(takes_machines(options));
  options.pool.engine = "slurm";
  CHECK(takes_machines(options));
  CHECK(listens_at(options) == "0.0.0.0");
  options.listen = "ib0";
  CHECK(listens_at(options) == "ib0");
  options.listen.clear();
  options.pool.tunnel = true;
  CHECK(listens_at(options) == "127.0.0.1");
}

TEST_CASE(
    "the driver's own agent outlives it where machines join, or where patience is asked for") {
  RunOptions alone;
  CHECK_FALSE(own_agent_stays(alone));
  alone.patience_s = 60;
  CHECK(own_agent_stays(alone));
  CHECK_FALSE(takes_machines(alone));
  CHECK(listens_at(alone) == "127.0.0.1");  // for that agent only
  RunOptions open;
  open.listen = "ib0";
  CHECK(own_agent_stays(open));
  RunOptions pooled;
  pooled.pool.engine = "slurm";
  pooled.patience_s = 60;
  CHECK_FALSE(own_agent_stays(pooled));  // it runs no trials
  pooled.pool.local = true;
  CHECK(own_agent_stays(pooled));
}

}  // namespace
}  // namespace tune
