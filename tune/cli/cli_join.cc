#include "tune/cli/cli_join.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/agent/agent.h"
#include "core/error.h"
#include "core/listen_address.h"
#include "core/platform/files.h"
#include "core/platform/join_keys.h"
#include "core/platform/node.h"
#include "core/platform/node_claims.h"
#include "core/platform/runtime_directory.h"
#include "core/platform/side_output.h"
#include "core/platform/system_clock.h"
#include "tune/cli/status.h"
#include "tune/drive/engine_calls.h"
#include "tune/results/ask_driver.h"
#include "tune/results/experiment_folder.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/when.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenVariable = "TUNE_JOIN";
constexpr const char* kOfSeveral = "several";   // experiments: the token names none
constexpr std::chrono::hours kStays{24 * 365};  // for the next one

// The programs that an agent runs must not see the key.
JoinToken take_token(const std::string& join_file) {
  const char* given = std::getenv(kTokenVariable);
  const std::string text = given == nullptr ? "" : given;
  ::unsetenv(kTokenVariable);
  if (!join_file.empty()) return read_token(join_file);
  if (!text.empty()) return token_of_text(text);
  throw Error(ErrorCode::kBadInput,
              "joining an experiment: there is no token: set TUNE_JOIN to the one that `tune run "
              "--listen` printed, or name a file with it by --join-file");
}

using SayIt = std::function<void(const std::string& text)>;

// Of a process whose terminal nobody may read.
void say_last(const std::string& text) {
  write_or_give_up(STDERR_FILENO, text + "\n");
}

// In a job of Slurm: the time that is left of it, as Slurm counts. Clocks may differ.
std::optional<std::chrono::nanoseconds> job_time_left(const SayIt& say) {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr) return std::nullopt;
  try {
    constexpr std::chrono::seconds kPatience{20};
    return time_of_slurm(output_of({"squeue", "-h", "-j", job, "-o", "%L"}, kPatience));
  } catch (const Error& error) {
    say(fmt::format("the end of job {} is not known: {}", job, error.what()));
    return std::nullopt;
  }
}

// May wait: what is told as a time from now on is to be asked for later.
NodeResources claimed(const AgentArguments& arguments, const std::string& experiment,
                      const RuntimeDirectory& runtime, const SayIt& say) {
  ClaimRequest claim;
  claim.sweep = "tune agent of experiment " + experiment;
  claim.node = discover_node({arguments.cpus, arguments.gpus});
  if (arguments.gpus) claim.visible = own_gpus();
  claim.needs_gpus = true;
  claim.waits = arguments.wait_gpus;
  claim.notice = say;
  return claim_node(runtime, claim);
}

// Ends with the agent and its folder of sockets. A terminal that nobody reads must not silence the
// agent's loop: its driver would take it for lost.
JoinedEnd run_once(const AgentArguments& arguments, JoinToken token) {
  SideOutput console(STDERR_FILENO);
  const SayIt say = [&console](const std::string& text) { console.write(text + "\n"); };
  const RuntimeDirectory runtime;
  const NodeResources node = claimed(arguments, token.experiment, runtime, say);
  JoinOptions join;
  join.token = std::move(token);
  join.name = life_name();
  join.allocation = arguments.name;
  // Its trials' folder becomes the agent's own.
  if (!arguments.join_file.empty()) join.file = std::filesystem::absolute(arguments.join_file);
  join.drain = duration_of(arguments.drain, "--drain");
  if (!arguments.idle.empty()) join.idle = duration_of(arguments.idle, "--idle");
  if (!arguments.until.empty()) {
    join.lasts = time_until(arguments.until, std::time(nullptr), "--until");
  }
  if (const auto left = job_time_left(say)) {
    join.lasts = std::min(join.lasts.value_or(*left), *left);
  }
  if (arguments.stay) join.patience = kStays;
  if (const char* port = std::getenv(kRelayPortVariable)) {
    join.relay_port = static_cast<std::uint32_t>(std::strtoul(port, nullptr, 10));
  }
  join.say = say;
  AgentOptions options;
  options.resources = node;
  options.runtime_directory = runtime.path();
  options.runtime_lock_fd = runtime.lock_descriptor();
  options.hostname = hostname();
  options.ip = primary_ip();
  options.join = std::move(join);
  return run_joined_agent(options);
}

// A fresh process, where this one began: it has been an agent, in the folder of its trials. The
// signals that an agent watches stay blocked, so that one that comes meanwhile is waiting for it.
[[noreturn]] void join_again(const JoinToken& token, const fs::path& home, bool by_file) {
  if (!by_file) ::setenv(kTokenVariable, to_text(token).c_str(), 1);
  const std::string line = read_file("/proc/self/cmdline");
  std::vector<char*> words;
  for (std::size_t at = 0; at < line.size(); at = line.find('\0', at) + 1) {
    words.push_back(const_cast<char*>(line.data()) + at);
  }
  words.push_back(nullptr);
  std::fflush(nullptr);
  if (::chdir(home.c_str()) != 0) say_last("joining again: the folder that it began in is gone");
  ::execv("/proc/self/exe", words.data());
  throw Error(ErrorCode::kProcess, "joining again: executing tune failed");
}

}  // namespace

int agent_command(const AgentArguments& arguments) {
  const JoinToken token = take_token(arguments.join_file);
  const fs::path home = fs::current_path();
  const JoinedEnd end = run_once(arguments, token);
  if (end.is_failure) throw Error(ErrorCode::kBadInput, "joining the experiment: " + end.cause);
  say_last(end.cause.empty() ? "left: the experiment is over" : "left: " + end.cause);
  const bool is_free = end.cause.empty() || end.has_lost_driver;
  const bool stays = arguments.stay && is_free;
  if ((!end.joins_again && !stays) || end.was_told_to_end) return 0;
  say_last(stays ? "waiting for the next experiment" : "joining again");
  // The next experiment listens where all of them do, by the keys that all have.
  const bool is_same = end.joins_again && !end.has_lost_driver;
  join_again(is_same ? end.token : token, home, !arguments.join_file.empty());
}

namespace {

void put_addresses(const std::vector<std::string>& addresses, JoinKeys& keys) {
  if (addresses.size() > kMostTokenAddresses) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("--address: {} are given, a token has room for {}", addresses.size(),
                            kMostTokenAddresses));
  }
  for (const std::string& address : addresses) {
    if (listen_address(address).port != 0) continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("--address: '{}' has no port: write HOST:PORT", address));
  }
  keys.addresses = addresses;
}

int shared_token(const TokenArguments& arguments) {
  if (!arguments.directory.empty() || arguments.rotate || arguments.addresses.empty()) {
    throw Error(ErrorCode::kBadInput,
                "--keys: wants --address HOST:PORT, where their drivers will listen (tune run "
                "--listen), and neither DIR nor --rotate: remove the file for new keys");
  }
  JoinKeys keys = shared_keys(arguments.keys);
  put_addresses(arguments.addresses, keys);
  fmt::print("{}\n", to_text(token_of(keys, kOfSeveral)));
  return 0;
}

}  // namespace

int token_command(const TokenArguments& arguments) {
  if (!arguments.keys.empty()) return shared_token(arguments);
  if (arguments.directory.empty()) {
    throw Error(ErrorCode::kBadInput, "of which experiment? give DIR, or --keys FILE");
  }
  const fs::path directory = arguments.directory;
  const ExperimentSpec spec = read_spec(directory);
  const bool is_running = is_live(directory);
  if (arguments.rotate && is_running) ask_driver(directory, {{"do", "rotate"}});  // and it writes
  std::optional<JoinKeys> keys = read_keys(directory);
  const bool is_new = !keys;
  if (is_new) keys = make_keys();
  if (arguments.rotate && !is_running) replace_join_key(*keys);
  if (is_new || (arguments.rotate && !is_running)) write_keys(directory, *keys);
  if (!arguments.addresses.empty()) put_addresses(arguments.addresses, *keys);
  if (keys->addresses.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: its driver has not listened yet: run it with --listen, or give "
                            "--address HOST:PORT",
                            directory.string()));
  }
  fmt::print("{}\n", to_text(token_of(*keys, experiment_id_of(spec))));
  return 0;
}

int nodes_command(const std::string& directory) {
  return show_nodes(directory);
}

int drain_command(const DrainArguments& arguments) {
  const Value request{{"do", "drain"}, {"node", arguments.node}, {"user", user_name()}};
  fmt::print("{}\n", ask_driver(arguments.directory, request));
  return 0;
}

}  // namespace tune
