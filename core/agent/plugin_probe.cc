#include "core/agent/plugin_probe.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/agent/worker_command.h"
#include "core/error.h"
#include "core/platform/child.h"
#include "core/platform/process.h"
#include "core/worker_contract.h"

namespace tune {

namespace {

constexpr int kLoadLimitSeconds = 60;
constexpr std::chrono::seconds kNoticeEvery{10};
constexpr std::chrono::seconds kEndLimit{5};

// Whether the descriptor becomes readable within the limit.
bool is_ready_within(int descriptor, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(
        end - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration::zero()));
    pollfd watched{descriptor, POLLIN, 0};
    const int ready = poll(&watched, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (left.count() == 0) return false;
  }
}

// The zygote's first word; empty when it ended or took too long.
std::string first_packet(int socket, const std::string& plugin, const Child& child) {
  std::chrono::seconds waited{};
  while (!is_ready_within(socket, kNoticeEvery)) {
    waited += kNoticeEvery;
    if (waited.count() >= kLoadLimitSeconds) return {};
    fmt::print(stderr, "loading {} for {} s (pid {})\n", plugin, waited.count(), child.pid());
  }
  std::string packet(kMaxSpawnPacketBytes, '\0');
  const ssize_t count = recv(socket, packet.data(), packet.size(), 0);
  packet.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return packet;
}

ZygoteReady refusal(std::string why) {
  ZygoteReady ready;
  ready.error = std::move(why);
  return ready;
}

ZygoteReady ask(std::vector<std::string> command, const std::string& loads) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("making a socket pair: {}", std::strerror(errno)));
  }
  FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  SpawnOptions options;
  options.command = std::move(command);
  for (std::string& argument : options.command) {
    if (argument == "{control}") argument = std::to_string(theirs.get());
  }
  options.keep = {theirs.get()};
  options.output = STDERR_FILENO;  // output of the library while it loads is not data of ours
  options.death_signal = SIGKILL;
  Child child(spawn(options));
  theirs.reset();
  const std::string packet = first_packet(ours.get(), loads, child);
  ours.reset();  // ends it
  if (packet.empty() || !child.has_ended(kEndLimit)) child.signal(SIGKILL);
  const int status = child.wait();
  if (packet.empty()) {
    const bool too_long = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return refusal(too_long
                       ? fmt::format("loading it takes longer than {} s", kLoadLimitSeconds)
                       : fmt::format("loading it ends the process: {}", describe_exit(status)));
  }
  const auto message = decoded<ZygoteMessage>(packet);
  const auto* ready = std::get_if<ZygoteReady>(&message);
  if (ready == nullptr) throw Error(ErrorCode::kProtocol, "tune-worker sent an unexpected message");
  return understood(*ready);
}

}  // namespace

ZygoteReady probe_plugin(const std::string& plugin) {
  try {
    return ask(worker_command(plugin), plugin);
  } catch (const Error& error) {
    return refusal(error.what());
  }
}

ZygoteReady probe_program(std::vector<std::string> command, const std::string& loads) {
  try {
    return ask(std::move(command), loads);
  } catch (const Error& error) {
    return refusal(error.what());
  }
}

}  // namespace tune
