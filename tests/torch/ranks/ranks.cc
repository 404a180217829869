#include "ranks.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "core/refusal.h"
#include "core/platform/rank_place.h"

namespace tune::testing {
namespace {

constexpr std::chrono::seconds kLimit{60};

struct Started {
  pid_t pid;
  int pipe;
};

int listening_socket(int& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(socket, 128) == 0);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return socket;
}

// 'v' and doubles, or 'e' and a text.
void write_all(int to, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(to, bytes, size);
    if (written <= 0) ::_exit(3);
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

[[noreturn]] void be_rank(const Rendezvous& place, const RankFunction& function, int pipe) {
  ::signal(SIGTERM, SIG_DFL);
  at::set_num_threads(1);
  Environment environment;
  add_bucket_memory(environment, [](const std::string&) { return false; });
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  try {
    const std::vector<double> values = function(place);
    write_all(pipe, "v", 1);
    write_all(pipe, reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  } catch (const std::exception& error) {
    write_all(pipe, "e", 1);
    write_all(pipe, error.what(), std::strlen(error.what()));
  }
  ::_exit(0);
}

std::string read_all(int from, std::chrono::steady_clock::time_point until) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd waited{from, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waited, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t got = ::read(from, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

RankEnd end_of(const Started& started, std::chrono::steady_clock::time_point until) {
  const std::string said = read_all(started.pipe, until);
  ::close(started.pipe);
  RankEnd end;
  if (!said.empty() && said[0] == 'v') {
    end.values.resize((said.size() - 1) / sizeof(double));
    std::memcpy(end.values.data(), said.data() + 1, end.values.size() * sizeof(double));
  } else {
    end.error = said.empty() ? "ended without a word" : said.substr(1);
  }
  if (std::chrono::steady_clock::now() >= until) ::kill(started.pid, SIGKILL);
  int status = 0;
  ::waitpid(started.pid, &status, 0);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace

std::vector<RankEnd> run_ranks(int size, const RankFunction& function) {
  Rendezvous place;
  place.size = size;
  const int socket = listening_socket(place.port);
  const FileDescriptor memory = memory_of_ranks();
  std::cout.flush();  // what waits there would be printed by each rank
  std::fflush(stdout);
  std::vector<Started> started;
  for (place.rank = 0; place.rank < size; ++place.rank) {
    int pipe[2];
    REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(pipe[0]);
      if (place.rank == 0) {
        place.listening_socket = socket;
      } else {
        ::close(socket);
      }
      place.shared_memory = ::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0);
      be_rank(place, function, pipe[1]);
    }
    ::close(pipe[1]);
    started.push_back({pid, pipe[0]});
  }
  ::close(socket);
  std::vector<RankEnd> ends;
  const auto until = std::chrono::steady_clock::now() + kLimit;
  for (const Started& one : started) ends.push_back(end_of(one, until));
  return ends;
}

std::vector<RankEnd> run_group(int size, const GroupFunction& function,
                               std::chrono::milliseconds timeout) {
  return run_ranks(size, [&](const Rendezvous& place) {
    ProcessGroup group(place, {.timeout = timeout});
    std::vector<double> values = function(group);
    group.barrier("end of the test");
    return values;
  });
}

bool is_refused(const std::function<void()>& call, const std::string& part) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == ErrorCode::kBadInput && has(error.what(), part);
  }
  return false;
}

std::vector<double> values_of(const std::vector<RankEnd>& ends) {
  for (const RankEnd& end : ends) {
    REQUIRE_MESSAGE(end.error.empty(), end.error);
    REQUIRE(end.signal == 0);
  }
  return ends[0].values;
}

bool are_equal(const std::vector<RankEnd>& ends) {
  return std::ranges::all_of(ends,
                             [&](const RankEnd& end) { return end.values == ends[0].values; });
}

std::vector<double> doubles(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor whole = tensor.is_sparse() ? tensor.to_dense() : tensor;
  const at::Tensor flat = whole.detach().cpu().to(at::kDouble).contiguous().view(-1);
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

double greatest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double greatest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (std::isnan(difference)) return difference;  // it must not pass as none
    greatest = std::max(greatest, difference);
  }
  return greatest;
}

}  // namespace tune::testing
