// Before a run: whether the engine of a pool could start anything here.
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "tune/drive/pool.h"
#include "tune/spec/command_options.h"
#include "tune/spec/pool_value.h"

namespace tune {

namespace {

constexpr std::chrono::seconds kPatience{40};      // for one question
constexpr std::chrono::seconds kHostPatience{30};  // for one host: 10 to connect, then the login

std::string login_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? std::to_string(::getuid()) : entry->pw_name;
}

[[noreturn]] void refuse(const ExperimentSpec& spec, const std::string& why) {
  throw Error(ErrorCode::kBadInput, with_places(spec, fmt::format("pool: the engine {}: {}",
                                                                  spec.options.pool.engine, why)));
}

// Of Slurm: the hosts of the job that this process is a part of.
void find_job(EnginePlace& place) {
  const char* job = std::getenv("SLURM_JOB_ID");
  const char* nodes = std::getenv("SLURM_JOB_NODELIST");
  if (job == nullptr || nodes == nullptr) return;
  std::istringstream lines(output_of({"scontrol", "show", "hostnames", nodes}, kPatience));
  for (std::string host; std::getline(lines, host);) {
    if (!host.empty()) place.job_hosts.push_back(host);
  }
  if (!place.job_hosts.empty()) place.job = job;
}

EnginePlace find_place(const ExperimentSpec& spec) {
  EnginePlace place;
  place.node = node_of(spec.options.pool, spec.request);
  place.user = login_name();
  if (spec.options.pool.engine == "slurm") find_job(place);
  place.script = agent_script(spec, PoolFiles(spec, "."), agent_program(spec.options.pool));
  return place;
}

[[noreturn]] void fail(const std::string& why) {
  throw Error(ErrorCode::kBadInput, why);
}

void check_programs(const EngineWords& words) {
  std::set<std::string> told;
  for (const auto* all : {&words.check, &words.start, &words.list, &words.stop}) {
    if (all->empty() || !told.insert(all->front()).second) continue;
    const std::string why = why_no_program(all->front());
    if (!why.empty()) fail(why);
  }
}

void add_notice(CheckedEngine& engine, const std::string& text) {
  engine.notice += (engine.notice.empty() ? "" : "; ") + text;
}

// As many at once as an sshd takes that all others are reached through (MaxStartups). Each host has
// its own time, so those that hang keep no other from being asked. Those that refuse or do not
// answer get no agents.
void check_hosts(const PoolValues& values, CheckedEngine& engine, const Clock& clock) {
  std::vector<std::string>& hosts = engine.words.hosts;
  EngineCalls calls(clock, kHostPatience);
  for (const std::string& host : hosts) {
    PoolValues at = values;
    at["host"] = host;
    calls.add({.words = filled_pool_words(engine.words.check, at), .host = host});
  }
  std::map<std::string, std::string> answers;  // why not, by host
  for (EngineAnswer& answer : calls.finish(kHostPatience * (std::ssize(hosts) + 1))) {
    answers[answer.call.host] = std::move(answer.why_not);
  }
  std::vector<std::string> wrong;
  for (const std::string& host : hosts) {
    const std::string& why_not = answers.at(host);
    if (!why_not.empty()) wrong.push_back(fmt::format("{}: {}", host, why_not));
  }
  if (wrong.size() == hosts.size()) {
    fail(fmt::format("no host can be reached ({})", join(wrong, "; ")));
  }
  if (wrong.empty()) return;
  add_notice(engine, fmt::format("hosts without agents: {}", join(wrong, "; ")));
  std::erase_if(hosts, [&](const auto& host) { return !answers.at(host).empty(); });
}

void ask(const ExperimentSpec& spec, CheckedEngine& engine, const Clock& clock) {
  PoolValues values = pool_values(spec, PoolFiles(spec, "."));
  values["name"] = values.at("prefix") + "0";
  values["log"] = "/dev/null";
  if (engine.words.list_by_host) return check_hosts(values, engine, clock);
  if (!engine.words.check.empty()) {
    const std::string input = engine.words.manifest ? engine.words.manifest(values) : "";
    output_of(filled_pool_words(engine.words.check, values), kPatience, input);
  }
  output_of(filled_pool_words(engine.words.list, values), kPatience);
}

}  // namespace

CheckedEngine checked_engine(const ExperimentSpec& spec, const EngineCheck& check) try {
  CheckedEngine engine;
  engine.place = find_place(spec);
  engine.words = engine_words(spec.options.pool, engine.place);
  engine.notice = engine.words.environment_note;
  check_programs(engine.words);
  try {
    ask(spec, engine, check.clock);
  } catch (const Error& error) {
    if (!check.is_resumed) throw;
    add_notice(engine, fmt::format("the pool's engine would start nothing now ({}): nodes that are "
                                   "there go on",
                                   error.what()));
  }
  return engine;
} catch (const Error& error) {
  refuse(spec, error.what());
}

}  // namespace tune
