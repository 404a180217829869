#include "tune/drive/pool.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>
#include <variant>

#include <fmt/format.h>

#include "core/error.h"
#include "core/fitting.h"
#include "core/platform/files.h"
#include "core/strings.h"
#include "tune/drive/door.h"
#include "tune/drive/kubernetes_words.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/pool_value.h"
#include "tune/spec/pool_words.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

using Kind = EngineCall::Kind;

constexpr const char* kJoinFileName = "join";  // in the experiment's folder, by the Door

// Of an allocation whose output has to be there.
constexpr const char* kShowTail = R"([ ! -e "$1" ] || exec tail -n 12 -- "$1"
echo "nothing was printed to $1: where its machine does not see that folder, name one that it sees by pool/folder")";
// In the script that starts an agent.
constexpr const char* kNoToken = R"([ -r "$join" ] || {
  echo "$(uname -n) does not find the join file $join: name a folder that it sees by pool/folder" >&2
  exit 3
}
)";

fs::path in_home(const std::string& folder) {
  const char* home = std::getenv("HOME");
  if (!folder.starts_with("~/") || home == nullptr) return folder;
  return fs::path(home) / folder.substr(2);
}

void make_folder(const PoolFiles& files) {
  fs::create_directories(files.own);
  if (!files.are_elsewhere()) return;
  std::error_code why_not;
  fs::create_directories(files.folder, why_not);
  if (!why_not) fs::permissions(files.folder, fs::perms::owner_all, why_not);
  if (!why_not) return;
  throw Error(ErrorCode::kBadInput, fmt::format("pool/folder: making {} failed: {}",
                                                files.folder.string(), why_not.message()));
}

PoolMachine::Options machine_options(const ExperimentSpec& spec, const EngineWords& words) {
  const PoolOptions& pool = spec.options.pool;
  PoolMachine::Options options;
  options.min = static_cast<std::uint32_t>(pool.min);
  options.max = static_cast<std::uint32_t>(most_agents(pool, words.hosts.size()));
  options.backlog = static_cast<std::uint32_t>(pool.backlog);
  // An ssh host's CPUs and GPUs are known when it has joined.
  const bool is_known = words.hosts.empty() || pool.node.cpu.has_value();
  const NodeShare share =
      is_known ? share_of_trials(node_of(pool, spec.request), spec.request) : NodeShare{};
  options.places = share.places;
  options.group = share.group;
  options.idle = from_seconds(pool.idle.seconds());
  options.join_within = from_seconds(pool.join_within.seconds());
  options.poll = from_seconds(pool.poll.seconds());
  options.hosts = words.hosts;
  options.leaves_hosts_out = !words.hosts.empty() || words.exclusion;
  return options;
}

std::string host_of(const PoolBook& book, PoolBook::Number number) {
  const auto one = book.open().find(number);
  return one == book.open().end() ? std::string() : one->second.host;
}

}  // namespace

// ---- The loop's part ----------------------------------------------------------------------------

Pool::Pool(const ExperimentSpec& spec, const fs::path& experiment, CheckedEngine engine, Say say,
           const Clock& clock)
    : spec_(spec),
      files_(spec, experiment),
      engine_(std::move(engine)),
      prefix_(allocation_prefix_of(spec)),
      common_(pool_values(spec, files_)),
      needs_id_(std::ranges::any_of(
          engine_.words.stop, [](const auto& word) { return word.find("${id}") != word.npos; })),
      say_(std::move(say)),
      machine_(machine_options(spec, engine_.words)),
      clock_(clock),
      calls_(clock) {}

void Pool::open(Door& door) {
  const PoolOptions& pool = spec_.options.pool;
  engine_.place.driver_port = door.port();
  std::vector<std::string> addresses;
  if (pool.tunnel) {
    engine_.place.tunnel_port = tunnel_port_of(door.port());
    engine_.place.relay_port = door.relay_port();
    addresses.push_back(with_port("127.0.0.1", engine_.place.tunnel_port));
  }
  const std::vector<std::string> hosts = engine_.words.hosts;  // without those that refused
  engine_.words = engine_words(pool, engine_.place);
  engine_.words.hosts = hosts;
  door.set_join_addresses(std::move(addresses));
  write_files();
  if (!engine_.notice.empty()) say_(engine_.notice);
  door_ = &door;
  if (files_.are_elsewhere()) {
    prepared_ = door.tokens_written();
  } else {
    prepare();
  }
}

// With the token, where that is not in the experiment's folder: an agent may start at once.
void Pool::write_files() {
  make_folder(files_);
  write_file_atomically(files_.script,
                        agent_script(spec_, files_, agent_program(spec_.options.pool)));
  fs::permissions(files_.script, fs::perms::owner_all, fs::perm_options::add);
  if (!files_.are_elsewhere()) return;
  write_file_atomically(files_.join_file, read_file(files_.own / kJoinFileName),
                        Readers::kOwnerOnly);
}

// An agent started meanwhile has the former token: it is started again once that is refused.
void Pool::prepare() {
  if (engine_.words.prepare.empty() || door_->tokens_written() == prepared_) return;
  if (now_ < prepare_after_) return;
  prepared_ = door_->tokens_written();
  calls_.add({.kind = Kind::kPrepare,
              .words = filled_pool_words(engine_.words.prepare, values_of(0, "", ""))});
}

void Pool::look(const Controller& controller, DriverMachine& machine, DriverEndpoint& endpoint,
                std::chrono::nanoseconds now) {
  driver_ = &machine;
  endpoint_ = &endpoint;
  now_ = machine.experiment_time(now);
  for (const auto& [number, one] : controller.pool().open()) hosts_had_.insert(one.host);
  take_answers();
  prepare();
  machine_.look(now_, controller.pool(), scene_of(controller, endpoint.peers(), now));
  for (PoolEvent& event : machine_.take_events()) {
    const auto* change = std::get_if<AllocationChanged>(&event);
    if (change != nullptr && change->state == AllocationState::kEnded) keep_log(*change);
    std::visit([&](auto& one) { machine.on_pool(std::move(one)); }, event);
  }
  for (const PoolAction& action : machine_.take_actions()) {
    std::visit([this](const auto& one) { on(one); }, action);
  }
}

PoolScene Pool::scene_of(const Controller& controller, const Peers& peers,
                         std::chrono::nanoseconds now) const {
  PoolScene scene = pool_scene(controller, spec_.request);
  for (PoolScene::Node& node : scene.nodes) node.silence = now - peers.last_heard(node.agent);
  return scene;
}

std::string Pool::order(const Value& request, DriverMachine& machine) const {
  PoolOrdered event;
  if (request.contains("max")) event.max = request.get<std::uint32_t>("max");
  if (request.contains("paused")) event.paused = request.get<bool>("paused");
  event.cause = request.get<std::string>("user");
  machine.on_pool(event);
  std::string text = event.max ? fmt::format("at most {} agents from now on", *event.max) : "";
  const int each = nodes_for(node_of(spec_.options.pool, spec_.request), spec_.request);
  if (event.max && static_cast<int>(*event.max) < each) {
    text += fmt::format(", and a trial needs {}: none begins on them", each);
  }
  if (!event.paused) return text;
  return text + (text.empty() ? "" : "; ") +
         (*event.paused ? "no agents are asked for; those that are there stay"
                        : "agents are asked for again");
}

std::optional<std::string> Pool::drain(const Value& request, const Controller& controller,
                                       DriverMachine& machine) const {
  const Nodes& nodes = controller.nodes();
  const AgentNumber agent = find_node(nodes, request.get<std::string>("node"));
  const auto& open = controller.pool().open();
  const auto one = open.find(controller.allocation_of(nodes.hello(agent)));
  if (one == open.end() || engine_.words.hosts.empty()) return std::nullopt;
  const std::string& host = one->second.host;
  machine.on_pool(PoolOrdered{
      .max = {}, .paused = {}, .cause = request.get<std::string>("user"), .drained = host});
  return fmt::format(
      "node {} leaves when its trials have saved; host {} gets no more agents until tune pool DIR "
      "--resume",
      node_name(nodes, agent), host);
}

// Each step may use what those before it have left of their time.
void Pool::end(const PoolBook& book, std::chrono::nanoseconds patience) {
  const auto begin = clock_.monotonic();
  const auto until = [&](int eighths) {
    return std::max(std::chrono::nanoseconds{},
                    begin + patience * eighths / 8 - clock_.monotonic());
  };
  std::map<PoolBook::Number, std::string> ids;
  for (const auto& [number, one] : book.open()) ids[number] = one.id;
  for (const EngineAnswer& answer : calls_.finish(until(2))) {
    if (answer.call.kind != Kind::kStart || !answer.why_not.empty()) continue;
    ids[answer.call.number] = id_of(engine_.words.id_form, answer.output);
  }
  calls_.take_given_up();  // a start is found by its name, if it has worked
  const bool lacks_id =
      needs_id_ && std::ranges::any_of(ids, [](const auto& one) { return one.second.empty(); });
  for (const auto& [number, id] : ids) on(StopAllocation{number, id, host_of(book, number)});
  // A start that was called refused may have worked, and what was called ended may be there.
  if (lacks_id || machine_.is_unsure()) {
    on(ListAllocations{});
    for (const EngineAnswer& answer : calls_.finish(until(4))) take_list(answer);
    for (const ListedAllocation& one : listed_) {
      const auto asked = ids.find(one.number);
      const bool was_asked = asked != ids.end() && (!needs_id_ || asked->second == one.id);
      if (one.state == AllocationState::kEnded || was_asked) continue;
      on(StopAllocation{one.number, one.id, one.host});
      ids[one.number] = one.id;
    }
  }
  calls_.finish(until(engine_.words.finish.empty() ? 8 : 6));
  if (!engine_.words.finish.empty()) finish(book, ids, until);
  tell_given_up(ids);
}

// Removes what the pool has left elsewhere.
void Pool::finish(const PoolBook& book, const std::map<PoolBook::Number, std::string>& ids,
                  const std::function<std::chrono::nanoseconds(int eighths)>& until) {
  if (engine_.words.finish_by_host) {  // with what agents have printed there
    for (const auto& [number, id] : ids) {
      if (!book.open().contains(number)) continue;
      keep_log({number, AllocationState::kEnded, id, host_of(book, number), ""});
    }
    calls_.finish(until(7));
  } else {
    hosts_had_ = {""};
  }
  for (const std::string& host : hosts_had_) {
    calls_.add({.kind = Kind::kStop,
                .words = filled_pool_words(engine_.words.finish, values_of(0, "", host)),
                .host = host});
  }
  for (const EngineAnswer& answer : calls_.finish(until(8))) {
    if (!answer.why_not.empty()) say_("tidying up after the pool: " + answer.why_not);
  }
}

// Nobody else looks for these any more.
void Pool::tell_given_up(const std::map<PoolBook::Number, std::string>& ids) {
  std::vector<std::string> parts;
  for (const EngineCall& call : calls_.take_given_up()) {
    const std::string at = call.host.empty() ? "" : " on " + call.host;
    if (call.kind == Kind::kList) {
      parts.push_back(fmt::format("listing what is named {}*{}", prefix_, at));
    } else if (call.kind == Kind::kKeepLog) {
      parts.push_back("fetching the output of " + name_of(call.number));
    } else if (call.kind == Kind::kStop && call.number == 0) {
      parts.push_back("tidying up" + at);
    } else if (call.kind == Kind::kStop) {
      const auto id = ids.find(call.number);
      const bool has_id = id != ids.end() && !id->second.empty();
      parts.push_back("stopping " + name_of(call.number) + (has_id ? ", " + id->second : ""));
    }
  }
  if (parts.empty()) return;
  say_(
      fmt::format("the pool's engine did not answer in time, so look yourself at what it was asked "
                  "for: {}",
                  join(parts, "; ")));
}

// ---- Answers ------------------------------------------------------------------------------------

void Pool::take_answers() {
  for (const EngineAnswer& answer : calls_.take()) {
    switch (answer.call.kind) {
      case Kind::kStart:
        if (answer.why_not.empty()) {
          machine_.on_started(answer.call.number, id_of(engine_.words.id_form, answer.output));
        } else {
          machine_.on_not_started(answer.call.number, answer.why_not);
        }
        break;
      case Kind::kList:
        take_list(answer);
        break;
      case Kind::kStop:
        machine_.on_stopped(answer.call.number, answer.why_not);
        break;
      case Kind::kLog:
        tell_log(answer);
        break;
      case Kind::kPrepare:
        take_prepared(answer.why_not);
        break;
      case Kind::kCheck:
      case Kind::kKeepLog:
        break;
    }
  }
}

// Without the token no agent could begin, and none would tell.
void Pool::take_prepared(const std::string& why_not) {
  if (!why_not.empty()) {
    prepared_ = 0;
    prepare_after_ = now_ + from_seconds(spec_.options.pool.poll.seconds());
    if (not_prepared_.empty()) say_("preparing the pool's nodes, tried again: " + why_not);
  }
  not_prepared_ = why_not;
}

void Pool::take_list(const EngineAnswer& answer) {
  if (answer.call.kind != Kind::kList || lists_open_ == 0) return;
  const std::string& host = answer.call.host;
  if (!answer.why_not.empty()) {
    not_listed_ = host.empty() ? answer.why_not : fmt::format("{}: {}", host, answer.why_not);
    silent_hosts_.insert(host);
  }
  for (ListedAllocation& one : listed_in(engine_.words.list_form, answer.output, prefix_)) {
    if (!host.empty()) one.host = host;
    listed_.push_back(std::move(one));
  }
  if (--lists_open_ > 0) return;
  if (engine_.words.list_by_host || not_listed_.empty()) {
    machine_.on_listed(listed_, answer.call.asked_at, silent_hosts_, not_listed_);
  } else {
    machine_.on_not_listed(not_listed_);
  }
}

void Pool::tell_log(const EngineAnswer& answer) {
  const std::size_t end = answer.output.find_last_not_of(" \n");
  if (end == std::string::npos) return say_(answer.call.text);
  std::istringstream lines(answer.output.substr(0, end + 1));
  std::string text = answer.call.text;
  for (std::string line; std::getline(lines, line);) text += "\n  | " + line;
  say_(text);
}

// ---- Actions ------------------------------------------------------------------------------------

std::string Pool::name_of(PoolBook::Number number) const {
  return prefix_ + std::to_string(number);
}

PoolValues Pool::values_of(PoolBook::Number number, const std::string& id,
                           const std::string& host) const {
  PoolValues values = common_;
  values["name"] = name_of(number);
  values["log"] = files_.log(values["name"]);
  values["own_log"] = files_.own / (values["name"] + ".log");
  values["id"] = id;
  values["host"] = host;
  return values;
}

void Pool::on(const StartAllocation& action) {
  PoolValues values = values_of(action.number, "", action.host);
  if (!action.excluded.empty() && engine_.words.exclusion) {
    values["exclude"] = engine_.words.exclusion(action.excluded);
  }
  calls_.add({.kind = Kind::kStart,
              .words = filled_pool_words(engine_.words.start, values),
              .number = action.number,
              .input = engine_.words.manifest ? engine_.words.manifest(values) : ""});
}

void Pool::on(const ListAllocations&) {
  listed_.clear();
  silent_hosts_.clear();
  not_listed_.clear();
  std::vector<std::string> hosts = {""};
  if (engine_.words.list_by_host) hosts = engine_.words.hosts;
  lists_open_ = hosts.size();
  for (const std::string& host : hosts) {
    calls_.add({.kind = Kind::kList,
                .words = filled_pool_words(engine_.words.list, values_of(0, "", host)),
                .host = host,
                .asked_at = now_});
  }
}

// The engine does not have a job that it gave no id and does not list.
void Pool::on(const StopAllocation& action) {
  if (action.id.empty() && needs_id_) return machine_.on_stopped(action.number, "");
  calls_.add({.kind = Kind::kStop,
              .words = filled_pool_words(engine_.words.stop,
                                         values_of(action.number, action.id, action.host)),
              .number = action.number});
}

void Pool::on(const DrainNode& action) {
  endpoint_->send(action.agent, Drain{action.cause});
}

void Pool::on(const TakeForGone& action) {
  driver_->on_agent_ended(endpoint_->peers().identity_of(action.agent), action.cause);
}

// By a program: the file may be on a file system that stalls.
void Pool::on(const ShowLog& action) {
  const PoolValues values = values_of(action.number, "", action.host);
  std::vector<std::string> words = engine_.words.last_words;
  if (words.empty()) words = {"sh", "-c", kShowTail, "sh", "${log}"};
  words = filled_pool_words(words, values);
  calls_.add({.kind = Kind::kLog,
              .words = std::move(words),
              .number = action.number,
              .text = action.text});
}

// The engine would forget what an agent has printed that left in order.
void Pool::keep_log(const AllocationChanged& end) {
  if (engine_.words.last_words.empty()) return;
  calls_.add(
      {.kind = Kind::kKeepLog,
       .words = filled_pool_words(engine_.words.last_words, values_of(end.number, "", end.host)),
       .number = end.number});
}

// ---- Before the run -----------------------------------------------------------------------------

PoolFiles::PoolFiles(const ExperimentSpec& spec, const fs::path& experiment)
    : own(experiment / "nodes"), folder(own) {
  const std::string& wanted = spec.options.pool.folder;
  if (!wanted.empty()) {
    const std::string prefix = allocation_prefix_of(spec);
    folder = in_home(wanted) / prefix.substr(0, prefix.size() - 1);
  }
  script = folder / "agent.sh";
  join_file = folder / kJoinFileName;
}

std::string agent_program(const PoolOptions& pool) {
  if (!pool.program.empty()) return pool.program;
  if (pool.engine == "kubernetes") return "tune";  // of the image
  const fs::path self = fs::read_symlink("/proc/self/exe");
  if (self.filename() == "tune") return self;
  const char* worker = std::getenv("TUNE_WORKER");  // beside tune, when a program of its own runs
  const fs::path beside = (worker != nullptr ? fs::path(worker) : self).parent_path() / "tune";
  return ::access(beside.c_str(), X_OK) == 0 ? beside.string() : "tune";
}

PoolValues pool_values(const ExperimentSpec& spec, const PoolFiles& files) {
  const PoolOptions& pool = spec.options.pool;
  const NodeResources node = node_of(pool, spec.request);
  PoolValues values;
  for (const char* name : {"name", "id", "host", "exclude", "log", "own_log"}) values[name] = "";
  values["prefix"] = allocation_prefix_of(spec);
  values["experiment"] = values["prefix"].substr(0, values["prefix"].size() - 1);
  values["script"] = files.script;
  values["join_file"] = files.join_file;
  values["folder"] = files.folder;
  values["own_folder"] = files.own;
  values["own_join_file"] = files.own / kJoinFileName;
  values["cpu"] = fmt::format("{:g}", static_cast<double>(node.cpu_units) / kUnit);
  values["gpu"] = std::to_string(node.gpus.size());
  values["memory_mb"] = std::to_string(node.memory_bytes >> 20);
  values["time_s"] = fmt::format("{:.0f}", std::ceil(pool.time.seconds()));
  values["time_min"] = fmt::format("{:.0f}", std::ceil(pool.time.seconds() / 60));
  values["drain_s"] = fmt::format("{:.0f}", std::ceil(pool.drain.seconds()));
  return values;
}

std::string agent_script(const ExperimentSpec& spec, const PoolFiles& files,
                         const std::string& program) {
  const PoolOptions& pool = spec.options.pool;
  const PoolValues values = pool_values(spec, files);
  std::string text = pool.setup.empty() ? "#!/bin/sh\n" : "#!/bin/bash -l\n";
  text += fmt::format(
      "# Starts an agent of the sweep {}. Its arguments are the name of the allocation and, where\n"
      "# there are several, the host. Written by the driver: changes are lost.\n",
      spec.name.empty() ? "NAME" : spec.name);
  for (const std::string& line : pool.setup) text += line + "\n";
  const bool is_batch = pool.engine != "ssh" && pool.engine != "command";
  const auto share = [](const char* option, const std::string& value) {
    return fmt::format("{}='--{} {}'", option, option, value);
  };
  text += is_batch || pool.node.cpu ? share("cpus", values.at("cpu")) + "\n" : "cpus=\n";
  if (pool.engine == "slurm" && !pool.node.is_given()) {
    text += fmt::format("[ \"$2\" != {} ] || cpus=\"--cpus $SLURM_CPUS_ON_NODE\"\n", kWholeNode);
  }
  // Ray hides no GPUs from an actor that has asked for none.
  const bool tells_gpus = pool.engine == "ray" || (!is_batch && pool.node.gpu > 0);
  text += tells_gpus ? share("gpus", values.at("gpu")) + "\n" : "gpus=\n";
  if (!pool.hosts.empty()) {  // a host's own share comes before that of all
    text += "case \"$2\" in\n";
    for (const PoolHost& host : pool.hosts) {
      if (!host.cpu && !host.gpu) continue;
      text += shell_word(host.name) + ")";
      if (host.cpu) text += " " + share("cpus", fmt::format("{:g}", *host.cpu));
      if (host.gpu) text += " " + share("gpus", fmt::format("{:g}", *host.gpu));
      text += " ;;\n";
    }
    text += "esac\n";
  }
  const bool is_pod = pool.engine == "kubernetes";
  text += fmt::format("join=${{TUNE_JOIN_FILE:-{}}}; unset TUNE_JOIN_FILE\n",
                      shell_word(is_pod ? kTokenInPod : files.join_file.string()));
  if (!is_pod) text += kNoToken;
  std::string options;
  if (pool.time.seconds() > 0) options = fmt::format(" --until {}s", values.at("time_s"));
  text += fmt::format(
      "exec {} agent --join-file \"$join\"{} --drain {}s $cpus $gpus --name "
      "\"${{1:-$TUNE_ALLOCATION}}\"\n",
      shell_word(program), options, values.at("drain_s"));
  return text;
}

}  // namespace tune
