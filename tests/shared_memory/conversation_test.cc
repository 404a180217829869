// Ranks of one host that speak through shared memory: what they say, and how they notice that
// another one does not.
#include "trainables/shared_memory/conversation.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/refusal.h"
#include "hosts_ranks.h"
#include "trainables/shared_memory/failure.h"

namespace tune::shared_memory {
namespace {

using namespace std::chrono_literals;
using testing::HostRank;
using testing::RankOutcome;
using testing::run_on_host;
using testing::text_of_all;
using Pace = Conversation::Pace;

// Of each size, where values are added in another order when the order of ranks is not kept.
std::string sums(HostRank& host) {
  std::string all;
  for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 4096u, 4097u, 20'001u, 300'007u}) {
    std::vector<float> values(count);
    std::vector<float> wanted(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = [&](int rank) {
        return (rank % 2 == 0 ? 1.0f : -0.999f) * static_cast<float>(i % 1013 + 1) /
               static_cast<float>(rank + 3);
      };
      values[i] = value(host.rank);
      wanted[i] = value(0);
      for (int rank = 1; rank < host.size; ++rank) wanted[i] += value(rank);
    }
    host.all_reduce(Operator::kSum, Type::kFloat, values.data(), count * sizeof(float));
    all += values == wanted ? "y" : "n";
  }
  return all;
}

TEST_CASE("sums of any size are those in the order of the ranks, on all ranks") {
  for (const int size : {1, 2, 3, 4, 5}) {
    CAPTURE(size);
    CHECK(text_of_all(run_on_host(size, sums)) == "yyyyyyyyy");
  }
}

TEST_CASE("what one rank has comes to all, whatever its size") {
  for (const int size : {1, 2, 3, 5}) {
    CAPTURE(size);
    const auto outcomes = run_on_host(size, [](HostRank& host) {
      std::string all;
      for (int root = 0; root < host.size; ++root) {
        for (const std::size_t bytes : {0u, 1u, 64u, 16'384u, 16'385u, 1'500'001u}) {
          std::vector<char> data(bytes, static_cast<char>(host.rank));
          if (host.rank == root) std::iota(data.begin(), data.end(), static_cast<char>(root));
          host.broadcast(root, data.data(), bytes);
          std::vector<char> wanted(bytes);
          std::iota(wanted.begin(), wanted.end(), static_cast<char>(root));
          all += data == wanted ? "y" : "n";
        }
      }
      return all;
    });
    CHECK(text_of_all(outcomes) == std::string(static_cast<std::size_t>(6 * size), 'y'));
  }
}

OperationPtr send(HostRank& host, int to, int tag, const std::vector<char>& bytes) {
  return host.talk.message(
      [&](Messages& messages) { return messages.send(to, tag, bytes.data(), bytes.size()); },
      {.pace = Pace::kInBackground});
}
OperationPtr receive(HostRank& host, int from, int tag, std::vector<char>& bytes,
                     int* source = nullptr) {
  return host.talk.message(
      [&](Messages& messages) {
        return messages.receive(from, tag, bytes.data(), bytes.size(), source);
      },
      {.pace = Pace::kWaitedFor});
}

TEST_CASE("messages go by their tags, beside collectives, and large ones both ways at once") {
  const auto outcomes = run_on_host(2, [](HostRank& host) {
    const int other = 1 - host.rank;
    const std::vector<char> large(900'001, static_cast<char>('a' + host.rank));
    const std::vector<char> small(3, static_cast<char>('A' + host.rank)), none;
    std::vector<char> got_large(large.size()), got_small(3), got_none;
    const auto sends = {send(host, other, 1, large), send(host, other, 2, small),
                        send(host, other, 3, none)};
    host.barrier();
    // The last first: what comes before is kept.
    host.talk.wait(receive(host, other, 3, got_none), {});
    host.talk.wait(receive(host, other, 2, got_small), {});
    host.talk.wait(receive(host, other, 1, got_large), {});
    for (const auto& one : sends) host.talk.wait(one, {});
    const bool is_right = got_large == std::vector<char>(large.size(), char('a' + other)) &&
                          got_small == std::vector<char>(3, char('A' + other));
    return std::string(is_right ? "right" : "wrong");
  });
  CHECK(text_of_all(outcomes) == "right");
}

TEST_CASE("a message of any rank says from which it came, and in the order of its tag") {
  const auto outcomes = run_on_host(3, [](HostRank& host) {
    std::string text;
    if (host.rank != 0) {
      const std::vector<char> bytes(1, static_cast<char>('0' + host.rank));
      host.talk.wait(send(host, 0, 5, bytes), {});
      host.talk.wait(send(host, 0, 5, {'x'}), {});
    } else {
      std::vector<char> bytes(1);
      int first = 0, second = 0;
      host.talk.wait(receive(host, kAnyRank, 5, bytes, &first), {});
      text += bytes[0] == '0' + first ? "y" : "n";
      host.talk.wait(receive(host, 3 - first, 5, bytes, &second), {});
      text += bytes[0] == '0' + second && second == 3 - first ? "y" : "n";
      host.talk.wait(receive(host, 1, 5, bytes), {});
      host.talk.wait(receive(host, kAnyRank, 5, bytes, &second), {});
      text += bytes[0] == 'x' && second == 2 ? "y" : "n";
    }
    host.barrier();
    return text;
  });
  CHECK(outcomes[0].text == "yyy");
}

TEST_CASE("a message of another size than is wanted is refused, and the next one comes") {
  const auto outcomes = run_on_host(2, [](HostRank& host) {
    std::vector<char> bytes(4, 'q');
    if (host.rank == 0) {
      host.talk.wait(send(host, 1, 0, {'a', 'b'}), {});
      host.talk.wait(send(host, 1, 0, bytes), {});
      return std::string();
    }
    std::string said;
    try {
      host.talk.wait(receive(host, 0, 0, bytes), {});
    } catch (const Failure& failure) {
      said = failure.what();
    }
    host.talk.wait(receive(host, 0, 0, bytes), {});
    return said + (bytes == std::vector<char>(4, 'q') ? "" : " and nothing more");
  });
  CHECK(outcomes[1].text == "rank 0 sent 2 bytes, this rank wants 4");
}

TEST_CASE("ranks that call different things are told so at once, each what the other calls") {
  const auto began = std::chrono::steady_clock::now();
  const auto outcomes = run_on_host(2, [](HostRank& host) {
    float value = 1;
    if (host.rank == 0) host.all_reduce(Operator::kSum, Type::kFloat, &value, sizeof value);
    host.barrier();
    return std::string();
  });
  CHECK(std::chrono::steady_clock::now() - began < 10s);  // the timeout is 20 s
  CHECK_HAS(outcomes[0].error, "rank 1 calls barrier (call 1");
  CHECK_HAS(outcomes[0].error, "this rank all_reduce (call 1, 4 bytes");
  CHECK_HAS(outcomes[1].error, "rank 0 calls all_reduce");

  const auto sizes = run_on_host(2, [](HostRank& host) {
    std::vector<float> values(static_cast<std::size_t>(host.rank) + 1);
    host.all_reduce(Operator::kSum, Type::kFloat, values.data(), values.size() * sizeof(float));
    return std::string();
  });
  CHECK_HAS(sizes[0].error, "rank 1 calls all_reduce (call 1, 8 bytes");
}

TEST_CASE("a rank that is killed ends the wait of the others at once, by name") {
  const auto began = std::chrono::steady_clock::now();
  const auto outcomes = run_on_host(3, [](HostRank& host) {
    std::vector<float> values(100'000);
    host.barrier();
    if (host.rank == 1) ::raise(SIGKILL);
    host.all_reduce(Operator::kSum, Type::kFloat, values.data(), values.size() * sizeof(float));
    return std::string();
  });
  CHECK(std::chrono::steady_clock::now() - began < 5s);  // the timeout is 20 s
  CHECK(outcomes[1].signal == SIGKILL);
  for (const RankOutcome& end : {outcomes[0], outcomes[2]}) {
    CHECK(end.signal == 0);
    CHECK_HAS(end.error, "rank ");
    // The rank itself, or one that has given up because of it.
    CHECK(testing::has(end.error, "has ended") + testing::has(end.error, "has left") == 1);
  }
}

TEST_CASE("a rank that ended when it had said all is not missed") {
  const auto outcomes = run_on_host(3, [](HostRank& host) {
    host.barrier();
    float value = 1;
    host.broadcast(0, &value, sizeof value);
    if (host.rank == 0) ::raise(SIGKILL);
    std::vector<char> bytes{'m'};
    if (host.rank == 1) std::this_thread::sleep_for(200ms);
    if (host.rank == 1) host.talk.wait(send(host, 2, 0, bytes), {});
    if (host.rank == 2) host.talk.wait(receive(host, 1, 0, bytes), {});
    return std::string("well");
  });
  CHECK(outcomes[1].text == "well");
  CHECK(outcomes[2].text == "well");
}

struct Shared {
  std::atomic<pid_t> stopped = 0;
  std::atomic<int> failed = 0;
};

template <class T>
struct SharedBetweenRanks {
  SharedBetweenRanks()
      : value(*new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                           -1, 0)) T) {}
  ~SharedBetweenRanks() { ::munmap(&value, sizeof(T)); }
  T& value;
};

TEST_CASE("a rank that is stopped ends the others' waits after the timeout, by name") {
  const SharedBetweenRanks<Shared> fate;
  const auto outcomes = run_on_host(
      3,
      [&](HostRank& host) {
        host.barrier();
        if (host.rank == 2) {
          fate.value.stopped = ::getpid();
          ::raise(SIGSTOP);
          return std::string();
        }
        try {
          host.barrier();
        } catch (const Failure&) {
          if (++fate.value.failed == 2) ::kill(fate.value.stopped, SIGKILL);
          throw;
        }
        return std::string();
      },
      400ms);
  for (const RankOutcome& end : {outcomes[0], outcomes[1]}) {
    CHECK_HAS(end.error, "rank");
    const bool is_told = testing::has(end.error, "Timed out waiting for rank 2") ||
                         testing::has(end.error, "has left the group");
    CHECK_MESSAGE(is_told, end.error);
  }
}

TEST_CASE("a rank that is alone is waited for beyond the timeout, and only as long as it is") {
  const auto outcomes = run_on_host(
      2,
      [](HostRank& host) {
        if (host.rank == 1) {
          host.talk.memory().say_alone(true);
          std::this_thread::sleep_for(900ms);
          host.talk.memory().say_alone(false);
        }
        host.barrier();
        if (host.rank == 1) std::this_thread::sleep_for(1200ms);
        host.barrier();
        return std::string();
      },
      400ms);
  CHECK_HAS(outcomes[0].error, "Timed out waiting for rank 1");
}

TEST_CASE("an operation that nobody waits for goes on by itself") {
  const SharedBetweenRanks<Shared> fate;
  const auto outcomes = run_on_host(2, [&](HostRank& host) {
    std::vector<float> values(2'000'000, 1.0f);
    const std::size_t bytes = values.size() * sizeof(float);
    if (host.rank == 1) {
      std::this_thread::sleep_for(100ms);
      host.all_reduce(Operator::kSum, Type::kFloat, values.data(), bytes);
      fate.value.failed = 1;
      return std::string(values.back() == 2 ? "done" : "wrong");
    }
    const auto make = [&](RankMemory& memory, const Call& call) {
      return all_reduce(memory, call, Operator::kSum, Type::kFloat,
                        reinterpret_cast<char*>(values.data()), bytes);
    };
    std::atomic<bool> is_told = false;
    const auto operation =
        host.talk.collective(CallKind::kAllReduce, make, {.pace = Pace::kLooksFirst});
    host.talk.when_ended(operation, [&] { is_told = true; });
    while (fate.value.failed == 0 || !is_told) std::this_thread::sleep_for(1ms);
    return std::string(values.back() == 2 ? "done" : "wrong");
  });
  CHECK(text_of_all(outcomes) == "done");
}

TEST_CASE("a group that is given up fails all that follow, and the others hear of it") {
  const auto outcomes = run_on_host(2, [](HostRank& host) {
    host.barrier();
    if (host.rank == 0) {
      host.talk.abort("out of memory");
      host.barrier();
    }
    host.barrier();
    return std::string();
  });
  CHECK(outcomes[0].error == "out of memory");
  CHECK_HAS(outcomes[1].error, "rank 0 (process ");
  CHECK_HAS(outcomes[1].error, "has left the group");
}

// Rank 0 says its last word to rank 1, and leaves, while rank 1 looks after it and has just looked
// for the word in vain.
class LastWord : public Motion {
 public:
  explicit LastWord(std::atomic<int>& word) : word_(word) {}
  bool advance() override {
    if (word_ == kSaid) return true;
    if (++looks_ < kLooksBefore) return false;
    word_ = kWanted;
    while (word_ != kSaid) std::this_thread::yield();
    return false;
  }
  std::vector<int> awaited() override { return {0}; }
  static constexpr int kWanted = 1, kSaid = 2;

 private:
  static constexpr int kLooksBefore = 3;  // at its start, and twice in has_ended()
  std::atomic<int>& word_;
  int looks_ = 0;
};

TEST_CASE("the last word of a rank counts though it leaves at the moment when it is looked for") {
  const SharedBetweenRanks<Shared> fate;
  std::atomic<int>& word = fate.value.failed;
  const auto outcomes = run_on_host(2, [&](HostRank& host) {
    host.barrier();
    if (host.rank == 0) {
      while (word != LastWord::kWanted) std::this_thread::yield();
      host.talk.memory().leave();
      word = LastWord::kSaid;
      return std::string("well");
    }
    std::this_thread::sleep_for(20ms);  // the next look is due
    const auto make = [&](RankMemory&, const Call&) { return std::make_unique<LastWord>(word); };
    const auto operation =
        host.talk.collective(CallKind::kBarrier, make, {.pace = Pace::kWaitedFor});
    host.talk.has_ended(operation);
    const bool is_late = word != LastWord::kSaid;
    host.talk.wait(operation, {});
    return std::string(is_late ? "looked too seldom" : "well");
  });
  CHECK(text_of_all(outcomes) == "well");
}

TEST_CASE("another group gets another region, and one that is over leaves its own") {
  const auto outcomes = run_on_host(2, [](HostRank& host) {
    const std::shared_ptr<Segment> segment = host.talk.memory().segment();
    std::string regions;
    std::vector<std::unique_ptr<Conversation>> kept;
    for (int round = 0; round < 4; ++round) {
      std::uint32_t region = host.rank == 0 ? segment->take_region() : 0;
      host.broadcast(0, &region, sizeof region);
      auto memory = std::make_unique<RankMemory>(segment, region);
      memory->arrive(Way::kShared);
      auto talk = std::make_unique<Conversation>(std::move(memory), Patience{20s, 20s});
      HostRank there{host.rank, host.size, *talk};
      std::vector<float> values(50'000, 1.0f);
      there.all_reduce(Operator::kSum, Type::kFloat, values.data(), 200'000);
      regions += std::to_string(region) + (values[49'999] == 2 ? " " : "!");
      if (round == 0) kept.push_back(std::move(talk));
      talk.reset();
      host.barrier();
    }
    return regions;
  });
  CHECK(text_of_all(outcomes) == "1 2 2 2 ");
}

TEST_CASE("a file that is not such memory is refused and left as it is") {
  char name[] = "/tmp/tune-no-memory-XXXXXX";
  const int file = ::mkstemp(name);
  ::unlink(name);
  CHECK_HAS(testing::refusal([&] { Segment(FileDescriptor(file), 0, 2); }, ErrorCode::kProcess),
            "it is not such memory");
}

}  // namespace
}  // namespace tune::shared_memory
