// Tensors in memory that all ranks of a host reach: their all_reduce, and the memory itself.
#include "trainables/shared_memory/heap.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/platform/rank_place.h"
#include "hosts_ranks.h"
#include "trainables/shared_memory/failure.h"

namespace tune::shared_memory {
namespace {

using namespace std::chrono_literals;
using testing::HostRank;
using testing::RankOutcome;
using testing::run_on_host;
using testing::text_of_all;

constexpr std::size_t kCount = 300'007;

std::shared_ptr<char> block_of(HostRank& host, std::size_t bytes) {
  return host.talk.memory().segment()->allocate(bytes);
}

float value_of(int rank, std::size_t i) {
  const float sign = rank % 2 == 0 ? 1.0f : -0.999f;
  return sign * static_cast<float>(i % 1013 + 1) / static_cast<float>(rank + 3);
}

// In the order of the ranks.
std::vector<float> sums_of(int ranks, std::size_t count) {
  std::vector<float> sums(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (int rank = 0; rank < ranks; ++rank) {
      sums[i] = rank == 0 ? value_of(0, i) : sums[i] + value_of(rank, i);
    }
  }
  return sums;
}

bool sums_up(HostRank& host, float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(host.rank, i);
  host.all_reduce(Operator::kSum, Type::kFloat, values, count * sizeof(float));
  return std::memcmp(values, sums_of(host.size, count).data(), count * sizeof(float)) == 0;
}

TEST_CASE("tensors that all ranks reach are summed where they are, in the order of the ranks") {
  for (const int size : {1, 2, 3, 5}) {
    CAPTURE(size);
    const auto outcomes = run_on_host(size, [](HostRank& host) {
      const auto block = block_of(host, kCount * sizeof(float));
      auto* const values = reinterpret_cast<float*>(block.get());
      std::string all;
      for (const std::size_t count : {1u, 4096u, 4097u, 20'001u, 300'007u}) {
        all += sums_up(host, values, count) ? "y" : "n";
      }
      all += sums_up(host, values + 1001, 100'003) ? "y" : "n";  // a part of it
      return all;
    });
    CHECK(text_of_all(outcomes) == "yyyyyy");
  }
}

TEST_CASE("a tensor that one rank keeps to itself is summed with those that all reach") {
  for (const int plain : {0, 1, 2}) {
    CAPTURE(plain);
    const auto outcomes = run_on_host(3, [plain](HostRank& host) {
      const auto block = block_of(host, kCount * sizeof(float));
      std::vector<float> own(kCount);
      auto* const shared = reinterpret_cast<float*>(block.get());
      std::string all;
      for (int round = 0; round < 3; ++round) {
        all += sums_up(host, host.rank == plain ? own.data() : shared, kCount) ? "y" : "n";
        all += sums_up(host, shared, kCount) ? "y" : "n";
      }
      return all;
    });
    CHECK(text_of_all(outcomes) == "yyyyyy");
  }
}

TEST_CASE("means and halves come out as they do when they are sent") {
  const auto outcomes = run_on_host(3, [](HostRank& host) {
    const auto block = block_of(host, 50'000 * 2);
    std::vector<std::uint16_t> own(50'000);
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = static_cast<std::uint16_t>(0x3c00 + (i * 7 + static_cast<std::size_t>(host.rank)) % 2000);
    }
    std::memcpy(block.get(), own.data(), 100'000);
    std::string all;
    for (const Operator reduction : {Operator::kMean, Operator::kMax}) {
      host.all_reduce(reduction, Type::kHalf, own.data(), 100'000);
      host.all_reduce(reduction, Type::kHalf, block.get(), 100'000);
      all += std::memcmp(own.data(), block.get(), 100'000) == 0 ? "y" : "n";
    }
    return all;
  });
  CHECK(text_of_all(outcomes) == "yy");
}

std::int64_t pages_of_segment() {
  std::int64_t blocks = 0;
  for (int fd = 3; fd < 64; ++fd) {
    struct stat file {};
    char name[64] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), name, sizeof name - 1) <= 0) continue;
    if (std::string(name).find("memfd") == std::string::npos) continue;
    if (::fstat(fd, &file) == 0) blocks = std::max<std::int64_t>(blocks, file.st_blocks);
  }
  return blocks / 8;
}

TEST_CASE("freed memory goes back, and another tensor never meets its former readers") {
  const auto outcomes = run_on_host(2, [](HostRank& host) {
    std::string all;
    std::int64_t most = 0;
    for (int round = 0; round < 20; ++round) {
      const auto block = block_of(host, kCount * sizeof(float));
      all += sums_up(host, reinterpret_cast<float*>(block.get()), kCount) ? "y" : "n";
      most = std::max(most, pages_of_segment());
      host.barrier();
    }
    host.barrier();
    // Both ranks' blocks of a round, and perhaps the next, beside the rings: not those of 20.
    const auto block_pages = static_cast<std::int64_t>(kCount * sizeof(float) / 4096);
    all += most > block_pages && most < 6 * block_pages + 2000 ? "y" : "n";
    return all;
  });
  CHECK(text_of_all(outcomes) == std::string(21, 'y'));
}

TEST_CASE("a process that a rank forks leaves the rank's memory alone") {
  const auto outcomes = run_on_host(2, [](HostRank& host) {
    auto block = block_of(host, kCount * sizeof(float));
    auto* const values = reinterpret_cast<float*>(block.get());
    values[5] = 7;
    const pid_t child = ::fork();
    if (child == 0) {
      block.reset();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool is_kept = status == 0 && values[5] == 7;
    return std::string(is_kept && sums_up(host, values, kCount) ? "y" : "n");
  });
  CHECK(text_of_all(outcomes) == "y");
}

TEST_CASE("a limit for files leaves no such memory, and ends nobody") {
  const auto outcomes = run_on_host(2, [](HostRank& host) {
    const rlimit limit{1u << 30, 1u << 30};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const bool is_refused = block_of(host, 4096) == nullptr;
    std::vector<float> values(kCount);
    return std::string(is_refused && sums_up(host, values.data(), kCount) ? "y" : "n");
  });
  CHECK(text_of_all(outcomes) == "y");
}

TEST_CASE("a limit for files that is too small for the rings is an error, and no signal") {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{1u << 20, 1u << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      const Segment segment(memory_of_ranks(), 0, 2);
    } catch (const Error& error) {
      ::_exit(std::string(error.what()).find("ulimit -f") != std::string::npos ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a rank that is killed ends the sum of what all reach at once, by name") {
  const auto outcomes = run_on_host(3, [](HostRank& host) -> std::string {
    const auto block = block_of(host, kCount * sizeof(float));
    sums_up(host, reinterpret_cast<float*>(block.get()), kCount);
    if (host.rank == 1) ::raise(SIGKILL);
    try {
      sums_up(host, reinterpret_cast<float*>(block.get()), kCount);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "it ended";
  });
  for (const int rank : {0, 2}) {
    CHECK(outcomes[static_cast<std::size_t>(rank)].text.find("rank 1") != std::string::npos);
  }
}

TEST_CASE("tensors of different sizes are refused wherever they lie") {
  const auto outcomes = run_on_host(2, [](HostRank& host) -> std::string {
    const auto block = block_of(host, kCount * sizeof(float));
    std::vector<float> own(kCount);
    const bool is_shared = host.rank == 0;
    float* values = is_shared ? reinterpret_cast<float*>(block.get()) : own.data();
    try {
      sums_up(host, values, is_shared ? 100'000 : 100'001);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "it ended";
  });
  CHECK(outcomes[0].text.find("rank 1 calls all_reduce") != std::string::npos);
}

}  // namespace
}  // namespace tune::shared_memory
