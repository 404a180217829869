#include "tune/spec/pool_value.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/fitting.h"
#include "core/strings.h"
#include "tune/spec/pool_words.h"
#include "tune/spec/when.h"

namespace tune {

namespace {

const std::vector<std::string> kEngines = {"slurm", "ssh", "kubernetes",  "ray",      "command",
                                           "pbs",   "lsf", "grid_engine", "htcondor", "flux"};
const std::vector<std::string> kInside = {"agents", "submit"};

void read_time(OptionReader& group, const char* key, TimeSpan& time) {
  const Value* found = group.take(key);
  if (found == nullptr) return;
  if (found->is_number()) {
    time = found->number();
    return;
  }
  if (!found->is_string()) {
    return group.complain(
        key, fmt::format("expected a time such as 5m or 4h, found {}", describe_value(*found)));
  }
  try {
    time = found->string();
    time.seconds();
  } catch (const Error& error) {
    group.complain(key, error.what());
    time = TimeSpan(1);
  }
}

void read_memory(OptionReader& group, MemorySize& memory) {
  const Value* found = group.take("memory");
  if (found == nullptr) return;
  try {
    if (found->is_string()) {
      memory = MemorySize(found->string());
    } else if (found->type() == Value::Type::kInt) {
      memory = MemorySize(found->integer());
    } else {
      group.complain("memory", fmt::format("expected bytes or a text such as 60GiB, found {}",
                                           describe_value(*found)));
    }
  } catch (const Error& error) {
    group.complain("memory", error.what());
  }
}

void read_node(OptionReader& pool, PoolNode& node) {
  const Value* found = pool.take("node");
  if (found == nullptr) return;
  OptionReader group(*found, "pool/node", pool.complaints());
  group.read("cpu", node.cpu);
  group.read("gpu", node.gpu);
  read_memory(group, node.memory);
  group.finish();
}

// `a`, or `a: {gpu: 2}`.
void read_host(OptionReader& pool, const Value& value, std::size_t number, PoolHost& host) {
  const std::string path = fmt::format("pool/hosts/{}", number);
  if (value.is_string()) {
    host.name = value.string();
  } else if (value.is_map() && value.map().size() == 1) {
    const Member& member = value.map().front();
    host.name = member.key;
    OptionReader group(member.value, join_path(path, member.key), pool.complaints());
    group.read("cpu", host.cpu);
    group.read("gpu", host.gpu);
    group.finish();
  } else {
    pool.complaints().push_back(
        {.path = path,
         .message = fmt::format("expected a host, as in node7 or node7: {{gpu: 2}}, found {}",
                                describe_value(value))});
  }
}

void read_hosts(OptionReader& pool, std::vector<PoolHost>& hosts) {
  const Value* found = pool.take("hosts");
  if (found == nullptr) return;
  if (!found->is_list()) {
    return pool.complain("hosts", fmt::format("expected a list of hosts, as in [a, b], found {}",
                                              describe_value(*found)));
  }
  hosts.clear();
  for (const Value& one : found->list()) {
    read_host(pool, one, hosts.size(), hosts.emplace_back());
  }
}

Value hosts_to_value(const std::vector<PoolHost>& hosts) {
  Value::List list;
  for (const PoolHost& host : hosts) {
    Value amounts = Value::make_map();
    if (host.cpu) amounts.set("cpu", *host.cpu);
    if (host.gpu) amounts.set("gpu", *host.gpu);
    Value named = Value::make_map();
    named.set(host.name, std::move(amounts));
    list.push_back(std::move(named));
  }
  return Value::make_list(std::move(list));
}

// ---- Mistakes -----------------------------------------------------------------------------------

bool is_cpu_amount(double cpus) {
  return cpus > 0;
}

bool is_gpu_amount(double gpus) {
  return gpus >= 0 && gpus == std::floor(gpus);
}

class PoolCheck {
 public:
  PoolCheck(const PoolOptions& pool, std::vector<Complaint>& complaints)
      : pool_(pool), max_(most_agents(pool, pool.hosts.size())), complaints_(complaints) {}

  void check_numbers() {
    if (max_ < 1) complain("max", fmt::format("{} agents: it must be at least 1", max_));
    if (pool_.min < 0 || pool_.min > max_) {
      complain("min", fmt::format("{} is out of range: it must be from 0 to max, which is {}",
                                  pool_.min, max_));
    }
    if (pool_.backlog < 1) {
      complain("backlog", fmt::format("{}: it must be at least 1, or no agent is ever asked for",
                                      pool_.backlog));
    }
    const auto check_above = [&](const char* key, const TimeSpan& time, double least) {
      if (time.seconds() < least || !std::isfinite(time.seconds())) {
        complain(key, fmt::format("{:g} s is out of range: it must be at least {:g} s",
                                  time.seconds(), least));
      }
    };
    check_above("time", pool_.time, 0);
    check_above("drain", pool_.drain, 0);
    check_above("idle", pool_.idle, 1);
    check_above("join_within", pool_.join_within, 1);
    check_above("poll", pool_.poll, 0.2);
    const double time = pool_.time.seconds();
    if (time > 0 && time <= pool_.drain.seconds()) {
      complain("time", fmt::format("{:g} s is no longer than drain ({:g} s): no trial would begin",
                                   time, pool_.drain.seconds()));
    }
  }

  void check_engine() {
    if (std::ranges::find(kEngines, pool_.engine) == kEngines.end()) {
      return complain("engine",
                      fmt::format("there is no engine '{}'{}; engines: {}", pool_.engine,
                                  did_you_mean(pool_.engine, kEngines), join(kEngines, ", ")));
    }
    if (std::ranges::find(kInside, pool_.inside) == kInside.end()) {
      complain("inside", fmt::format("expected agents or submit, found '{}'", pool_.inside));
    }
    check_words();
    check_hosts();
    check_folder();
    check_image();
  }

  void check_node(const ResourceRequest& request) {
    if (pool_.node.cpu && !is_cpu_amount(*pool_.node.cpu)) {
      return complain("node/cpu", fmt::format("{} CPUs: it must be above 0", *pool_.node.cpu));
    }
    if (!is_gpu_amount(pool_.node.gpu)) {
      return complain("node/gpu", fmt::format("{} GPUs: give a whole number", pool_.node.gpu));
    }
    if (std::ranges::any_of(pool_.hosts, [](const auto& host) { return host.cpu || host.gpu; })) {
      return check_own_amounts(request);
    }
    const NodeResources node = node_of(pool_, request);
    const int nodes = nodes_for(node, request);
    if (nodes == 0) {
      return complain("node",
                      why_never({&node}, request) + ": give an agent more, or a trial less");
    }
    const bool is_of_hosts = !pool_.hosts.empty() && std::ssize(pool_.hosts) <= max_;
    const std::int64_t most = is_of_hosts ? std::ssize(pool_.hosts) : max_;
    if (nodes <= most || most < 1) return;
    complain(
        is_of_hosts ? "hosts" : "max",
        fmt::format("a trial needs {} nodes of {}; the pool has {}: give it more, an agent more, "
                    "or a trial less",
                    nodes, words_of_node(),
                    is_of_hosts ? fmt::format("{} host{}", most, most == 1 ? "" : "s")
                                : fmt::format("max: {}", most)));
  }

 private:
  void complain(const std::string& key, std::string message) {
    complaints_.push_back({.path = "pool/" + key, .message = std::move(message)});
  }

  // Of a node that is given: else it holds a trial.
  std::string words_of_node() const {
    std::vector<std::string> amounts;
    if (pool_.node.cpu) amounts.push_back(fmt::format("cpu: {}", *pool_.node.cpu));
    if (pool_.node.gpu > 0) amounts.push_back(fmt::format("gpu: {}", pool_.node.gpu));
    if (const std::int64_t bytes = pool_.node.memory.bytes(); bytes > 0) {
      amounts.push_back(fmt::format("memory: {}MiB", bytes >> 20));
    }
    return fmt::format("{{{}}}", join(amounts, ", "));
  }

  void check_words() {
    for (const auto& [key, words] :
         {std::pair{"start", &pool_.start}, {"list", &pool_.list}, {"stop", &pool_.stop}}) {
      const bool is_command = pool_.engine == "command";
      if (is_command && words->empty()) {
        complain(key, "is missing: the engine command needs the words of start, list and stop");
      } else if (!is_command && !words->empty()) {
        complain(key, fmt::format("belongs to the engine command, and {} has commands of its own",
                                  pool_.engine));
      }
      check_pool_words(*words, fmt::format("pool/{}", key), complaints_);
    }
  }

  void check_hosts() {
    const bool is_ssh = pool_.engine == "ssh";
    if (is_ssh && pool_.hosts.empty()) complain("hosts", "is missing: name them, as in [a, b]");
    if (!is_ssh && !pool_.hosts.empty()) complain("hosts", "belongs to the engine ssh");
    if (!is_ssh && pool_.tunnel) complain("tunnel", "belongs to the engine ssh");
    std::set<std::string> names;
    for (std::size_t i = 0; i < pool_.hosts.size(); ++i) {
      const std::string& name = pool_.hosts[i].name;
      const std::string key = fmt::format("hosts/{}", i);
      if (name.starts_with('-')) complain(key, fmt::format("'{}' is not a host", name));
      if (!names.insert(name).second) complain(key, fmt::format("{} is given twice", name));
      check_amounts(key + "/" + name, pool_.hosts[i]);
    }
  }

  void check_amounts(const std::string& key, const PoolHost& host) {
    if (host.cpu && !is_cpu_amount(*host.cpu)) {
      complain(key + "/cpu", fmt::format("{} CPUs: it must be above 0", *host.cpu));
    }
    if (host.gpu && !is_gpu_amount(*host.gpu)) {
      complain(key + "/gpu", fmt::format("{} GPUs: give a whole number", *host.gpu));
    }
  }

  // Of a host whose amounts are not given, what a trial needs: it may have it.
  NodeResources as_far_as_known(const PoolHost& host, const ResourceRequest& request) const {
    const std::int64_t needed = request.ranks * share_of(request).gpus;
    NodeResources node;
    node.memory_bytes = request.memory_bytes;
    node.cpu_units = request.cpu_units;
    if (const auto cpus = host.cpu ? host.cpu : pool_.node.cpu) node.cpu_units = to_units(*cpus);
    double gpus = host.gpu.value_or(pool_.node.gpu);
    if (!host.gpu && pool_.node.gpu == 0) gpus = static_cast<double>(needed);
    node.gpus.resize(static_cast<std::size_t>(std::min(gpus, static_cast<double>(needed))));
    return node;
  }

  // Alone or, in equal parts, together.
  void check_own_amounts(const ResourceRequest& request) {
    std::vector<NodeResources> hosts;
    for (const PoolHost& host : pool_.hosts) {
      const bool is_right =
          is_cpu_amount(host.cpu.value_or(1)) && is_gpu_amount(host.gpu.value_or(0));
      if (!is_right) return;  // that is told
      hosts.push_back(as_far_as_known(host, request));
    }
    const int most = static_cast<int>(std::min<std::int64_t>(std::ssize(hosts), max_));
    if (most < 1) return;
    for (int count = 1; count <= std::min(most, static_cast<int>(request.ranks)); ++count) {
      if (request.ranks % count != 0) continue;
      const ResourceRequest part = part_of(request, count);
      const auto holds = [&](const auto& host) {
        return fit_on(empty_room(host), part).has_value();
      };
      if (std::ranges::count_if(hosts, holds) >= count) return;
    }
    std::vector<const NodeResources*> all;
    for (const NodeResources& host : hosts) all.push_back(&host);
    const bool is_group = request.ranks > 1 && most > 1;
    complain(
        "hosts",
        fmt::format("{}{}: give a host more, or a trial less", why_never(all, request),
                    is_group ? fmt::format(", and no equal parts fit on {} hosts", most) : ""));
  }

  void check_folder() {
    if (pool_.folder.empty()) return;
    if (!pool_.folder.starts_with('/') && !pool_.folder.starts_with("~/")) {
      complain("folder",
               fmt::format("'{}' is not the same folder everywhere: begin it with / or ~/",
                           pool_.folder));
    }
    if (pool_.engine == "kubernetes") {
      complain("folder", "kubernetes hands the token to pods by a Secret, and needs no folder");
    }
  }

  void check_image() {
    const bool is_kubernetes = pool_.engine == "kubernetes";
    if (is_kubernetes && pool_.image.empty()) {
      complain("image", "is missing: name the container image that agents run in, with tune in it");
    }
    for (const auto& [key, text] :
         {std::pair{"image", &pool_.image}, {"queue", &pool_.queue}, {"patch", &pool_.patch}}) {
      if (!is_kubernetes && !text->empty()) complain(key, "belongs to the engine kubernetes");
    }
    if (pool_.engine != "ray" && !pool_.interpreter.empty()) {
      complain("interpreter", "belongs to the engine ray");
    }
  }

  const PoolOptions& pool_;
  const int max_;
  std::vector<Complaint>& complaints_;
};

}  // namespace

double TimeSpan::seconds() const {
  return text_.empty() ? seconds_ : tune::seconds(duration_of(text_, "a time"));
}

void read_pool(OptionReader& reader, PoolOptions& pool) {
  const Value* found = reader.take("pool");
  if (found == nullptr) return;
  OptionReader group(*found, "pool", reader.complaints());
  group.read("engine", pool.engine);
  if (found->is_map() && !found->contains("engine")) {
    group.complain("engine", fmt::format("is missing: name one of {}", join(kEngines, ", ")));
  }
  group.read("min", pool.min);
  group.read("max", pool.max);
  read_node(group, pool.node);
  read_time(group, "time", pool.time);
  read_time(group, "drain", pool.drain);
  read_time(group, "idle", pool.idle);
  read_time(group, "join_within", pool.join_within);
  read_time(group, "poll", pool.poll);
  group.read("backlog", pool.backlog);
  group.read("submit", pool.submit);
  group.read("setup", pool.setup);
  group.read("local", pool.local);
  group.read("inside", pool.inside);
  read_hosts(group, pool.hosts);
  group.read("tunnel", pool.tunnel);
  group.read("start", pool.start);
  group.read("list", pool.list);
  group.read("stop", pool.stop);
  group.read("program", pool.program);
  group.read("folder", pool.folder);
  group.read("image", pool.image);
  group.read("queue", pool.queue);
  group.read("patch", pool.patch);
  group.read("interpreter", pool.interpreter);
  group.finish();
}

Value pool_to_value(const PoolOptions& pool) {
  Value node{{"gpu", pool.node.gpu}, {"memory", pool.node.memory.bytes()}};
  if (pool.node.cpu) node.set("cpu", *pool.node.cpu);
  Value value{{"engine", pool.engine},
              {"min", pool.min},
              {"node", node},
              {"time", pool.time.seconds()},
              {"drain", pool.drain.seconds()},
              {"idle", pool.idle.seconds()},
              {"join_within", pool.join_within.seconds()},
              {"poll", pool.poll.seconds()},
              {"backlog", pool.backlog},
              {"submit", pool.submit},
              {"setup", pool.setup},
              {"local", pool.local},
              {"inside", pool.inside},
              {"hosts", hosts_to_value(pool.hosts)},
              {"tunnel", pool.tunnel},
              {"start", pool.start},
              {"list", pool.list},
              {"stop", pool.stop},
              {"program", pool.program},
              {"folder", pool.folder},
              {"image", pool.image},
              {"queue", pool.queue},
              {"patch", pool.patch},
              {"interpreter", pool.interpreter}};
  if (pool.max) value.set("max", *pool.max);
  return value;
}

void check_pool(const PoolOptions& pool, const ResourceRequest& request,
                std::vector<Complaint>& complaints) {
  if (!pool.is_given()) return;
  PoolCheck check(pool, complaints);
  check.check_engine();
  check.check_numbers();
  check.check_node(request);
}

bool takes_machines(const RunOptions& options) {
  return !options.listen.empty() || options.pool.is_given();
}

// A pool's driver without a part of its own runs no trials.
bool own_agent_stays(const RunOptions& options) {
  if (options.pool.is_given() && !options.pool.local) return false;
  return options.patience_s.has_value() || takes_machines(options);
}

bool awaits_agents(const RunOptions& options) {
  return takes_machines(options) || own_agent_stays(options);
}

std::string listens_at(const RunOptions& options) {
  if (!options.listen.empty()) return options.listen;
  return options.pool.is_given() && !options.pool.tunnel ? "0.0.0.0" : "127.0.0.1";
}

int most_agents(const PoolOptions& pool, std::size_t hosts) {
  constexpr int kUsual = 16;
  return pool.max.value_or(hosts > 0 ? static_cast<int>(hosts) : kUsual);
}

NodeResources node_of(const PoolOptions& pool, const ResourceRequest& request) {
  NodeResources node;
  node.cpu_units = pool.node.cpu ? to_units(*pool.node.cpu) : request.cpu_units;
  const auto gpus = pool.node.is_given() ? static_cast<std::int64_t>(pool.node.gpu)
                                         : (request.gpu_units + kUnit - 1) / kUnit;
  node.gpus.resize(static_cast<std::size_t>(gpus));
  node.memory_bytes =
      pool.node.memory.bytes() > 0 ? pool.node.memory.bytes() : request.memory_bytes;
  return node;
}

}  // namespace tune
