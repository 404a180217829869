// Thousands of connections of strangers to a sweep that machines may join.
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/join_token.h"
#include "core/platform/process.h"
#include "platform/open_driver.h"
#include "process/joinable.h"
#include "process/sweep.h"

namespace tune {
namespace {

// Ten thousand take ten seconds and more: without TUNE_CLUSTER_TESTS there are fewer.
bool all_are_asked_for() {
  return std::getenv("TUNE_CLUSTER_TESTS") != nullptr;
}

// The most that may be open at the same time, here and in the driver.
std::size_t most_open(std::size_t strangers) {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(strangers, limit.rlim_cur - 500);
}

int port_of(const Sandbox& box) {
  const std::string token = lines_of(box.tune({"token", "results/s"}).out).at(0);
  const std::string address = token_of_text(token).addresses.at(0);
  int port = 0;
  std::from_chars(address.data() + address.rfind(':') + 1, address.data() + address.size(), port);
  return port;
}

std::size_t count_of_text(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++count;
  }
  return count;
}

TEST_CASE("thousands of strangers are refused, told of once, and change nothing of a sweep") {
  const std::size_t strangers_in_all = all_are_asked_for() ? 10'000 : 1'000;
  const int trials = all_are_asked_for() ? 60 : 12;
  Joinable sweep(joinable_sweep(trials, 50));
  const int port = port_of(sweep.box);
  const std::vector<std::string> says = {
      std::string(300, '\xff'), "GET / HTTP/1.1\r\n\r\n", "",
      std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\0CURVE", 17) + "garbage"};
  const std::size_t most = most_open(strangers_in_all);
  std::vector<FileDescriptor> strangers;
  for (std::size_t i = 0; i < strangers_in_all; ++i) {
    if (strangers.size() >= most) strangers.clear();
    strangers.emplace_back(testing::connected_socket(port));
    REQUIRE(strangers.back().is_open());
    const std::string& text = says[i % says.size()];
    ::send(strangers.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  auto agent = sweep.agent();  // among them
  CHECK(Sandbox::eventually([&] { return sweep.count("joined") == 1; }));
  const Finished finished = sweep.finish();
  CHECK(count_of_text(finished.err, "did not speak as a machine with a token") == 1);
  CHECK_FALSE(testing::has(finished.err, "lost"));
  check_complete(sweep.box, "results/s", trials, 8);
  CHECK(agent->wait(std::chrono::seconds(20)).code == 0);
  check_nothing_left(sweep.box, "results/s");
}

}  // namespace
}  // namespace tune
