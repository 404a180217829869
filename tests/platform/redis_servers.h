// Servers for the tests of the store: a real one with any settings, and one that answers as told.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/process.h"
#include "platform/surroundings.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {

inline sockaddr_un socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

inline FileDescriptor connect_to(const std::string& path) {
  FileDescriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = socket_address(path);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(connection.get(), generic, sizeof address) != 0) connection.reset();
  return connection;
}

// redis-server on a unix socket, by default as a store should be. Its data outlives a kill.
class PlainServer {
 public:
  explicit PlainServer(std::vector<std::string> settings = {}) : settings_(std::move(settings)) {
    start();
  }
  ~PlainServer() { kill(); }
  PlainServer(const PlainServer&) = delete;

  const std::filesystem::path& folder() const { return folder_.path(); }
  std::string socket() const { return (folder_.path() / "redis").string(); }
  std::string address() const { return "unix://" + socket(); }
  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  void was_reaped() { pid_ = -1; }  // by someone else
  void kill() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void start() {
    SpawnOptions options;
    options.command = {"redis-server",
                       "--port",
                       "0",
                       "--unixsocket",
                       socket(),
                       "--dir",
                       folder_.path().string(),
                       "--save",
                       "",
                       "--logfile",
                       "log",
                       "--appendonly",
                       "yes",
                       "--appendfsync",
                       "always"};
    options.command.insert(options.command.end(), settings_.begin(), settings_.end());
    options.death_signal = SIGKILL;
    options.new_session = true;
    pid_ = spawn(options);
    if (!eventually([&] { return connect_to(socket()).is_open(); })) {
      throw std::runtime_error("redis-server does not start");
    }
  }

 private:
  TemporaryFolder folder_;
  std::vector<std::string> settings_;
  pid_t pid_ = -1;
};

// Answers each request by a function; an empty answer closes the connection. One connection at a
// time.
class FakeServer {
 public:
  using Answer = std::function<std::string(const std::string& request)>;

  explicit FakeServer(Answer answer) : answer_(std::move(answer)) {
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = socket_address(socket());
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(listener_.get(), generic, sizeof address) != 0 ||
        ::listen(listener_.get(), 8) != 0) {
      throw std::runtime_error("cannot listen at " + socket());
    }
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeServer() {
    over_ = true;
    thread_.join();
  }
  FakeServer(const FakeServer&) = delete;

  std::string socket() const { return (folder_.path() / "fake").string(); }
  std::string address() const { return "unix://" + socket(); }

 private:
  bool readable(int descriptor) const {
    while (!over_) {
      pollfd watched{descriptor, POLLIN, 0};
      if (::poll(&watched, 1, 5) == 1) return true;
    }
    return false;
  }
  void serve() {
    while (readable(listener_.get())) {
      const FileDescriptor connection(::accept(listener_.get(), nullptr, nullptr));
      char buffer[65536];
      while (readable(connection.get())) {
        const ssize_t count = ::read(connection.get(), buffer, sizeof buffer);
        if (count <= 0) break;
        const std::string answer = answer_(std::string(buffer, static_cast<std::size_t>(count)));
        if (answer.empty()) break;
        ::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    }
  }

  TemporaryFolder folder_;
  Answer answer_;
  FileDescriptor listener_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace tune::testing
