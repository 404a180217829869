#include "core/platform/redis_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/store.h"

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

// A connection for one word; not open when no server listens.
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
  // The server accepts connections before it has read its file, so ask it.
  char answer[8] = {};
  if (!probe.is_open() || !say(probe, "PING\r\n")) return false;
  pollfd watched{probe.get(), POLLIN, 0};
  if (poll(&watched, 1, 1000) != 1 || read(probe.get(), answer, sizeof answer - 1) <= 0) {
    return false;
  }
  return std::string_view(answer).starts_with("+PONG");
}

// A server that is killed in a rewrite of its file leaves the unfinished part, and no server
// removes it.
void remove_cut_rewrites(const fs::path& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().filename().string().starts_with("temp-rewriteaof-")) {
      fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace

RedisServer::RedisServer(RedisServerOptions options)
    : options_(std::move(options)),
      program_(find_program()),
      socket_(options_.runtime_directory / "redis") {
  std::error_code error;
  fs::create_directories(options_.data_directory, error);
  if (error) throw file_error("making the store's folder", options_.data_directory, error.value());
  lock_.emplace(options_.data_directory / kLockFile, options_.start_limit);
  start();
  lock_->keep_alive([this](const LockSign&) { kill_for_another(); });
  wait_until_ready();
}

void RedisServer::start() {
  const std::lock_guard guard(mutex_);
  refuse_taken();
  remove_cut_rewrites(options_.data_directory);
  SpawnOptions spawned;
  spawned.command = command_line(program_, socket_, options_);
  spawned.keep = {lock_->descriptor()};
  if (options_.lock_descriptor >= 0) spawned.keep.push_back(options_.lock_descriptor);
  spawned.new_session = true;  // the terminal's Ctrl-C is not for it
  // Signals that a service manager or a batch system sends to every process are not for it either.
  // The server has handlers of its own for these, so ignoring them is not enough.
  spawned.blocked = {SIGTERM, SIGINT, SIGHUP};
  // Even a stopped server must not outlive this process; every answered entry is on the disk.
  spawned.death_signal = SIGKILL;
  const FileDescriptor output(open((options_.data_directory / kLogFile).c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  spawned.output = output.get();
  process_ = Child(spawn(spawned));
}

// The data belong to another host then, and only its server may use them.
void RedisServer::refuse_taken() const {
  const std::string by = lock_->taken_by();
  if (by.empty()) return;
  throw SupersededError(fmt::format("starting the store again: {} has taken over {}", by,
                                    options_.data_directory.string()));
}

// Called by the thread that keeps the lock alive.
void RedisServer::kill_for_another() {
  const std::lock_guard guard(mutex_);
  process_.signal(SIGKILL);
}

// Waits for so long at most. The server is reaped under the mutex, as its pid may belong to another
// process from then on.
bool RedisServer::has_ended(milliseconds patience) {
  pollfd watched{process_.descriptor(), POLLIN, 0};
  if (process_.is_running()) poll(&watched, 1, static_cast<int>(patience.count()));
  const std::lock_guard guard(mutex_);
  return process_.has_ended();
}

// Its wait status.
int RedisServer::kill_and_reap() {
  const std::lock_guard guard(mutex_);
  process_.signal(SIGKILL);
  return process_.wait();
}

void RedisServer::wait_until_ready() {
  const auto end = std::chrono::steady_clock::now() + options_.start_limit;
  while (!is_listening(socket_)) {
    const bool ended = has_ended(milliseconds(1));
    if (!ended && std::chrono::steady_clock::now() < end) continue;
    const int status = kill_and_reap();
    throw Error(
        ErrorCode::kStore,
        fmt::format("starting the store: {} {}{}", program_,
                    ended ? describe_exit(status) : "did not answer in time", last_words()));
  }
}

std::string RedisServer::last_words() const {
  const std::string log = tail_lines(options_.data_directory / kLogFile, 8, 4096);
  if (!log.empty()) return "; its last words:\n" + log;
  // A server whose disk is full has no room for its message.
  AppendFile(options_.data_directory / kLogFile, false).write("\n");
  return " and said nothing: is it a redis-server? TUNE_REDIS_SERVER names another";
}

namespace {

// The reason why nothing can be written there; empty: it can. A server that ended because of it
// could not log it.
std::string why_unwritable(const fs::path& directory) {
  constexpr std::size_t kRoom = 64u << 10;
  const fs::path probe = directory / "room";
  std::string why;
  try {
    AppendFile(probe, false).write(std::string(kRoom, ' '));
  } catch (const Error& error) {
    why = fmt::format("{}; ", error.what());
  }
  std::error_code ignored;
  fs::remove(probe, ignored);
  return why;
}

}  // namespace

int RedisServer::exit_descriptor() const {
  return end_.valid() ? worker_.descriptor() : process_.descriptor();
}

std::string RedisServer::take_end() {
  worker_.take_outcomes();
  if (end_.valid()) {
    const bool is_there = end_.wait_for(milliseconds(0)) == std::future_status::ready;
    return is_there ? end_.get() : std::string();
  }
  if (!process_.is_running() || !has_ended()) return {};
  do_beside([this] {
    return fmt::format("{} {}; {}its last words are in {}", program_,
                       describe_exit(process_.status()), why_unwritable(options_.data_directory),
                       (options_.data_directory / kLogFile).string());
  });
  return {};
}

std::string RedisServer::await_end() {
  std::string how = take_end();
  return end_.valid() ? end_.get() : how;
}

// A machine that can start no process now is treated like a server that ends at once.
void RedisServer::start_again() {
  TUNE_CHECK(!end_.valid());
  TUNE_CHECK(!process_.is_running());
  do_beside([this]() -> std::string {
    try {
      start();
      return {};
    } catch (const SupersededError&) {
      throw;
    } catch (const Error& error) {
      return error.what();
    }
  });
}

void RedisServer::do_beside(std::function<std::string()> work) {
  const auto task =
      std::make_shared<std::packaged_task<std::string()>>([this, work = std::move(work)] {
        lock_->look_again();
        refuse_taken();
        return work();
      });
  end_ = task->get_future();
  worker_.give([task] {
    (*task)();
    return [] {};
  });
}

void RedisServer::begin_end() {
  if (end_.valid() || !process_.is_running() || was_asked_) return;
  const FileDescriptor last_word = connect_to(socket_);
  process_.signal(SIGCONT);
  // The signals that mean an end to it do not reach it.
  was_asked_ = last_word.is_open() && say(last_word, "SHUTDOWN NOSAVE\r\n");
}

RedisServer::~RedisServer() {
  if (end_.valid()) end_.wait();
  if (!process_.is_running()) return;
  begin_end();
  if (!has_ended(was_asked_ ? kEndLimit : milliseconds(0))) kill_and_reap();
}

std::string RedisServer::address() const {
  return fmt::format("unix://{}", socket_.string());
}

}  // namespace tune
