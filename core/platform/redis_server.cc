#include "core/platform/redis_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kEndLimit{10000};
constexpr std::string_view kLogFile = "redis.log";
constexpr std::string_view kLockFile = "lock";

std::string find_program() {
  if (const char* given = std::getenv("TUNE_REDIS_SERVER")) {
    if (access(given, X_OK) == 0) return given;
  } else if (const char* path = std::getenv("PATH")) {
    std::string_view rest(path);
    while (true) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      const std::string program = fmt::format("{}/redis-server", rest.substr(0, end));
      if (access(program.c_str(), X_OK) == 0) return program;
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
  }
  throw Error(
      ErrorCode::kBadInput,
      "starting the store: there is no redis-server: install the package redis-server, name "
      "the program in TUNE_REDIS_SERVER, or use a server that runs with "
      "store: redis://host:port/0");
}

std::vector<std::string> command_line(const std::string& program, const fs::path& socket,
                                      const RedisServerOptions& options) {
  const std::pair<const char*, std::string> settings[] = {
      {"port", "0"},
      {"unixsocket", socket},
      {"unixsocketperm", "700"},
      {"dir", options.data_directory},
      {"appendonly", "yes"},
      {"appendfsync", "always"},
      {"aof-load-truncated", "yes"},
      {"save", ""},
      {"maxmemory-policy", "noeviction"},
      {"databases", "1"},
      {"logfile", std::string(kLogFile)},
      {"daemonize", "no"},
      {"supervised", "no"},
  };
  std::vector<std::string> words = {program};
  for (const auto& [name, value] : settings) {
    words.push_back(fmt::format("--{}", name));
    words.push_back(value);
  }
  return words;
}

// A connection of its own, for one word; not open when nobody listens.
FileDescriptor connect_to(const fs::path& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.string().size() >= sizeof address.sun_path) return {};
  std::strcpy(address.sun_path, socket_path.c_str());
  FileDescriptor connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (connect(connection.get(), generic, sizeof address) != 0) connection.reset();
  return connection;
}

bool say(const FileDescriptor& connection, std::string_view command) {
  return send(connection.get(), command.data(), command.size(), MSG_NOSIGNAL) >= 0;
}

bool is_listening(const fs::path& socket_path) {
  const FileDescriptor probe = connect_to(socket_path);
  // It accepts connections before it has read its file: ask.
  char answer[8] = {};
  if (!probe.is_open() || !say(probe, "PING\r\n")) return false;
  pollfd watched{probe.get(), POLLIN, 0};
  if (poll(&watched, 1, 1000) != 1 || read(probe.get(), answer, sizeof answer - 1) <= 0) {
    return false;
  }
  return std::string_view(answer).starts_with("+PONG");
}

// A server that is killed in a rewrite of its file leaves what it had written of it, and none
// removes that.
void remove_cut_rewrites(const fs::path& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().filename().string().starts_with("temp-rewriteaof-")) {
      fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace

RedisServer::RedisServer(const RedisServerOptions& options)
    : socket_(options.runtime_directory / "redis") {
  const std::string program = find_program();
  std::error_code error;
  fs::create_directories(options.data_directory, error);
  if (error) throw file_error("making the store's folder", options.data_directory, error.value());
  lock_.emplace(options.data_directory / kLockFile, options.start_limit);
  remove_cut_rewrites(options.data_directory);
  SpawnOptions spawned;
  spawned.command = command_line(program, socket_, options);
  spawned.keep = {lock_->descriptor()};
  if (options.lock_descriptor >= 0) spawned.keep.push_back(options.lock_descriptor);
  spawned.new_session = true;  // the terminal's Ctrl-C is not for it
  // Also one that is stopped must not outlive this process; every answered entry is on the disk.
  spawned.death_signal = SIGKILL;
  const FileDescriptor output(open((options.data_directory / kLogFile).c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  spawned.output = output.get();
  pid_ = spawn(spawned);
  exit_ = process_descriptor(pid_);
  lock_->keep_alive([this](const LockSign&) {  // of a number that may be another's by now: not kill
    syscall(SYS_pidfd_send_signal, exit_.get(), SIGKILL, nullptr, 0);
  });
  wait_until_ready(options, program);
}

void RedisServer::wait_until_ready(const RedisServerOptions& options, const std::string& program) {
  const auto end = std::chrono::steady_clock::now() + options.start_limit;
  while (!is_listening(socket_)) {
    pollfd watched{exit_.get(), POLLIN, 0};
    const bool ended = poll(&watched, 1, 1) == 1;
    if (!ended && std::chrono::steady_clock::now() < end) continue;
    const std::string log = tail_lines(options.data_directory / kLogFile, 8, 4096);
    if (!ended) kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    // One whose disk is full has no room to say so.
    if (log.empty()) AppendFile(options.data_directory / kLogFile, false).write("\n");
    throw Error(ErrorCode::kStore,
                fmt::format("starting the store: {} {}{}", program,
                            ended ? describe_exit(status) : "did not answer in time",
                            log.empty() ? " and said nothing: is it a redis-server? "
                                          "TUNE_REDIS_SERVER names another"
                                        : "; its last words:\n" + log));
  }
}

RedisServer::~RedisServer() {
  if (pid_ <= 0) return;
  // It looks at signals ten times a second only, at commands at once.
  const FileDescriptor last_word = connect_to(socket_);
  if (last_word.is_open()) say(last_word, "SHUTDOWN NOSAVE\r\n");
  kill(pid_, SIGTERM);
  kill(pid_, SIGCONT);
  pollfd watched{exit_.get(), POLLIN, 0};
  if (poll(&watched, 1, static_cast<int>(kEndLimit.count())) != 1) kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string RedisServer::address() const {
  return fmt::format("unix://{}", socket_.string());
}

}  // namespace tune
