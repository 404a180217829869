#include "trainables/torch/group_backends.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <set>

#include "trainables/rank_failure.h"
#include "trainables/torch/cuda_part.h"
#include "core/platform/network_address.h"
#include "trainables/torch/torch_error.h"
#include "trainables/torch/watched_gloo.h"

namespace tune {
namespace {

using Gloo = c10d::ProcessGroupGloo;
using Group = c10d::ProcessGroup;

// Not Gloo's default: it takes the address of this host's name, which Debian's /etc/hosts says is
// 127.0.1.1, where no other host finds it.
std::shared_ptr<gloo::transport::Device> gloo_device(const Rendezvous& place) {
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) {
    return Gloo::createDeviceForInterface(interface);
  }
  if (place.address == "127.0.0.1" || place.address == "localhost") {
    return Gloo::createDeviceForHostname(place.address);
  }
  const std::string own = own_address_towards(place.address, place.port);
  return own.empty() ? Gloo::createDefaultDevice() : Gloo::createDeviceForHostname(own);
}

// Nobody can be told otherwise: what waits for the GPU may be any call of CUDA's.
[[noreturn]] void end_rank(const Rendezvous& place, std::chrono::milliseconds timeout) {
  std::fprintf(
      stderr,
      "rank %d of %d: a collective on its GPU has not ended within %.1f s: did another rank "
      "end, hang, or skip it? All ranks must call the same collectives in the same "
      "order. This rank ends itself\n",
      place.rank, place.size, std::chrono::duration<double>(timeout).count());
  std::fflush(stderr);
  std::abort();
}

}  // namespace

Nccl::~Nccl() {
  try {
    const bool failed = has_failed_ || has_rank_failed() || std::uncaught_exceptions() > 0;
    failed ? backend_->abort() : backend_->shutdown();
  } catch (const std::exception& error) {  // CUDA is broken: what broke it has been said
    std::fprintf(stderr, "ending the group: %s\n", cause_of(error).c_str());
  }
}

std::string nccl_device(const GroupOptions& options) {
  if (!options.device.is_cuda() || options.gloo_for_gpu) return {};
  return cuda_part().gpu_id(options.device.index());
}

bool can_speak_nccl(const std::vector<std::string>& devices) {
  const std::set<std::string> different(devices.begin(), devices.end());
  return different.size() == devices.size() && !different.contains("");
}

std::shared_ptr<Nccl> make_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                const Rendezvous& place, const GroupTimes& times) {
  const auto begun = [watch = times.watch, place,
                      timeout = times.timeout](std::function<bool()> is_over) {
    watch->begin([place, timeout] { end_rank(place, timeout); }, std::move(is_over));
  };
  return std::make_shared<Nccl>(
      cuda_part().make_nccl(c10::make_intrusive<c10d::PrefixStore>("nccl", store), place.rank,
                            place.size, times.longest, begun));
}

c10::intrusive_ptr<Group> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store,
                                          const Rendezvous& place, const GroupTimes& times) {
  const auto options = Gloo::Options::create(times.timeout);
  options->devices.push_back(gloo_device(place));
  auto gloo =
      c10::make_intrusive<WatchedGloo>(c10::make_intrusive<c10d::PrefixStore>("gloo", store),
                                       place.rank, place.size, options, times.watch);
  gloo->setTimeout(times.longest);
  auto group = c10::make_intrusive<Group>(store, place.rank, place.size);
  group->setBackend(c10::kCPU, Group::BackendType::GLOO, gloo);
  group->setDefaultBackend(Group::BackendType::GLOO);
  return group;
}

void add_gpu(Group& group, c10::Device device, const Nccl* nccl) {
  if (!device.is_cuda()) return;
  if (nccl == nullptr) {
    group.setBackend(c10::kCUDA, Group::BackendType::GLOO, group.getBackend(c10::kCPU));
    return;
  }
  group.setBoundDeviceId(device);
  group.setBackend(c10::kCUDA, Group::BackendType::NCCL, nccl->backend());
  group.setDefaultBackend(Group::BackendType::NCCL);
}

}  // namespace tune
