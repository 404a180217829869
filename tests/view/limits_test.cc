// The limits of the page: too many of everything; and files that it reads without a trace.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/platform/process.h"
#include "core/refusal.h"
#include "view/served.h"

namespace tune::view {
namespace {

// Descriptors for both ends of so many connections; false: the system does not let this have them.
bool may_hold(std::size_t connections) {
  struct rlimit limit {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t wanted = 2 * connections + 200;
  if (limit.rlim_cur >= wanted) return true;
  limit.rlim_cur = wanted;
  return limit.rlim_max >= wanted && setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

TEST_CASE("a thousand viewers at once are served, each with its stream") {
  constexpr std::size_t kViewers = 1000;
  if (!may_hold(kViewers)) {
    MESSAGE("skipped: fewer descriptors are allowed");
    return;
  }
  const Served served;
  std::vector<std::unique_ptr<Client>> viewers;
  for (std::size_t i = 0; i < kViewers; ++i) {
    viewers.push_back(std::make_unique<Client>(served.port()));
    viewers.back()->send(served.words("GET", "/api/stream", served.with_cookie()));
  }
  for (const auto& viewer : viewers) CHECK_HAS(viewer->read_until("event: hello"), "event: hello");
  const std::string key = served.key();
  served.get("/api/x/" + key + "/meta", served.with_cookie());  // it is loaded now: news for all
  for (const auto& viewer : viewers) CHECK_HAS(viewer->read_until("event: change"), key);
}

TEST_CASE("connections beyond the limit are turned away, and have room when others have gone") {
  const Served served({.max_connections = 5});
  std::vector<std::unique_ptr<Client>> viewers;
  for (int i = 0; i < 5; ++i) {
    viewers.push_back(std::make_unique<Client>(served.port()));
    viewers.back()->send(served.words("GET", "/api/stream", served.with_cookie()));
    CHECK_HAS(viewers.back()->read_until("event: hello"), "event: hello");
  }
  Client more(served.port());
  const std::string answer = more.read_all();
  CHECK(is_status(answer, 503));
  CHECK_HAS(answer, "5 connections are open, as many as this server takes");
  viewers.pop_back();
  // Its end is noticed by the server's thread, not by us.
  bool is_served = false;
  for (int i = 0; i < 200 && !is_served; ++i) {
    is_served = is_status(served.get("/icon.svg", served.with_cookie()), 200);
  }
  CHECK(is_served);
}

// The program with so few descriptors, in a process of its own; ended with its owner.
class Limited {
 public:
  Limited(const std::filesystem::path& folder, int descriptors) : port_file_(folder / "port") {
    const std::string limit =
        "ulimit -n " + std::to_string(descriptors) + " && exec \"$@\" >/dev/null";
    const std::string program = std::string(TUNE_BINARY_DIR) + "/bin/tune-view";
    id_ = fork();
    if (id_ == 0) {
      execl("/bin/sh", "sh", "-c", limit.c_str(), "sh", program.c_str(), folder.c_str(), "--port",
            "0", "--port-file", port_file_.c_str(), nullptr);
      _exit(127);
    }
    REQUIRE(id_ > 0);
  }
  ~Limited() {
    kill(id_, SIGTERM);
    waitpid(id_, nullptr, 0);
  }
  std::uint16_t port() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!std::filesystem::exists(port_file_) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::string address = read_file(port_file_);
    const std::size_t at = address.find(':', address.find("//")) + 1;
    return static_cast<std::uint16_t>(std::stoi(address.substr(at)));
  }

 private:
  std::filesystem::path port_file_;
  pid_t id_ = -1;
};

TEST_CASE("viewers for whom no descriptors are left are refused in words, and served later") {
  const testing::TemporaryFolder folder;
  testing::begin_experiment(folder.path() / "s");
  const Limited server(folder.path(), 96);
  const std::uint16_t port = server.port();
  std::vector<std::unique_ptr<Client>> viewers;
  for (int i = 0; i < 150; ++i) viewers.push_back(std::make_unique<Client>(port));
  const std::string answer = viewers.back()->read_all();
  CHECK(is_status(answer, 503));
  CHECK_HAS(answer, "32 connections are open, as many as this server takes");
  viewers.clear();
  std::string served;
  for (int i = 0; i < 200 && !is_status(served, 403); ++i) {
    Client client(port);
    client.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    served = client.read_all();
  }
  CHECK(is_status(served, 403));  // for the lack of a cookie
}

TEST_CASE("a header of 100 MB is refused after its first pieces") {
  const Served served;
  Client client(served.port());
  client.send("GET / HTTP/1.1\r\nHost: " + served.host() + "\r\nX-Long: ");
  const std::string megabyte(1u << 20, 'x');
  int sent = 0;
  while (sent < 100 && client.send(megabyte)) ++sent;
  CHECK(sent < 100);
  CHECK(is_status(served.get("/", served.with_cookie()), 200));
}

TEST_CASE("a browser that slept is told what it missed, and gets the columns anew") {
  const Served served;
  const std::filesystem::path experiment = served.folder_.path() / "s";
  testing::begin_experiment(experiment, "running");
  const FileDescriptor lock(
      open((experiment / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(flock(lock.get(), LOCK_EX) == 0);  // as its driver does
  const std::string key = served.key();
  std::string last;
  {
    Client awake(served.port());
    awake.send(served.words("GET", "/api/stream", served.with_cookie()));
    awake.read_until("event: hello");
    served.get("/api/x/" + key + "/meta", served.with_cookie());
    const std::string told = awake.read_until("event: change\ndata: [\"" + key + "\"]");
    const std::size_t at = told.find("id: ") + 4;
    last = told.substr(at, told.find('\n', at) - at);
  }
  testing::add_trial(experiment, 1, "{\"lr\":2}", "{\"loss\":0.25}\n");
  testing::append_text(experiment / "events.jsonl", testing::event("attempt_started", 1));
  // A tab that never slept sees it first.
  Client other(served.port());
  other.send(
      served.words("GET", "/api/stream", served.with_cookie() + "Last-Event-ID: " + last + "\r\n"));
  other.read_until("event: change");
  Client woken(served.port());
  woken.send(
      served.words("GET", "/api/stream", served.with_cookie() + "Last-Event-ID: " + last + "\r\n"));
  CHECK_HAS(woken.read_until("event: change"), key);
  CHECK_HAS(served.get("/api/x/" + key + "/meta", served.with_cookie()), "\"value\":0.25");
}

using Stamps = std::map<std::string, std::pair<std::uintmax_t, std::filesystem::file_time_type>>;

Stamps stamps_of(const std::filesystem::path& folder) {
  Stamps stamps;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    stamps[entry.path().string()] = {entry.is_regular_file() ? entry.file_size() : 0,
                                     entry.last_write_time()};
  }
  return stamps;
}

TEST_CASE("who looks changes no file of a sweep, and never holds its lock") {
  const Served served({.control = true});
  const std::filesystem::path experiment = served.folder_.path() / "s";
  testing::write_text(experiment / "lock", "");
  const Stamps before = stamps_of(served.folder_.path());
  const std::string key = served.key();
  const FileDescriptor lock(open((experiment / "lock").c_str(), O_RDWR | O_CLOEXEC));
  for (const char* what :
       {"meta", "columns?c=number,m0l", "attempts", "rungs", "importance", "curves?m=0&best=9",
        "lineage", "nodes", "trial?n=0", "results?n=0", "usage?n=0", "log?n=0"}) {
    CAPTURE(what);
    const std::string answer = served.get("/api/x/" + key + "/" + what, served.with_cookie());
    CHECK((is_status(answer, 200) || is_status(answer, 202)));
    CHECK(flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
    CHECK(flock(lock.get(), LOCK_UN) == 0);
  }
  CHECK_HAS(served.get("/metrics", "Authorization: Bearer " + served.token_ + "\r\n"),
            "tune_trials");
  CHECK(stamps_of(served.folder_.path()) == before);
}

}  // namespace
}  // namespace tune::view
