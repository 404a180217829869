#include "hosts_ranks.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "core/platform/rank_place.h"

namespace tune::testing {

using namespace shared_memory;

namespace {

constexpr std::chrono::seconds kLimit{30};

void say(int pipe, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(pipe, text.data() + at, text.size() - at);
    if (count <= 0) ::_exit(3);
    at += static_cast<std::size_t>(count);
  }
}

[[noreturn]] void be_rank(int rank, int size, FileDescriptor memory, const HostFunction& function,
                          std::chrono::milliseconds timeout, int pipe) {
  try {
    auto region =
        std::make_unique<RankMemory>(std::make_shared<Segment>(std::move(memory), rank, size), 0);
    region->arrive(Way::kShared);
    if (!region->await_all_here(kLimit)) throw std::runtime_error("not all came");
    region->segment()->watch(*region);
    std::string text;
    {
      Conversation talk(std::move(region), {timeout, 10 * timeout});
      HostRank host{rank, size, talk};
      text = "v" + function(host);
    }
    say(pipe, text);
  } catch (const std::exception& error) {
    say(pipe, std::string("e") + error.what());
  }
  ::_exit(0);
}

std::string hear(int pipe, std::chrono::steady_clock::time_point until) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd waited{pipe, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waited, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t count = ::read(pipe, buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace

void HostRank::all_reduce(Operator reduction, Type type, void* data, std::size_t bytes) {
  const auto make = [&](RankMemory& memory, const Call& call) {
    return shared_memory::all_reduce(memory, call, reduction, type, static_cast<char*>(data),
                                     bytes);
  };
  talk.wait(talk.collective(CallKind::kAllReduce, make, {.pace = Conversation::Pace::kWaitedFor}),
            {});
}

void HostRank::broadcast(int root, void* data, std::size_t bytes) {
  const auto make = [&](RankMemory& memory, const Call& given) {
    Call call = given;
    call.root = root;
    return shared_memory::broadcast(memory, call, static_cast<char*>(data), bytes);
  };
  talk.wait(talk.collective(CallKind::kBroadcast, make, {.pace = Conversation::Pace::kWaitedFor}),
            {});
}

void HostRank::barrier() {
  const auto make = [&](RankMemory& memory, const Call& call) {
    std::vector<Out> out;
    std::vector<In> in;
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      out.push_back({other, nullptr, 0});
      in.push_back({other, nullptr, 0});
    }
    return std::make_unique<Exchange>(memory, call, out, in);
  };
  talk.wait(talk.collective(CallKind::kBarrier, make, {.pace = Conversation::Pace::kWaitedFor}),
            {});
}

std::vector<RankOutcome> run_on_host(int size, const HostFunction& function,
                                     std::chrono::milliseconds timeout) {
  const FileDescriptor memory = memory_of_ranks();
  REQUIRE(memory.is_open());
  std::cout.flush();
  std::fflush(nullptr);
  std::vector<pid_t> processes;
  std::vector<FileDescriptor> pipes;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      be_rank(rank, size, FileDescriptor(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0)), function,
              timeout, ends[1]);
    }
    ::close(ends[1]);
    processes.push_back(pid);
    pipes.emplace_back(ends[0]);
  }
  std::vector<RankOutcome> outcomes;
  const auto until = std::chrono::steady_clock::now() + kLimit;
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const std::string said = hear(pipes[rank].get(), until);
    if (std::chrono::steady_clock::now() >= until) ::kill(processes[rank], SIGKILL);
    int status = 0;
    ::waitpid(processes[rank], &status, 0);
    RankOutcome outcome;
    (said.starts_with("v") ? outcome.text : outcome.error) =
        said.empty() ? "ended without a word" : said.substr(1);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
    outcomes.push_back(outcome);
  }
  return outcomes;
}

std::string text_of_all(const std::vector<RankOutcome>& outcomes) {
  for (const RankOutcome& one : outcomes) {
    CHECK_MESSAGE(one.error.empty(), one.error);
    CHECK(one.signal == 0);
    CHECK(one.text == outcomes[0].text);
  }
  return outcomes[0].text;
}

}  // namespace tune::testing
