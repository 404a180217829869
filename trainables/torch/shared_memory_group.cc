#include "trainables/torch/shared_memory_group.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tune {

using shared_memory::Segment;
using shared_memory::Way;

namespace {

Way wanted_way(const GroupOptions& options) {
  if (options.gloo_for_cpu) return Way::kOther;
  if (options.device.is_cpu()) return Way::kShared;
  return options.gloo_for_gpu ? Way::kOther : Way::kSharedBesideGpu;
}

}  // namespace

std::unique_ptr<shared_memory::RankMemory> join_memory(const Rendezvous& place,
                                                       const GroupOptions& options) {
  if (!place.shared_memory) return nullptr;
  try {
    auto segment =
        std::make_shared<Segment>(FileDescriptor(*place.shared_memory), place.rank, place.size);
    auto memory = std::make_unique<shared_memory::RankMemory>(std::move(segment), 0);
    memory->arrive(wanted_way(options));
    return memory;
  } catch (const Error&) {
    return nullptr;  // the group speaks Gloo then
  }
}

bool can_share(const shared_memory::RankMemory& memory, bool speaks_nccl) {
  const Way wanted = speaks_nccl ? Way::kSharedBesideGpu : Way::kShared;
  for (int rank = 0; rank < memory.size(); ++rank) {
    if (memory.way_of(rank) != wanted) return false;
  }
  return true;
}

c10::intrusive_ptr<SharedMemoryBackend> speak_through(
    std::unique_ptr<shared_memory::RankMemory> memory, const shared_memory::Patience& patience) {
  memory->segment()->watch(*memory);
  return c10::make_intrusive<SharedMemoryBackend>(std::move(memory), patience);
}

c10::intrusive_ptr<c10d::ProcessGroup> make_shared_memory_group(
    const c10::intrusive_ptr<c10d::Store>& store, const Rendezvous& place,
    const c10::intrusive_ptr<SharedMemoryBackend>& shared) {
  using Group = c10d::ProcessGroup;
  auto group = c10::make_intrusive<Group>(store, place.rank, place.size);
  group->setBackend(c10::kCPU, Group::BackendType::CUSTOM, shared);
  group->setDefaultBackend(Group::BackendType::CUSTOM);
  return group;
}

std::unique_ptr<shared_memory::RankMemory> next_memory(SharedMemoryBackend& shared) {
  const std::shared_ptr<Segment> segment = shared.memory().segment();
  std::vector<at::Tensor> region{at::zeros({1}, at::kLong)};
  if (segment->rank() == 0) region[0].fill_(static_cast<std::int64_t>(segment->take_region()));
  shared.broadcast(region, {.asyncOp = false})->wait();
  auto memory = std::make_unique<shared_memory::RankMemory>(
      segment, static_cast<std::uint32_t>(region[0].item<std::int64_t>()));
  memory->arrive(shared.memory().way_of(segment->rank()));
  // All are here for sure when each has heard of each.
  c10d::BarrierOptions how;
  how.asyncOp = false;
  shared.barrier(how)->wait();
  return memory;
}

bool is_of_different_calls(const std::exception& error) {
  return dynamic_cast<const DifferentCalls*>(&error) != nullptr;
}

}  // namespace tune
