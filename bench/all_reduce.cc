// The cost of an all_reduce between two ranks of this host through shared memory, beside Gloo's.
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "bench/harness.h"
#include "bench/torch_ranks.h"
#include "trainables/torch/group_backends.h"

namespace tune::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Group = c10d::ProcessGroup;
using std::chrono_literals::operator""s;

constexpr const char* kHelp =
    "Times all_reduces of floats between two ranks, of one thread each, through shared memory and\n"
    "by Gloo, taking turns.\n\n"
    "bench_all_reduce [--tiny] [--runs N]";

struct Load {
  const char* name;
  std::int64_t bytes;
  int times;
};

double microseconds(Group& group, const Load& load, at::Tensor tensor) {
  std::vector<at::Tensor> tensors{tensor.zero_()};
  std::vector<double> times;
  for (int i = 0; i < load.times; ++i) {
    group.barrier()->wait();
    const auto began = SteadyClock::now();
    group.allreduce(tensors)->wait();
    times.push_back(std::chrono::duration<double, std::micro>(SteadyClock::now() - began).count());
  }
  std::ranges::nth_element(times, times.begin() + load.times / 2);
  return times[static_cast<std::size_t>(load.times / 2)];
}

c10::intrusive_ptr<Group> gloo_beside(const ProcessGroup& group) {
  Rendezvous place;
  place.rank = group.rank();
  place.size = group.size();
  const GroupTimes times{30s, 30s, std::make_shared<GroupWatch>([] { return false; }, 30s)};
  return make_gloo_group(c10::make_intrusive<c10d::PrefixStore>("gloo", group.c10d()->getStore()),
                         place, times);
}

double time_both(const Rendezvous& place, const Setting& setting) {
  GroupOptions options;
  options.gloo_for_cpu = false;
  ProcessGroup group(place, options);
  const auto gloo = gloo_beside(group);
  const Load loads[] = {{"1 KB", 1 << 10, setting.tiny ? 3 : 2000},
                        {"1 MB", 1 << 20, setting.tiny ? 3 : 200},
                        {"47 MB", 47 << 20, setting.tiny ? 1 : 11}};
  for (const Load& load : loads) {
    const at::Tensor tensor = at::zeros({load.bytes / 4});
    const at::Tensor bucket =
        group.c10d()->getDefaultBackend()->allocateTensor(load.bytes / 4, at::kFloat);
    const auto times = medians(
        setting.runs, {[&] { return microseconds(*group.c10d(), load, tensor); },
                       [&] { return microseconds(*group.c10d(), load, bucket); },
                       [&] { return microseconds(*gloo, load, tensor); }});
    const double mine = times[0], own = times[1], other = times[2];
    if (place.rank == 0) {
      std::printf("all_reduce of %-5s  %10.1f us   of DDP's memory %10.1f us   Gloo %10.1f us   "
                  "%.3f and %.3f of it\n",
                  load.name, mine, own, other, mine / other, own / other);
      std::fflush(stdout);
    }
  }
  gloo->barrier()->wait();
  group.barrier();
  return 0;
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 5);
  be_like_a_zygote();
  return guarded([&] {
    in_two_ranks([&](const tune::Rendezvous& place) { return time_both(place, setting); });
  });
}
