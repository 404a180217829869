// Connections of strangers to a driver that listens: none is heard, and none is a disturbance.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/platform/process.h"
#include "core/refusal.h"
#include "platform/open_driver.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

TEST_CASE("garbage and silent connections disturb nobody, and are told once") {
  const TemporaryFolder folder;
  OpenDriver driver(folder);
  std::vector<FileDescriptor> strangers;
  const std::string kinds[] = {std::string(300, '\xff'), "GET / HTTP/1.1\r\n\r\n", "",
                               std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\0CURVE", 17) + "garbage"};
  for (int i = 0; i < 200; ++i) {
    strangers.emplace_back(connected_socket(driver.port));
    REQUIRE(strangers.back().is_open());
    const std::string& says = kinds[i % 4];
    ::send(strangers.back().get(), says.data(), says.size(), MSG_NOSIGNAL);
    if (i % 3 == 0) strangers.back().reset();
  }
  Joined machine(driver.token());
  CHECK(is_heard(driver, machine, "among strangers"));
  CHECK(eventually([&] {
    driver.turn();
    driver.take_refused();
    return !driver.refused.empty();
  }));
  for (int i = 0; i < 50; ++i) driver.turn(), driver.take_refused();
  CHECK(driver.refused.size() == 1);
  CHECK_HAS(driver.refused[0], "did not speak as a machine with a token");
  CHECK(is_heard(driver, machine, "still"));
  CHECK(driver.endpoint->peers().size() == 1);
}

// Stands on the way to a driver, and keeps what a machine has sent there.
class Listener {
 public:
  explicit Listener(int driver_port) : driver_port_(driver_port) {
    door_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    ::inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    socklen_t size = sizeof at;
    REQUIRE(::bind(door_.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::listen(door_.get(), 8) == 0);
    REQUIRE(::getsockname(door_.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port_ = ntohs(at.sin_port);
  }
  int port() const { return port_; }
  // Carries what has come, both ways.
  void turn() {
    FileDescriptor machine(::accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (machine.is_open()) {
      FileDescriptor driver(connected_socket(driver_port_));
      REQUIRE(driver.is_open());
      ::fcntl(driver.get(), F_SETFL, O_NONBLOCK);
      pairs_.push_back({std::move(machine), std::move(driver)});
      sent_.emplace_back();
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      auto& [of_machine, of_driver] = pairs_[i];
      if (!carry(of_machine, of_driver, &sent_[i]) || !carry(of_driver, of_machine, nullptr)) {
        of_machine.reset(), of_driver.reset();
      }
    }
  }
  // All that was sent over each connection so far.
  const std::vector<std::string>& sent() const { return sent_; }
  void say(std::size_t connection, const std::string& bytes) {
    ::send(pairs_.at(connection).second.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

 private:
  // False: one side has ended.
  static bool carry(const FileDescriptor& from, const FileDescriptor& to, std::string* kept) {
    if (!from.is_open()) return true;
    std::array<char, 4096> bytes{};
    const ssize_t count = ::recv(from.get(), bytes.data(), bytes.size(), 0);
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN;
    const auto size = static_cast<std::size_t>(count);
    if (kept != nullptr) kept->append(bytes.data(), size);
    return ::send(to.get(), bytes.data(), size, MSG_NOSIGNAL) == count;
  }

  int driver_port_;
  int port_ = 0;
  FileDescriptor door_;
  std::vector<std::pair<FileDescriptor, FileDescriptor>> pairs_;
  std::vector<std::string> sent_;
};

struct Overheard {
  Overheard() : driver(folder), listener(driver.port), machine(token()) {}
  JoinToken token() const {
    JoinToken token = driver.token();
    token.addresses = {with_port("127.0.0.1", listener.port())};
    return token;
  }
  bool until(const auto& holds) {
    return eventually([&] {
      for (auto* now : {&machine.now, &driver.now}) *now += std::chrono::milliseconds(20);
      listener.turn();
      machine.turn();
      driver.turn();
      driver.take_refused();
      return holds();
    });
  }
  bool hears(const std::string& text) {
    machine.endpoint.send(Warning{text});
    return until([&] { return !driver.received.empty() && driver.received.back() == text; });
  }
  void go_on() {
    for (int i = 0; i < 50; ++i) listener.turn(), machine.turn(), driver.turn();
  }

  const TemporaryFolder folder;
  OpenDriver driver;
  Listener listener;
  Joined machine;
};

TEST_CASE("what a machine has sent is worth nothing over another connection") {
  Overheard scene;
  REQUIRE(scene.hears("once"));
  const std::string recorded = scene.listener.sent().at(0);
  const FileDescriptor stranger(connected_socket(scene.driver.port));
  ::send(stranger.get(), recorded.data(), recorded.size(), MSG_NOSIGNAL);
  CHECK(scene.until([&] { return !scene.driver.refused.empty(); }));
  CHECK_HAS(scene.driver.refused[0], "did not speak as a machine with a token");
  scene.go_on();
  CHECK(scene.driver.received == Texts{"once"});
  CHECK(scene.driver.endpoint->peers().size() == 1);
  CHECK(scene.hears("later"));
  CHECK(scene.driver.refused.size() == 1);
}

TEST_CASE("what a machine has sent is not heard again over its own connection") {
  Overheard scene;
  REQUIRE(scene.hears("first"));
  const std::size_t before = scene.listener.sent().at(0).size();
  REQUIRE(scene.hears("second"));
  scene.listener.say(0, scene.listener.sent().at(0).substr(before));
  scene.go_on();
  CHECK(scene.driver.received == Texts{"first", "second"});
  CHECK(scene.driver.endpoint->peers().size() == 1);
}

}  // namespace
}  // namespace tune::testing
