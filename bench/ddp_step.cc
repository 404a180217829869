// The cost of training on two ranks: a step of a small model by DistributedDataParallel over Gloo,
// beside Python's class of that name with the same LibTorch (bench/ddp_step.py), and the time from
// fork to the first finished all_reduce.
#include <ATen/Parallel.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/beside_python.h"
#include "bench/harness.h"
#include "core/error.h"
#include "trainables/torch/distributed_data_parallel.h"
#include "trainables/torch/process_group.h"

namespace tune::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
namespace nn = torch::nn;

constexpr const char* kHelp =
    "Times two ranks on CPUs, of one thread each, by Gloo. Beside them, taking turns, Python's "
    "DDP, if\n"
    "TUNE_BENCH_PYTHON names a Python that has torch.\n\n"
    "bench_ddp_step [--tiny] [--runs N]";

constexpr int kRanks = 2;
constexpr int kBatch = 64;

double milliseconds_since(SteadyClock::time_point began) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - began).count();
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kProcess, what + ": " + std::strerror(errno));
}

// As the agent does it for a trial.
int listen_on_loopback(int& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0) fail("bind");
  if (::listen(socket, kRanks) != 0) fail("listen");
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return socket;
}

// Runs the function in two forked ranks; returns the value of rank 0.
double in_ranks(const std::function<double(const Rendezvous&)>& function) {
  Rendezvous place;
  place.size = kRanks;
  const int socket = listen_on_loopback(place.port);
  int pipe[2];
  if (::pipe(pipe) != 0) fail("pipe");
  std::vector<pid_t> ranks;
  for (place.rank = 0; place.rank < kRanks; ++place.rank) {
    const pid_t pid = ::fork();
    if (pid != 0) {
      ranks.push_back(pid);
      continue;
    }
    if (place.rank == 0) place.listening_socket = socket;
    if (place.rank != 0) ::close(socket);
    at::set_num_threads(1);
    const double value = function(place);
    if (place.rank == 0 && ::write(pipe[1], &value, sizeof value) != sizeof value) ::_exit(1);
    ::_exit(0);
  }
  ::close(socket);
  ::close(pipe[1]);
  double value = -1;
  const bool whole = ::read(pipe[0], &value, sizeof value) == sizeof value;
  ::close(pipe[0]);
  for (const pid_t pid : ranks) ::waitpid(pid, nullptr, 0);
  if (!whole) throw Error(ErrorCode::kProcess, "a rank failed");
  return value;
}

double first_all_reduce() {
  const auto began = SteadyClock::now();
  return in_ranks([&](const Rendezvous& place) {
    ProcessGroup group(place);
    group.all_reduce(torch::ones({1}));
    const double ms = milliseconds_since(began);
    group.barrier();
    return ms;
  });
}

// Milliseconds a step. The same as bench/ddp_step.py does.
double train(const Rendezvous& place, int steps) {
  ProcessGroup group(place);
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(64, 256), nn::ReLU(), nn::Linear(256, 256), nn::ReLU(),
                     nn::Linear(256, 10));
  DistributedDataParallel model(net, group);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const torch::Tensor x = torch::randn({kBatch, 64});
  const torch::Tensor y = torch::randint(10, {kBatch}, torch::kLong);
  const double ms = milliseconds_a_step(steps, [&] {
    model.zero_grad();
    model.backward(torch::cross_entropy_loss(model.forward(x), y));
    optimizer.step();
  });
  group.barrier();
  return ms;
}

void measure(const Setting& setting) {
  const int steps = setting.tiny ? 5 : 500;
  const int starts = setting.tiny ? 1 : 20;
  const auto step = [&] {
    return in_ranks([&](const auto& place) { return train(place, steps); });
  };
  const auto python = [&] { return python_milliseconds("ddp_step.py", std::to_string(steps)); };
  const double start_ms = medians(setting.runs * starts, {first_all_reduce}).front();
  const BesidePython times = beside_python(setting.runs, step, python);
  std::printf("fork to the first all_reduce  %7.2f ms\n", start_ms);
  std::printf("a step of 64-256-256-10, 64   %7.3f ms   %s\n", times.ours,
              summary(times, "Python's DDP").c_str());
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 7);
  return guarded([&] { measure(setting); });
}
