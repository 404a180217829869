#include "tune/plugin_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "trainables/registry.h"

namespace tune {

namespace {

constexpr std::chrono::seconds kLoadLimit{60};
constexpr std::size_t kMaxAnswerBytes = 1u << 20;

Value look(const std::string& plugin) {
  void* library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Value{{"error", fmt::format("cannot be loaded: {}", dlerror())}};
  using Info = const tune_plugin_info* (*)();
  const auto entry = reinterpret_cast<Info>(dlsym(library, "tune_plugin"));
  if (entry == nullptr) {
    return Value{{"error", fmt::format("{} has no trainables: put TUNE_TRAINABLE(Class) into one of "
                                       "its sources", plugin)}};
  }
  const tune_plugin_info* info = entry();
  if (info->protocol_version != kProtocolVersion) {
    return Value{{"error", fmt::format("{} was built for protocol {}, this tune speaks {}: build it "
                                       "again", plugin, info->protocol_version, kProtocolVersion)}};
  }
  Value::List trainables;
  for (std::uint32_t i = 0; i < info->count; ++i) {
    const tune_plugin_trainable& one = info->trainables[i];
    trainables.push_back(Value{{"name", one.name},
                               {"can_save", one.can_save != 0},
                               {"is_function", one.is_function != 0}});
  }
  return Value{{"trainables", Value::make_list(std::move(trainables))}};
}

[[noreturn]] void answer(const std::string& plugin, int pipe_end) {
  dup2(STDERR_FILENO, STDOUT_FILENO);  // what the library prints is no data of ours
  std::string text;
  try {
    text = to_json(look(plugin));
  } catch (const std::exception& error) {
    text = to_json(Value{{"error", error.what()}});
  }
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = write(pipe_end, text.data() + sent, text.size() - sent);
    if (count <= 0) break;
    sent += static_cast<std::size_t>(count);
  }
  _exit(0);
}

// All that comes until the pipe ends; nothing when it takes too long.
std::string read_answer(int pipe_end) {
  std::string text;
  const auto end = std::chrono::steady_clock::now() + kLoadLimit;
  while (text.size() < kMaxAnswerBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd watched{pipe_end, POLLIN, 0};
    const int ready = poll(&watched, 1, std::max(0, static_cast<int>(left.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    char buffer[4096];
    const ssize_t count = read(pipe_end, buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

PluginProbe to_probe(const std::string& text, int status) {
  PluginProbe probe;
  if (text.empty()) {
    probe.error = WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL
                      ? fmt::format("loading it ends the process with signal {}", WTERMSIG(status))
                      : fmt::format("loading it gives no answer (limit {} s)", kLoadLimit.count());
    return probe;
  }
  const Value answer = parse_json(text, "the answer of a plugin");
  probe.error = answer.get_or("error", "");
  if (!probe.error.empty()) return probe;
  for (const Value& one : answer.at("trainables").list()) {
    probe.trainables.push_back(
        {one.get<std::string>("name"), one.get<bool>("can_save"), one.get<bool>("is_function")});
  }
  return probe;
}

}  // namespace

PluginProbe probe_plugin(const std::filesystem::path& plugin) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("looking at {}: making a pipe: {}", plugin.string(),
                                                 std::strerror(errno)));
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    answer(plugin.string(), ends[1]);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    throw Error(ErrorCode::kProcess,
                fmt::format("looking at {}: fork: {}", plugin.string(), std::strerror(errno)));
  }
  const std::string text = read_answer(ends[0]);
  close(ends[0]);
  if (text.empty()) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return to_probe(text, status);
}

}  // namespace tune
