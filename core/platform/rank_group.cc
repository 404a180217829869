#include "core/platform/rank_group.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/child.h"
#include "core/platform/line_output.h"
#include "core/platform/process.h"

namespace tune {

namespace {

using SteadyClock = std::chrono::steady_clock;

// A killed rank closes its connections before it can be reaped: other ranks may fail because of
// that, and be reaped first.
constexpr std::chrono::milliseconds kSettle{100};

struct Stream {
  FileDescriptor read;  // closed when nothing comes any more
  LinePrefixer lines;
  LineOutput* output;
};

class RankGroup {
 public:
  explicit RankGroup(const RankGroupOptions& options) : options_(options) {}
  RankGroupEnd run();

 private:
  void start_all();
  FileDescriptor add_stream(int rank, LineOutput& output);
  void turn();
  int time_left_ms() const;
  void take_signals();
  void read_stream(Stream& stream);
  void write(LineOutput& output);
  void reap(int local_rank);
  void fail(const RankGroupEnd::Failure& failure);
  void begin_end(int signal_number, std::chrono::milliseconds grace);
  void signal_all(int signal_number) const;

  const RankGroupOptions& options_;
  SignalWatch signals_{{SIGINT, SIGTERM, SIGHUP, SIGQUIT}};
  LineOutput out_{STDOUT_FILENO};
  LineOutput err_{STDERR_FILENO};
  std::vector<Child> ranks_;
  std::vector<Stream> streams_;
  int live_ = 0;
  std::optional<SteadyClock::time_point>
      settled_at_;  // until then a killed rank goes before the failed
  std::optional<SteadyClock::time_point> kill_at_;
  bool in_a_hurry_ = false;  // after a second signal no slow reader is waited for
  RankGroupEnd end_;
};

RankGroupEnd RankGroup::run() {
  try {
    start_all();
  } catch (...) {
    end_descendants();
    throw;
  }
  while (live_ > 0) turn();
  // Processes that ranks left behind hold the pipes open.
  end_descendants();
  for (Stream& stream : streams_) {
    while (stream.read.is_open()) read_stream(stream);
  }
  while (!in_a_hurry_ && (!out_.is_empty() || !err_.is_empty())) turn();
  return end_;
}

void RankGroup::start_all() {
  // A rank's two pipes and its process, and what it takes to start the last one.
  expect_descriptors(3 * options_.ranks + 8, fmt::format("starting {} ranks", options_.ranks));
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const FileDescriptor output = add_stream(rank, out_);
    const FileDescriptor errors = add_stream(rank, err_);
    ranks_.emplace_back(options_.start(rank, output.get(), errors.get()));
    ++live_;
  }
}

FileDescriptor RankGroup::add_stream(int rank, LineOutput& output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("making a pipe: {}", std::strerror(errno)));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  streams_.push_back({FileDescriptor(ends[0]),
                      LinePrefixer(fmt::format("[rank {}] ", options_.first_rank + rank)),
                      &output});
  return FileDescriptor(ends[1]);
}

// Waits for events and handles them. A slow reader makes the ranks wait, not this process.
void RankGroup::turn() {
  std::vector<pollfd> watched = {
      {signals_.descriptor(), POLLIN, 0},
      {options_.alive, POLLIN, 0},
      {out_.is_empty() ? -1 : out_.descriptor(), POLLOUT, 0},
      {err_.is_empty() ? -1 : err_.descriptor(), POLLOUT, 0},
  };
  const std::size_t streams_at = watched.size();
  for (const Stream& stream : streams_) {
    const int descriptor = stream.output->is_full() ? -1 : stream.read.get();
    watched.push_back({descriptor, POLLIN, 0});
  }
  const std::size_t ranks_at = watched.size();
  for (const Child& rank : ranks_) watched.push_back({rank.descriptor(), POLLIN, 0});

  const int count = poll(watched.data(), watched.size(), time_left_ms());
  if (settled_at_ && SteadyClock::now() >= *settled_at_) {
    begin_end(SIGTERM, options_.grace_after_failure);
  }
  if (kill_at_ && SteadyClock::now() >= *kill_at_) {
    kill_at_.reset();
    signal_all(SIGKILL);
  }
  if (count <= 0) return;
  if (watched[1].revents != 0) {
    end_descendants();
    _exit(3);  // no parent reads it
  }
  if (watched[0].revents != 0) take_signals();
  if (watched[2].revents != 0) write(out_);
  if (watched[3].revents != 0) write(err_);
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (watched[streams_at + i].revents != 0) read_stream(streams_[i]);
  }
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (watched[ranks_at + static_cast<std::size_t>(rank)].revents != 0) reap(rank);
  }
}

int RankGroup::time_left_ms() const {
  if (!kill_at_ && !settled_at_) return -1;
  const auto next = std::min(kill_at_.value_or(SteadyClock::time_point::max()),
                             settled_at_.value_or(SteadyClock::time_point::max()));
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - SteadyClock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void RankGroup::take_signals() {
  for (const int number : signals_.take()) {
    if (end_.signal != 0) {
      signal_all(SIGKILL);
      in_a_hurry_ = true;
      continue;
    }
    end_.signal = number;
    begin_end(number, options_.grace_after_signal);
  }
}

void RankGroup::read_stream(Stream& stream) {
  std::array<char, 16 << 10> bytes;
  const ssize_t count = read(stream.read.get(), bytes.data(), bytes.size());
  if (count > 0) {
    stream.lines.add({bytes.data(), static_cast<std::size_t>(count)}, stream.output->pending());
    return;
  }
  if (count < 0 && (errno == EINTR || (errno == EAGAIN && live_ > 0))) return;
  stream.lines.finish(stream.output->pending());
  stream.read.reset();
}

void RankGroup::write(LineOutput& output) {
  output.write_some();
  if (output.error() == 0 || end_.output_error != 0) return;
  end_.output_error = output.error();
  begin_end(SIGTERM, options_.grace_after_failure);
}

void RankGroup::reap(int local_rank) {
  Child& rank = ranks_[static_cast<std::size_t>(local_rank)];
  const int status = rank.wait();
  --live_;
  const bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == options_.good_code;
  if (is_good || end_.signal != 0 || end_.output_error != 0) return;
  fail({.rank = options_.first_rank + local_rank, .pid = rank.pid(), .wait_status = status});
}

void RankGroup::fail(const RankGroupEnd::Failure& failure) {
  const bool was_killed = WIFSIGNALED(failure.wait_status);
  if (end_.failure && !(settled_at_ && was_killed)) return;
  end_.failure = failure;
  if (was_killed) {
    begin_end(SIGTERM, options_.grace_after_failure);
  } else {
    settled_at_ = SteadyClock::now() + kSettle;
  }
}

void RankGroup::begin_end(int signal_number, std::chrono::milliseconds grace) {
  settled_at_.reset();
  const auto at = SteadyClock::now() + grace;
  kill_at_ = kill_at_ ? std::min(*kill_at_, at) : at;
  signal_all(signal_number);
}

// Signals whole process groups: a rank may be a script whose program would not get the signal.
void RankGroup::signal_all(int signal_number) const {
  for (const Child& rank : ranks_) rank.signal_group(signal_number);
}

}  // namespace

RankGroupEnd run_rank_group(const RankGroupOptions& options) {
  return RankGroup(options).run();
}

}  // namespace tune
