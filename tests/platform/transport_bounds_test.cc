// A transport whose other side stands still, is killed, or whose connections break.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/files.h"
#include "core/platform/process.h"
#include "core/platform/transport.h"
#include "platform/endpoints.h"
#include "platform/surroundings.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Texts = std::vector<std::string>;

// A driver in a process of its own. What it hears stands in a file before it is acknowledged, as in
// a journal.
class DriverProcess {
 public:
  DriverProcess(const TemporaryFolder& folder, std::uint64_t epoch)
      : journal_(folder.path() / std::to_string(epoch)),
        child_([this, &folder, epoch] { serve(folder, epoch); }, Child::kAtOnce) {}

  void stop() {
    ::kill(child_.pid(), SIGSTOP);
    int status = 0;
    ::waitpid(child_.pid(), &status, WUNTRACED);
    REQUIRE(WIFSTOPPED(status));
  }
  void go_on() { ::kill(child_.pid(), SIGCONT); }
  void kill() { child_.end(); }
  Texts heard() const {
    Texts lines;
    std::istringstream all(read_text(journal_));
    for (std::string line; std::getline(all, line);) lines.push_back(line);
    return lines;
  }

 private:
  [[noreturn]] void serve(const TemporaryFolder& folder, std::uint64_t epoch) const {
    Driver driver(folder);
    driver.start(epoch);
    AppendFile journal(journal_, true);
    while (true) {
      driver.turn([&] {
        for (const std::string& text : driver.received) journal.write(text + "\n");
        driver.received.clear();
      });
    }
  }

  fs::path journal_;
  Child child_;
};

TEST_CASE("a driver that stands still is handed everything once, and told it when it goes on") {
  const TemporaryFolder folder;
  DriverProcess driver(folder, 1);
  Agent agent(Driver{folder});
  Texts said = {"hello"};
  agent.say("hello");
  REQUIRE(eventually([&] {
    agent.turn();
    return driver.heard() == said;
  }));
  driver.stop();
  const std::size_t handed_before = agent.endpoint.handed_bytes();
  for (int i = 0; i < 100; ++i) {
    agent.say(said.emplace_back(std::to_string(i) + std::string(1000, 'x')));
  }
  constexpr int kHour = 3600;
  for (int second = 0; second < kHour; ++second) agent.turn_at_once(seconds(1));
  constexpr std::size_t kHeartbeat = 64;  // a frame without messages has less
  CHECK(agent.endpoint.unacknowledged_bytes() > 100'000);
  CHECK(agent.endpoint.handed_bytes() - handed_before <=
        2 * agent.endpoint.unacknowledged_bytes() + kHour * kHeartbeat);
  driver.go_on();
  CHECK(eventually([&] {
    agent.turn();
    return agent.endpoint.unacknowledged_bytes() == 0;
  }));
  CHECK(driver.heard() == said);
}

TEST_CASE("what a socket does not take stays, and goes when there is room, once and in order") {
  const TemporaryFolder folder;
  Driver driver(folder);
  Agent agent(driver);
  Texts said;
  std::size_t bytes = 0;
  for (int i = 0; i < 5000; ++i) {  // one frame each
    agent.say(said.emplace_back(std::to_string(i)));
    agent.turn_at_once(seconds(1));
    if (i == 999) bytes = agent.endpoint.handed_bytes();
  }
  CHECK(agent.endpoint.handed_bytes() < 2 * bytes);
  driver.start(1);
  CHECK(eventually([&] {
    agent.turn();
    driver.turn();
    return agent.endpoint.unacknowledged_bytes() == 0;
  }));
  CHECK(driver.received == said);
}

TEST_CASE("a driver that has room for less takes less, and the rest when it has room") {
  const TemporaryFolder folder;
  Driver driver(folder);
  driver.start(1);
  Agent agent(driver);
  constexpr std::size_t kFrame = Link::kMaxFramePayload;  // so each of these is a frame of its own
  for (const char* name : {"1", "2", "3"}) agent.say(name + std::string(kFrame, ' '));
  std::string taken;
  const auto take = [&](std::size_t room) {
    pollfd watched{driver.endpoint->descriptor(), POLLIN, 0};
    ::poll(&watched, 1, 1);
    for (const Peers::Told& told : driver.endpoint->receive(driver.now, room)) {
      taken += text_of(told.event).front();
    }
  };
  REQUIRE(eventually([&] {
    agent.turn();
    take(1);
    return taken == "1";
  }));
  REQUIRE(eventually([&] {
    agent.turn();
    take(2 * kFrame);
    return taken == "123";
  }));
  // Nothing came twice: a frame that is left alone is not asked for again.
  CHECK(agent.endpoint.handed_bytes() < 3 * kFrame + 10'000);
}

TEST_CASE("an agent that is not there keeps no frames in the driver's socket, and misses none") {
  const TemporaryFolder folder;
  Driver driver(folder);
  driver.start(1);
  auto agent = std::make_unique<Agent>(driver);
  agent->say("hello");
  REQUIRE(eventually([&] {
    agent->turn();
    driver.turn();
    return agent->endpoint.unacknowledged_bytes() == 0;
  }));
  agent.reset();
  for (std::uint32_t i = 0; i < 100; ++i) {
    driver.endpoint->send(driver.last_agent, numbered(i));
    driver.turn();
  }
  agent = std::make_unique<Agent>(driver);  // a new life of the same agent
  agent->say("again");
  CHECK(eventually([&] {
    agent->turn();
    driver.turn();
    return agent->received.size() == 100;
  }));
  for (std::uint32_t i = 0; i < 100; ++i) CHECK(agent->received[i] == i);
}

TEST_CASE("a driver's process may be killed at any time: the next one hears what is not recorded") {
  const TemporaryFolder folder;
  Agent agent(Driver{folder});
  Texts said;
  std::size_t recorded = 0;  // by all drivers so far
  for (std::uint64_t epoch = 1; epoch <= 5; ++epoch) {
    CAPTURE(epoch);
    DriverProcess driver(folder, epoch);
    const std::size_t known = said.size();
    for (int i = 0; i < 200; ++i) {
      agent.say(said.emplace_back(std::to_string(said.size())));
      agent.turn();
    }
    const bool is_last = epoch == 5;
    REQUIRE(eventually([&] {
      agent.turn();
      return is_last ? agent.endpoint.unacknowledged_bytes() == 0 : !driver.heard().empty();
    }));
    driver.kill();
    const Texts heard = driver.heard();
    const std::size_t first = std::stoul(heard.front());
    CHECK(first <= recorded);  // nothing between two drivers is lost
    CHECK(known <= said.size());
    CHECK(heard == Texts(said.begin() + static_cast<std::ptrdiff_t>(first),
                         said.begin() + static_cast<std::ptrdiff_t>(first + heard.size())));
    recorded = first + heard.size();
  }
  CHECK(recorded == said.size());
}

// Passes bytes between a listening socket and another until it is told to stop: what it was sent
// meanwhile is lost when it cuts the connection.
class Relay {
 public:
  Relay(const fs::path& from, const fs::path& to) : to_(to) {
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(from);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
            0);
    REQUIRE(::listen(listener_.get(), 8) == 0);
    thread_ = std::thread([this] {
      while (!ends_) pass_on();
    });
  }
  ~Relay() {
    ends_ = true;
    thread_.join();
  }

  void hold() { set(kHold); }
  void cut_and_go_on() {
    set(kCut);
    set(kPass);
  }

 private:
  enum Mode { kPass, kHold, kCut };

  static sockaddr_un address_of(const fs::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
  }
  void set(Mode mode) {
    mode_ = mode;
    REQUIRE(eventually([&] { return seen_ == mode; }));
  }
  void pass_on() {
    const Mode mode = mode_;
    if (mode == kCut) {
      for (FileDescriptor& end : ends) end.reset();
    }
    seen_ = mode;
    if (mode != kPass) {
      ::poll(nullptr, 0, 1);
      return;
    }
    if (!ends[0].is_open()) return connect();
    std::array<pollfd, 2> watched{{{ends[0].get(), POLLIN, 0}, {ends[1].get(), POLLIN, 0}}};
    ::poll(watched.data(), watched.size(), 1);
    for (std::size_t side = 0; side < 2; ++side) {
      if (watched[side].revents != 0 && !pass_on(side)) {
        for (FileDescriptor& end : ends) end.reset();
        return;
      }
    }
  }
  bool pass_on(std::size_t side) {
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(ends[side].get(), bytes.data(), bytes.size());
    for (ssize_t done = 0; done < count;) {
      const ssize_t written = ::send(ends[1 - side].get(), bytes.data() + done,
                                     static_cast<std::size_t>(count - done), MSG_NOSIGNAL);
      if (written <= 0) return false;
      done += written;
    }
    return count > 0;
  }
  void connect() {
    pollfd watched{listener_.get(), POLLIN, 0};
    if (::poll(&watched, 1, 1) != 1) return;
    ends[0].reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ends[1].reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(to_);
    if (::connect(ends[1].get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      for (FileDescriptor& end : ends) end.reset();
  }

  fs::path to_;
  FileDescriptor listener_;
  std::array<FileDescriptor, 2> ends;
  std::atomic<Mode> mode_ = kPass;
  std::atomic<Mode> seen_ = kHold;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

TEST_CASE("over connections that break, both ways, all arrives once and in order") {
  const TemporaryFolder folder;
  Driver driver(folder);
  driver.start(1);
  Relay relay(folder.path() / "relay", folder.path() / "d");
  Agent agent("ipc://" + (folder.path() / "relay").string());
  Texts said;
  std::vector<std::uint32_t> commands;
  const auto both = [&] {
    agent.turn(milliseconds(100));
    driver.turn();
    driver.now += milliseconds(100);
  };
  agent.say(said.emplace_back("hello"));
  REQUIRE(eventually([&] {
    both();
    return driver.received == said;
  }));
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    relay.hold();
    for (int i = 0; i < 50; ++i) {
      agent.say(said.emplace_back(std::to_string(said.size())));
      commands.push_back(static_cast<std::uint32_t>(commands.size()));
      driver.endpoint->send(driver.last_agent, numbered(commands.back()));
      both();
    }
    relay.cut_and_go_on();
    CHECK(eventually([&] {
      both();
      return driver.received == said && agent.received == commands;
    }));
  }
  CHECK(eventually([&] {  // the last acknowledgement may still be under way
    both();
    return agent.endpoint.unacknowledged_bytes() == 0;
  }));
}

}  // namespace
}  // namespace tune::testing
