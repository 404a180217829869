#include "trainables/torch/process_group.h"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/refusal.h"
#include "ranks.h"
#include "trainables/solitude.h"
#include "trainables/torch/device.h"
#include "trainables/trainable.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using testing::doubles;
using testing::is_refused;
using testing::RankEnd;
using testing::refusal;
using testing::run_group;
using testing::run_ranks;
using testing::values_of;

struct Variable {
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  const char* name_;
};

TEST_CASE("sums, means, least and greatest are the same on all ranks") {
  for (const int size : {1, 2, 3, 4}) {
    CAPTURE(size);
    const auto ends = run_group(size, [](ProcessGroup& group) {
      std::vector<double> all;
      for (const Reduce reduce : {Reduce::kSum, Reduce::kMean, Reduce::kMin, Reduce::kMax}) {
        at::Tensor tensor = at::full({2}, group.rank() + 1.0);
        group.all_reduce(tensor, reduce);
        for (const double value : doubles(tensor)) all.push_back(value);
      }
      return all;
    });
    const double sum = size * (size + 1) / 2.0;  // 1 + 2 + ... + size
    const double mean = sum / size;
    CHECK(values_of(ends) ==
          std::vector<double>{sum, sum, mean, mean, 1, 1, 1.0 * size, 1.0 * size});
    CHECK(testing::are_equal(ends));
  }
}

TEST_CASE("tensors and texts go from one rank to all, and parts of a larger tensor do as well") {
  const auto ends = run_group(3, [](ProcessGroup& group) {
    at::Tensor table = at::zeros({2, 2});
    at::Tensor column = table.select(1, group.rank() == 2 ? 1 : 0);  // not dense
    column.fill_(group.rank());
    group.broadcast(column, 2);
    std::vector<double> all = doubles(column);
    for (const at::Tensor& one : group.all_gather(at::full({1}, group.rank() * 10, at::kLong))) {
      all.push_back(one.item<double>());
    }
    const std::string own(static_cast<std::size_t>(group.rank()), '\0');
    for (const std::string& text : group.all_gather_texts(own)) {
      all.push_back(static_cast<double>(text.size()));
    }
    return all;
  });
  CHECK(values_of(ends) == std::vector<double>{2, 2, 0, 10, 20, 0, 1, 2});
  CHECK(testing::are_equal(ends));
}

TEST_CASE("two ranks send and receive; a duplicate of the group works beside it") {
  const auto ends = run_group(2, [](ProcessGroup& group) {
    ProcessGroup other = group.duplicate();
    at::Tensor tensor = at::full({3}, 7.0 * (1 - group.rank()));
    if (group.rank() == 0) {
      group.send(tensor, 1);
    } else {
      group.receive(tensor, 0);
    }
    other.all_reduce(tensor);
    return doubles(tensor);
  });
  CHECK(values_of(ends) == std::vector<double>{14, 14, 14});
  CHECK(testing::are_equal(ends));
}

TEST_CASE("a rank that skips a collective: all end within the timeout and say who waits for what") {
  const auto ends = run_group(
      3,
      [](ProcessGroup& group) {
        if (group.rank() != 2) group.all_reduce(at::zeros({4}), Reduce::kSum, "the loss");
        group.barrier("end of the epoch");
        return std::vector<double>{};
      },
      1s);
  for (const RankEnd& end : ends) CHECK(end.signal == 0);
  CHECK_HAS(ends[0].error, "rank 0 of 3: all_reduce of the loss, Float [4], call 1 of the group");
  CHECK_HAS(ends[0].error, "rank 2 waits in barrier (end of the epoch)");
  CHECK_HAS(ends[2].error, "rank 2 of 3: barrier (end of the epoch), call 1");
}

TEST_CASE("a rank that is alone is waited for beyond the timeout, and only as long as it is") {
  const auto ends = run_group(
      2,
      [](ProcessGroup& group) {
        if (group.rank() == 1) {
          const Solitude solitude;
          std::this_thread::sleep_for(3s);
        }
        at::Tensor one = at::ones({4});
        group.all_reduce(one);
        group.barrier("again");
        if (group.rank() == 1) std::this_thread::sleep_for(3s);
        group.all_reduce(one, Reduce::kSum, "the last");
        return std::vector<double>{};
      },
      1s);
  CHECK_HAS(ends[0].error, "all_reduce of the last, Float [4], call 3 of the group");
  CHECK_HAS(ends[0].error, "rank 1 waits for nothing");
}

TEST_CASE("a rank that is alone is waited for in sends and receives, and only as long as it is") {
  const auto alone = [](const ProcessGroup& group) {
    if (group.rank() != 2) return;
    const Solitude solitude;
    std::this_thread::sleep_for(2s);
  };
  // From rank 0 to rank 2, and from rank 2 to rank `to`.
  const auto exchange = [](ProcessGroup& group, int to) {
    at::Tensor tensor = at::full({2}, 1.0 * group.rank());
    if (group.rank() == 0) group.send(tensor, 2);
    if (group.rank() == 2) group.receive(tensor, 0);
    if (group.rank() == 2) group.send(tensor, to);
    if (group.rank() == to) group.receive(tensor, 2);
  };
  const auto ends = run_group(
      3,
      [&](ProcessGroup& group) {
        alone(group);
        exchange(group, 1);
        alone(group);
        std::vector<at::Tensor> any{at::full({2}, 5.0 + group.rank())};
        if (group.rank() == 2) group.c10d()->send(any, 1, 7)->wait();
        if (group.rank() == 1) {
          const auto work = group.c10d()->recvAnysource(any, 7);
          work->wait();
          if (work->sourceRank() != 2 || doubles(any[0])[0] != 7) throw std::runtime_error("lost");
        }
        if (group.rank() == 2) std::this_thread::sleep_for(4s);
        exchange(group, 1);
        return std::vector<double>{};
      },
      1s);
  CHECK_HAS(ends[0].error, "send to rank 2 of Float [2], call 2 of the group");
  CHECK_HAS(ends[1].error, "receive from rank 2 of Float [2], call 2 of the group");
  CHECK_HAS(ends[0].error, "rank 2 waits for nothing");
}

TEST_CASE("a rank that is killed ends the wait of the others at once") {
  const auto began = std::chrono::steady_clock::now();
  const auto ends = run_group(3, [](ProcessGroup& group) {
    if (group.rank() == 1) ::raise(SIGKILL);
    group.all_reduce(at::zeros({4}));
    return std::vector<double>{};
  });
  CHECK(std::chrono::steady_clock::now() - began < 10s);  // promised are 5 s, the timeout is 30 s
  CHECK(ends[0].signal == 0);
  CHECK(ends[1].signal == SIGKILL);
  CHECK(ends[2].signal == 0);
  CHECK_HAS(ends[0].error, "(did a rank end?)");
  CHECK_HAS(ends[2].error, "all_reduce of Float [4]");
}

TEST_CASE("writing to what is gone is an error to tell, and not a rank's end") {
  const auto ends = run_group(2, [](ProcessGroup&) {
    int pipe[2];
    if (::pipe(pipe) != 0) return std::vector<double>{};
    ::close(pipe[0]);
    const bool failed = ::write(pipe[1], "x", 1) < 0 && errno == EPIPE;
    return std::vector<double>{failed ? 1.0 : 0.0};
  });
  for (const RankEnd& end : ends) CHECK(end.values == std::vector<double>{1.0});
}

TEST_CASE("a group that does not come together says which rank is missing") {
  const auto ends = run_ranks(3, [](const Rendezvous& place) {
    if (place.rank == 1) return std::vector<double>{};
    ProcessGroup group(place, {.timeout = 1s});
    return std::vector<double>{};
  });
  CHECK_HAS(ends[0].error, "rank 0 of 3: forming the group failed");
  CHECK_HAS(ends[0].error, "rank 1 did not come");
  CHECK(!ends[2].error.empty());

  const auto without_first = run_ranks(2, [](const Rendezvous& place) {
    if (place.rank == 0) return std::vector<double>{};
    ProcessGroup group(place, {.timeout = 1s});
    return std::vector<double>{};
  });
  CHECK_HAS(without_first[1].error, "rank 1 of 2: cannot reach rank 0 at 127.0.0.1:");
}

TEST_CASE("a rank that is alone before it forms a group is waited for, and only as long as it is") {
  void* shared = ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  for (const int lonely : {0, 1}) {
    for (const bool comes : {true, false}) {
      CAPTURE(lonely);
      CAPTURE(comes);
      auto& is_alone = *new (shared) std::atomic<bool>(true);
      const auto ends = run_ranks(3, [&](const Rendezvous& place) {
        const SolitudeWitness agent([&] { return is_alone.load(); });
        if (place.rank == lonely) {
          std::this_thread::sleep_for(2s);
          is_alone = false;
          if (!comes) std::this_thread::sleep_for(4s);
          if (!comes) return std::vector<double>{};
        }
        ProcessGroup group(place, {.timeout = 1s});
        at::Tensor ranks = at::ones({1});
        group.all_reduce(ranks);
        return doubles(ranks);
      });
      if (comes) {
        CHECK(values_of(ends) == std::vector<double>{3});
      } else if (lonely == 0) {
        for (const RankEnd& end : {ends[1], ends[2]}) CHECK_HAS(end.error, "cannot reach rank 0");
      } else {
        CHECK_HAS(ends[0].error, "rank 1 did not come");
        CHECK(!ends[2].error.empty());
      }
    }
  }
  ::munmap(shared, sizeof(std::atomic<bool>));
}

// Seen by all ranks.
struct Fate {
  std::atomic<pid_t> first = 0;
  std::atomic<int> failed = 0;
};

TEST_CASE("a rank 0 that is stopped does not hold the others beyond the timeout") {
  void* shared =
      ::mmap(nullptr, sizeof(Fate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  for (const bool before : {true, false}) {
    CAPTURE(before);
    Fate& fate = *new (shared) Fate;
    const auto ends = run_ranks(3, [&](const Rendezvous& place) {
      const auto stop = [&] {
        if (place.rank != 0) return;
        fate.first = ::getpid();
        ::raise(SIGSTOP);
      };
      try {
        if (before) stop();
        ProcessGroup group(place, {.timeout = 1s});
        stop();
        group.all_reduce(at::zeros({4}), Reduce::kSum, "the loss");
      } catch (const Error&) {
        if (++fate.failed == 2 && fate.first > 0) ::kill(fate.first, SIGKILL);
        throw;
      }
      return std::vector<double>{};
    });
    CHECK(fate.failed == 2);
    for (const RankEnd& end : {ends[1], ends[2]}) {
      CHECK(end.signal == 0);
      CHECK_HAS(end.error, before ? "cannot reach rank 0" : "all_reduce of the loss");
      CHECK_HAS(end.error, "rank 0, which keeps the group together, does not answer");
    }
  }
  ::munmap(shared, sizeof(Fate));
}

TEST_CASE("the environment says where the group is, and what is wrong with it") {
  CHECK(Rendezvous::from_environment().size == 1);
  const Variable size("WORLD_SIZE", "2");
  CHECK_HAS(refusal([] { Rendezvous::from_environment(); }), "RANK is not in the environment");
  const Variable rank("RANK", "0");
  const Variable address("MASTER_ADDR", "127.0.0.1");
  const Variable port("MASTER_PORT", "4321");
  const Variable socket("TUNE_RENDEZVOUS_FD", "7");
  const Rendezvous place = Rendezvous::from_environment();
  CHECK(place.size == 2);
  CHECK(place.port == 4321);
  CHECK(place.listening_socket == 7);
  CHECK(!Rendezvous::from_environment().listening_socket);  // it serves one group
  const Variable wrong("RANK", "2");
  CHECK_HAS(refusal([] { Rendezvous::from_environment(); }),
            "RANK is 2, a whole number from 0 to 1 is wanted");
}

TEST_CASE("calls that make no sense are refused before anyone waits") {
  const auto ends = run_ranks(1, [](const Rendezvous&) {
    ProcessGroup alone;
    std::vector<double> refused;
    refused.push_back(is_refused([&] { alone.send(at::zeros({1}), 0); }, "no other rank"));
    refused.push_back(is_refused(
        [&] { alone.all_reduce(at::zeros({1}, at::kLong), Reduce::kMean); }, "whole numbers"));
    return refused;
  });
  CHECK(values_of(ends) == std::vector<double>{1, 1});
}

TEST_CASE("a rank that sees no GPU computes on the CPU; one that is not there is refused by name") {
  const auto ends = run_ranks(1, [](const Rendezvous&) {
    std::vector<double> result;
    for (const char* none : {"", "-1"}) {
      const Variable devices("CUDA_VISIBLE_DEVICES", none);
      result.push_back(own_device().is_cpu() && Context().device().is_cpu() ? 1.0 : 0.0);
    }
    const Variable devices("CUDA_VISIBLE_DEVICES", "0,1");
    const Variable index("TUNE_DEVICE_INDEX", "2");
    result.push_back(is_refused([] { own_device(); },
                                "TUNE_DEVICE_INDEX is 2, but 2 GPUs are visible: start no more"));
    const Variable part("TUNE_CUDA_PART", "/no/such/library.so");
    {
      const Variable split("CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b,MIG-c");
      result.push_back(is_refused([] { own_device(); },
                                  "TUNE_DEVICE_INDEX is 2, and CUDA_VISIBLE_DEVICES is "
                                  "MIG-a,MIG-b,MIG-c: of a list with MIG instances"));
      result.push_back(GroupOptions().gloo_for_gpu ? 1 : 0);
      const Variable own("CUDA_VISIBLE_DEVICES", "MIG-c");
      const Variable first("TUNE_DEVICE_INDEX", "0");
      result.push_back(is_refused([] { own_device(); }, "/no/such/library.so"));
    }
    const Variable whole("CUDA_VISIBLE_DEVICES", "0,1");
    const Variable sound("TUNE_DEVICE_INDEX", "1");
    result.push_back(is_refused([] { own_device(); }, "/no/such/library.so"));
    return result;
  });
  CHECK(values_of(ends) == std::vector<double>(7, 1));
}

TEST_CASE("a rank that is told of no devices sees those of the node") {
  struct Row {
    const char* gpus;
    const char* rank;
    const char* refusal;  // none: the CPU
  };
  for (const Row& row : {Row{"0", "1", nullptr}, Row{"2", "1", "/no/such/library.so"},
                         Row{"2", "2", "LOCAL_RANK is 2, but 2 GPUs are visible"}}) {
    CAPTURE(row.gpus);
    CAPTURE(row.rank);
    const auto ends = run_ranks(1, [&](const Rendezvous&) {
      // Loaded already, it is what stands for the driver's library of that name.
      if (::dlopen(TUNE_FAKE_NVML, RTLD_NOW) == nullptr) throw std::runtime_error(::dlerror());
      ::unsetenv("CUDA_VISIBLE_DEVICES");
      const Variable gpus("FAKE_GPUS", row.gpus);
      const Variable rank("LOCAL_RANK", row.rank);
      const Variable part("TUNE_CUDA_PART", "/no/such/library.so");
      if (row.refusal == nullptr) return std::vector<double>{own_device().is_cpu() ? 1.0 : 0.0};
      return std::vector<double>{is_refused([] { own_device(); }, row.refusal) ? 1.0 : 0.0};
    });
    CHECK(values_of(ends) == std::vector<double>{1});
  }
}

}  // namespace
}  // namespace tune
