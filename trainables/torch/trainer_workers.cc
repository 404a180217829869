#include "trainables/torch/trainer_workers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "core/current_exception.h"
#include "core/frame.h"
#include "core/platform/forked_rank.h"
#include "core/platform/rank_group.h"
#include "core/platform/rank_place.h"
#include "core/wire.h"

namespace tune {

namespace {

constexpr int kSettleMs = 500;
constexpr int kGoneMs = 10'000;  // longer than the others may take to end with one
constexpr std::size_t kMaxMessageBytes = 16u << 10;
constexpr int kSaidItself = 86;  // exit code of a worker that sent its error
constexpr int kToldToEnd = 87;   // of one whose trainer closed the connection

[[noreturn]] void fail_to(const std::string& what) {
  throw Error(ErrorCode::kProcess, what + ": " + std::strerror(errno));
}

// False when the other end is gone.
bool send_value(int socket, const Value& value) {
  std::string bytes;
  append_frame(bytes, pack(value).bytes);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

// Reads once. False when the other end is gone.
bool receive_some(int socket, FrameBuffer& input) {
  std::array<char, 16 << 10> bytes;
  for (;;) {
    const ssize_t count = recv(socket, bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    input.append({bytes.data(), static_cast<std::size_t>(count)});
    return true;
  }
}

std::optional<Value> next_value(FrameBuffer& input) {
  const auto frame = input.next();
  if (!frame) return std::nullopt;
  return unpack(Packed{std::string(*frame)});
}

// A worker's life: an answer for having begun, then one for each command.
int serve(int socket, const std::function<TrainerWorkers::Serve()>& begin) {
  FrameBuffer input;
  try {
    const TrainerWorkers::Serve answer = begin();
    if (!send_value(socket, {{"done", nullptr}})) return kToldToEnd;
    for (;;) {
      std::optional<Value> command;
      while (!(command = next_value(input))) {
        if (!receive_some(socket, input)) return kToldToEnd;
      }
      if (!send_value(socket, {{"done", answer(*command)}})) return kToldToEnd;
    }
  } catch (...) {
    const auto code = code_of_current_exception();
    const bool of_group = code == ErrorCode::kProcess;
    send_value(socket, {{of_group ? "group_error" : "error",
                         describe_current_exception().substr(0, kMaxMessageBytes)},
                        {"code", static_cast<int>(code.value_or(ErrorCode::kProcess))}});
    // The worker that caused it is to end first.
    if (of_group) std::this_thread::sleep_for(std::chrono::milliseconds(2 * kSettleMs));
    return kSaidItself;
  }
}

// Nothing when there is nothing to add to what a worker said itself.
std::string how_ended(const RankGroupEnd& end) {
  if (end.failure) {
    if (exit_code_of(end.failure->wait_status) == kSaidItself) return {};
    return "rank " + std::to_string(end.failure->rank) + " (pid " +
           std::to_string(end.failure->pid) + ") " + describe_exit(end.failure->wait_status) +
           " before it answered";
  }
  if (end.output_error != 0) {
    return std::string("the workers were ended, as what they print could not be passed on: ") +
           std::strerror(end.output_error);
  }
  return end.signal == 0 ? "" : "the workers were ended by " + signal_name(end.signal);
}

}  // namespace

struct TrainerWorkers::Connection {
  PrivateDescriptor socket;
  FrameBuffer input;
};

TrainerWorkers::TrainerWorkers(int workers, int threads, bool use_gpu,
                               const std::function<Serve()>& begin) {
  check_fit_to_fork("making a TorchTrainer");
  // Two ends of a connection to each, and as for any rank.
  expect_descriptors(5 * workers + 16, "starting " + std::to_string(workers) + " workers");
  std::vector<FileDescriptor> theirs;
  for (int i = 0; i < workers; ++i) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_to("making a socket");
    connections_.push_back({PrivateDescriptor(ends[0]), {}});
    theirs.emplace_back(ends[1]);
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_to("making a pipe");
  end_report_.reset(ends[0]);
  FileDescriptor report(ends[1]);
  ForkedRanks ranks{.place = {.local_ranks = workers, .threads = threads}, .use_gpu = use_gpu};
  const Listener listener = listen_at(ranks.place.master_address, 0);
  ranks.place.master_port = listener.port;
  ranks.rendezvous = listener.socket.get();
  const FileDescriptor memory = memory_of_ranks();
  ranks.memory = memory.get();

  const auto start = [&](int rank, int output, int errors) {
    return fork_rank(ranks, rank, output, errors, [&] {
      // A worker ends when the trainer's end of its socket is closed: nobody else may hold one.
      const FileDescriptor own = std::move(theirs[static_cast<std::size_t>(rank)]);
      theirs.clear();
      report.reset();
      return serve(own.get(), begin);
    });
  };
  keeper_ = std::make_unique<KeptProcess>([&](int alive) {
    std::string how;
    try {
      how = how_ended(run_rank_group({.ranks = workers,
                                      .first_rank = 0,
                                      .start = start,
                                      .good_code = kToldToEnd,
                                      .alive = alive}));
    } catch (const std::exception& error) {
      how = error.what();
    }
    [[maybe_unused]] const ssize_t written = write(report.get(), how.data(), how.size());
    return how.empty() ? 0 : 1;
  });
  theirs.clear();
  report.reset();
  answers();
}

TrainerWorkers::~TrainerWorkers() = default;

Value TrainerWorkers::call(const Value& command) {
  if (!keeper_) {
    throw Error(ErrorCode::kProcess, "the workers of this trainer have ended: make a new one");
  }
  // One that is gone is noticed by its missing answer.
  for (const Connection& connection : connections_) send_value(connection.socket.get(), command);
  return answers();
}

void TrainerWorkers::end() {
  connections_.clear();  // they end when nobody can command them
  if (keeper_) keeper_->wait();
  keeper_.reset();
}

Value TrainerWorkers::answers() {
  Value first;
  std::string echo;  // of what another worker did, which may be heard of a moment later
  std::vector<bool> answered(connections_.size());
  for (std::size_t left = connections_.size(); left > 0;) {
    std::vector<pollfd> watched;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      watched.push_back({answered[i] ? -1 : connections_[i].socket.get(), POLLIN, 0});
    }
    watched.push_back({keeper_->descriptor(), POLLIN, 0});
    const int ready = poll(watched.data(), watched.size(), echo.empty() ? -1 : kSettleMs);
    if (ready == 0) fail(echo);
    if (ready < 0) continue;  // a signal
    // Without the process that keeps them nobody would notice a worker's end. First what they said.
    const bool only_keeper = ready == 1 && watched.back().revents != 0;
    for (std::size_t rank = 0; rank < connections_.size(); ++rank) {
      if (watched[rank].revents == 0 && !only_keeper) continue;
      Connection& connection = connections_[rank];
      if (only_keeper || !receive_some(connection.socket.get(), connection.input)) {
        const std::string how = how_it_ended();
        fail(!how.empty() ? how : !echo.empty() ? echo : "the workers are gone");
      }
      const auto answer = next_value(connection.input);
      if (!answer) continue;
      if (const Value* error = answer->find("error")) {
        fail("rank " + std::to_string(rank) + ": " + error->string(),
             static_cast<ErrorCode>(answer->get<int>("code")));
      }
      if (const Value* error = answer->find("group_error"); error != nullptr && echo.empty()) {
        echo = "rank " + std::to_string(rank) + ": " + error->string();
      } else if (rank == 0 && error == nullptr) {
        first = answer->at("done");
      }
      answered[rank] = true;
      --left;
    }
  }
  if (!echo.empty()) fail(echo);
  return first;
}

void TrainerWorkers::fail(const std::string& message, ErrorCode code) {
  connections_.clear();
  keeper_.reset();
  throw Error(code, message);
}

// A worker that is gone without a word makes its keeper end the others.
std::string TrainerWorkers::how_it_ended() {
  pollfd watched = {keeper_->descriptor(), POLLIN, 0};
  int ready = 0;
  do ready = poll(&watched, 1, kGoneMs);
  while (ready < 0 && errno == EINTR);
  if (ready == 0) return "a worker closed its connection to the trainer";
  const int status = keeper_->wait();
  if (WIFSIGNALED(status)) {
    return "the process that looks after the workers was " + describe_exit(status);
  }
  std::string text(4096, '\0');
  const ssize_t count = read(end_report_.get(), text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  return text;
}

}  // namespace tune
