// The cost of two ranks being one trial: the "go" before each step, and a group's end and next
// beginning. Beside them, the same processes without tune. Without LibTorch: the ranks exchange a
// byte over a connection of their own, as they would for gradients.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/rank_place.h"
#include "core/spawn.h"
#include "trainables/synthetic/busy_steps.h"
#include "tune/tune.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* kHelp =
    "Times steps of two ranks that meet in each, empty ones and some of a millisecond, and how "
    "long\n"
    "it takes from the last step of a group that is stopped or paused to the first of the next. "
    "Bare\n"
    "limit: two processes that do the same without tune. All take turns.\n\n"
    "bench_group_step [--tiny] [--runs N]";

constexpr const char* kState = "1";  // what is saved

// Times that rank 0 takes, where this program can read them: memory that the trials share with it.
class Board {
 public:
  Board() {
    void* memory =
        ::mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Error(ErrorCode::kProcess, "mmap failed");
    times_ = new (memory) Times;
  }
  ~Board() { ::munmap(times_, sizeof(Times)); }
  Board(const Board&) = delete;

  void clear() {
    times_->count = 0;
    times_->left = 0;
  }
  // The measured phase ends (not the first time) and the next one begins.
  void arrive() {
    const std::int64_t left = times_->left;
    if (left != 0 && times_->count < kMost) times_->values[times_->count++] = now() - left;
  }
  void leave() { times_->left = now(); }

  double median_seconds(std::size_t expected) const {
    if (times_->count != expected) {
      throw Error(ErrorCode::kTrialFailed,
                  fmt::format("{} times were taken, {} are there", expected, times_->count));
    }
    std::vector<std::int64_t> values(times_->values, times_->values + times_->count);
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(expected / 2));
    return static_cast<double>(values[expected / 2]) * 1e-9;
  }

 private:
  static constexpr std::size_t kMost = 10'000;
  struct Times {
    std::atomic<std::int64_t> left = 0;  // nanoseconds; 0: not yet
    std::atomic<std::size_t> count = 0;
    std::int64_t values[kMost];
  };
  static std::int64_t now() { return SteadyClock::now().time_since_epoch().count(); }

  Times* times_;
};

int number_in_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? -1 : std::atoi(value);
}

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorCode::kProcess, fmt::format("{}: {}", what, std::strerror(errno)));
}

// A connection of two ranks.
class Connection {
 public:
  Connection() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(number_in_environment("MASTER_PORT")));
    if (number_in_environment("RANK") == 0) {
      socket_ =
          FileDescriptor(::accept(number_in_environment(kRendezvousVariable), nullptr, nullptr));
      if (socket_.get() < 0) fail("accept");
    } else {
      socket_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        fail("connect");
      }
    }
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  // Returns when the other rank is there too.
  void meet() const {
    char byte = 0;
    if (::send(socket_.get(), &byte, 1, MSG_NOSIGNAL) != 1) fail("send");
    if (::recv(socket_.get(), &byte, 1, 0) != 1) fail("recv");
  }

 private:
  FileDescriptor socket_;
};

struct Steps {
  std::size_t steps = 0;
  std::uint64_t rounds = 0;  // of work in each
};

// A step as of a group that trains: work, then the exchange, which ends when both ranks are there.
class Meeting : public Trainable {
 public:
  explicit Meeting(Board& board) : board_(board) {}
  void setup(const Config& config) override {
    rounds_ = config.get<std::uint64_t>("rounds");
    connection_ = std::make_unique<Connection>();
  }
  Result step() override {
    if (rounds_ > 0) synthetic::busy_work(rounds_);
    connection_->meet();
    if (context().rank() == 0) {
      board_.arrive();
      board_.leave();
    }
    return {{"x", 1}};
  }
  void save(const fs::path& directory) override {
    if (context().rank() == 0) write_file_atomically(directory / "state", kState);
  }
  void load(const fs::path& directory) override { read_file(directory / "state"); }

 private:
  Board& board_;
  std::uint64_t rounds_ = 0;
  std::unique_ptr<Connection> connection_;
};

// Stops or pauses every trial at its first report of an attempt.
class EndEach : public TrialScheduler {
 public:
  explicit EndEach(bool pauses) : pauses_(pauses) {}
  void configure(const Objective& experiment) override { objective_ = experiment; }
  Objective objective() const override { return objective_; }
  Milestone add_trial(TrialNumber) override { return {"training_iteration", 1}; }
  Decision result(TrialNumber, const ResultView& result) override {
    at_ = result.iteration();
    return pauses_ ? Decision::pause("to be restored") : Decision::stop("the next one's turn");
  }
  Milestone resume_trial(TrialNumber) override {
    return {"training_iteration", static_cast<double>(at_) + 1};
  }
  void end_trial(TrialNumber, TrialEnd, const Reported*) override {}
  bool pauses() const override { return pauses_; }
  std::vector<std::string> status_lines() const override { return {}; }
  std::string save() const override { return encoded(at_); }
  void restore(std::string_view state) override { at_ = decoded<std::uint64_t>(state); }

 private:
  bool pauses_;
  Objective objective_;
  std::uint64_t at_ = 0;
};

RunOptions options(const Workplace& work, const Steps& load) {
  return {.name = "s",
          .config = {{"rounds", static_cast<std::int64_t>(load.rounds)}},
          .metric = "x",
          .stop = {{"training_iteration", static_cast<double>(load.steps)}},
          .resources_per_trial = {.cpu = 2, .ranks = 2},
          .seed = 1,
          .storage = work.fresh("results"),
          .max_concurrent_trials = 1,
          .quiet = true};
}

void run_trials(Board& board, RunOptions with) {
  board.clear();
  TrainableEntry entry;
  entry.name = "Meeting";
  entry.can_save = true;
  entry.make = [&board] { return std::make_unique<Meeting>(board); };
  run_entry(std::move(entry), std::move(with));
}

double step_in_a_trial(const Workplace& work, Board& board, const Steps& load) {
  run_trials(board, options(work, load));
  return board.median_seconds(load.steps - 1);
}

double next_group(const Workplace& work, Board& board, std::size_t groups, bool pauses) {
  RunOptions with = options(work, {.steps = pauses ? groups : 2});
  if (!pauses) with.num_samples = static_cast<std::int64_t>(groups);
  with.scheduler = scheduler<EndEach>(pauses);
  run_trials(board, std::move(with));
  return board.median_seconds(groups - 1);
}

// ---- Without tune -------------------------------------------------------------------------------

// Two forked processes with the environment of ranks.
void in_two_processes(const std::function<void(int rank)>& function) {
  const Listener listener = listen_at("127.0.0.1", 0);
  pid_t ranks[2];
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = ::fork();
    if (ranks[rank] < 0) fail("fork");
    if (ranks[rank] > 0) continue;
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("MASTER_PORT", std::to_string(listener.port).c_str(), 1);
    ::setenv(kRendezvousVariable, std::to_string(listener.socket.get()).c_str(), 1);
    function(rank);
    ::_exit(0);
  }
  for (const pid_t rank : ranks) {
    int status = 0;
    while (::waitpid(rank, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) throw Error(ErrorCode::kProcess, describe_exit(status));
  }
}

double step_alone(Board& board, const Steps& load) {
  board.clear();
  in_two_processes([&](int rank) {
    const Connection connection;
    for (std::size_t step = 0; step < load.steps; ++step) {
      if (load.rounds > 0) synthetic::busy_work(load.rounds);
      connection.meet();
      if (rank != 0) continue;
      board.arrive();
      board.leave();
    }
  });
  return board.median_seconds(load.steps - 1);
}

// Two processes after two others, with a file that is on the disk between them.
double next_processes(const Workplace& work, Board& board, std::size_t groups) {
  board.clear();
  const fs::path file = work.fresh("state");
  for (std::size_t group = 0; group < groups; ++group) {
    in_two_processes([&](int rank) {
      const Connection connection;
      connection.meet();
      if (rank != 0) return;
      board.arrive();
      board.leave();
      write_file_atomically(file, kState);
    });
  }
  return board.median_seconds(groups - 1);
}

// As much work as takes a millisecond when nothing disturbs it.
std::uint64_t rounds_of_a_millisecond() {
  constexpr std::uint64_t kRounds = 200'000;
  double shortest = 1;
  for (int i = 0; i < 20; ++i) {
    shortest = std::min(shortest, time_call([] { synthetic::busy_work(kRounds); }));
  }
  return static_cast<std::uint64_t>(kRounds * 1e-3 / shortest);
}

void measure(const Setting& setting) {
  const Workplace work(setting);
  Board board;
  const Steps empty{setting.tiny ? 20u : 5000u, 0};
  const Steps busy{setting.tiny ? 20u : 1000u, rounds_of_a_millisecond()};
  const std::size_t groups = setting.tiny ? 3 : 30;
  const std::vector<double> seconds =
      medians(setting.runs, {
                                [&] { return step_in_a_trial(work, board, empty); },
                                [&] { return step_alone(board, empty); },
                                [&] { return step_in_a_trial(work, board, busy); },
                                [&] { return step_alone(board, busy); },
                                [&] { return next_group(work, board, groups, false); },
                                [&] { return next_group(work, board, groups, true); },
                                [&] { return next_processes(work, board, groups); },
                            });
  Table table("two ranks");
  table.seconds("an empty step with go and report", seconds[0], "without tune", seconds[1]);
  table.seconds("a step of a millisecond", seconds[2], "without tune", seconds[3]);
  table.seconds("from a stopped group to the next one's step", seconds[4], "two processes, a file",
                seconds[6]);
  table.seconds("from a paused group to its own next step", seconds[5], "", seconds[6]);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 7);
  return guarded([&] { measure(setting); });
}
