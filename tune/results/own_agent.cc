#include "tune/results/own_agent.h"

#include <signal.h>

#include <thread>

#include <fmt/format.h>

#include "core/agent/agent.h"
#include "core/agent_contract.h"
#include "core/build.h"
#include "core/error.h"
#include "core/join_greeting.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/platform/lock.h"
#include "core/platform/node.h"
#include "core/platform/runtime_directory.h"
#include "core/value.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookEvery{20};
constexpr std::chrono::milliseconds kMoment{200};  // for one that is ending
constexpr std::chrono::hours kAnyTime{24 * 365};
constexpr std::chrono::seconds kKilledEnd{15};  // until the processes of a killed agent are gone

fs::path file_of(const fs::path& experiment) {
  return experiment / "nodes" / ("own-" + hostname());
}

}  // namespace

std::optional<OwnAgent> OwnAgent::of(const fs::path& experiment) try {
  const std::string text = read_if_there(file_of(experiment));
  if (text.empty()) return std::nullopt;
  const Value value = parse_json(text, file_of(experiment).string());
  OwnAgent agent(value.get<int>("pid"), value.get<std::string>("identity"),
                 value.get<std::string>("runtime"));
  agent.experiment_ = value.get<std::string>("experiment");
  agent.boot_ = value.get<std::string>("boot");
  return agent;
} catch (const Error&) {  // it cannot be read: the lease of that agent tells
  return std::nullopt;
}

void OwnAgent::write(const fs::path& experiment) const {
  const Value value{{"pid", pid_},
                    {"identity", identity_},
                    {"runtime", runtime_.string()},
                    {"experiment", experiment.string()},
                    {"boot", boot_id()}};
  fs::create_directories(experiment / "nodes");
  write_file_atomically(file_of(experiment), to_json(value, 2) + "\n");
}

void OwnAgent::remove(const fs::path& experiment) {
  std::error_code ignored;
  fs::remove(file_of(experiment), ignored);
}

std::optional<OtherProcess> OwnAgent::process() const {
  return OtherProcess::find(pid_, runtime_);
}

bool OwnAgent::is_gone() const {
  return boot_ != boot_id() || !is_live_runtime_directory(runtime_);
}

// A trial's checkpoints would go into a folder that is another one by now, or none.
std::string OwnAgent::why_not_kept(const fs::path& experiment) const {
  std::error_code unknown;
  if (!fs::equivalent(experiment_, experiment, unknown)) {
    return fmt::format("it works in {}", experiment_.string());
  }
  if (!fs::exists(runtime_ / kStaysFile, unknown)) return "it ends";
  return why_refused(identity_, kAgentContract, build_version()).value_or("");
}

bool OwnAgent::is_gone_within(std::chrono::nanoseconds limit, const Meanwhile& meanwhile) const {
  const auto end = steady_clock::now() + limit;
  while (!is_gone()) {
    if (steady_clock::now() > end) return false;
    meanwhile();
    std::this_thread::sleep_for(kLookEvery);
  }
  return true;
}

void OwnAgent::end(std::chrono::nanoseconds grace, const Notice& notice,
                   const Meanwhile& meanwhile) const {
  const auto agent = process();
  if (agent) agent->signal(SIGTERM);
  if (agent) agent->signal(SIGCONT);  // a stopped agent ends in order as well
  if (is_gone_within(kMoment, meanwhile)) return;
  notice(
      fmt::format("waiting for the agent of the driver before this one (process {}): its trials "
                  "save and end",
                  pid_));
  const bool is_patient = grace <= grace.zero();
  if (agent && !is_gone_within(is_patient ? kAnyTime : grace, meanwhile)) agent->signal(SIGKILL);
  if (is_gone_within(kKilledEnd, meanwhile)) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} is in use by {}: wait for it, or end it, then try again",
                          experiment_.string(), describe_holders(runtime_)));
}

}  // namespace tune
