// The part that is linked with CUDA and NCCL; see trainables/torch/cuda_part.h.
#include "trainables/torch/cuda_part.h"

#include <nccl.h>
#include <torch/cuda.h>

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <typeinfo>
#include <utility>
#include <vector>

#include "trainables/torch/nccl_version.h"

namespace tune {
namespace {

#ifdef TUNE_NCCL_VERSION_CODE
static_assert(NCCL_VERSION_CODE == TUNE_NCCL_VERSION_CODE,
              "nccl.h is not of the version that LibTorch was built with");
#endif

bool was_asked_too_early() {
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  return typeid(hooks) == typeid(at::CUDAHooksInterface);
}

std::string complaint() {
  if (c10::cuda::device_count() == 0) return "CUDA finds none";
  return nccl_complaint(NcclVersion::unpacked(torch::cuda::nccl::version()),
                        {NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH});
}

std::string use_device(int index) {
  const int gpus = c10::cuda::device_count();
  if (index >= gpus) {
    return "CUDA finds " + std::to_string(gpus) + ", and none of the index " +
           std::to_string(index);
  }
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
  return {};
}

std::string gpu_id(int index) {
  const auto& id = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index))->uuid;
  return std::string(id.bytes, sizeof id.bytes);
}

using Begun = std::function<void(std::function<bool()> is_over)>;

// Tells of one collective after the other. NCCL ends them in their order: while one is not over, no
// later one is, so that it is enough to know of one, whose tensors are then kept for a while.
class WatchedNccl : public c10d::ProcessGroupNCCL {
 public:
  WatchedNccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
              c10::intrusive_ptr<Options> options, Begun begun)
      : ProcessGroupNCCL(store, rank, size, std::move(options)), begun_(std::move(begun)) {}

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& how) override {
    return watched([&] { return ProcessGroupNCCL::broadcast(tensors, how); });
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& how) override {
    return watched([&] { return ProcessGroupNCCL::allreduce(tensors, how); });
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& how) override {
    return watched([&] { return ProcessGroupNCCL::allgather(outputs, inputs, how); });
  }
  WorkPtr barrier(const c10d::BarrierOptions& how) override {
    return watched([&] { return ProcessGroupNCCL::barrier(how); });
  }
  WorkPtr send(Tensors& tensors, int to, int tag) override {
    return watched([&] { return ProcessGroupNCCL::send(tensors, to, tag); });
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    return watched([&] { return ProcessGroupNCCL::recv(tensors, from, tag); });
  }

 private:
  // A collective that is played again within a CUDA graph is one that nobody watches: it would wait
  // for a rank that has ended for ever.
  template <class Begin>
  WorkPtr watched(Begin&& begin) {
    if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None) {
      throw std::runtime_error("a collective was called while a CUDA graph is recorded");
    }
    WorkPtr work = begin();
    if (work && !is_watched_->exchange(true)) {
      begun_([work, is_watched = is_watched_] {
        if (!work->isCompleted()) return false;
        *is_watched = false;
        return true;
      });
    }
    return work;
  }

  Begun begun_;
  std::shared_ptr<std::atomic<bool>> is_watched_ = std::make_shared<std::atomic<bool>>(false);
};

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size, std::chrono::milliseconds timeout,
                                            const Begun& begun) {
  // Else a collective that is out of time is given more, to write down what for.
  ::setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", 0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<WatchedNccl>(store, rank, size, std::move(options), begun);
}

void seed(std::uint64_t seed) {
  for (c10::DeviceIndex index = 0; index < c10::cuda::device_count(); ++index) {
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(index);
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

at::Generator generator() {
  return at::cuda::detail::getDefaultCUDAGenerator();
}

void limit_memory(double part) {
  at::globalContext().lazyInitDevice(c10::kCUDA);  // makes the allocator
  c10::cuda::CUDACachingAllocator::setMemoryFraction(part, c10::cuda::current_device());
}

void give_back_memory() {
  c10::cuda::CUDACachingAllocator::emptyCache();
}

std::vector<at::Tensor> copied_beside(const std::vector<at::Tensor>& tensors) {
  namespace cuda = c10::cuda;
  const c10::Device device(c10::kCUDA, cuda::current_device());
  static const cuda::CUDAStream side =
      cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
  const cuda::CUDAStream main = cuda::getCurrentCUDAStream();
  std::vector<at::Tensor> copies;
  {
    const cuda::CUDAStreamGuard on_side(side);
    for (const at::Tensor& tensor : tensors) {
      copies.push_back(tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true));
    }
  }
  at::cuda::CUDAEvent all_copied;
  all_copied.record(side);
  all_copied.block(main);
  // Their memory is the side stream's: it is not used again before the other is done with it.
  for (const at::Tensor& copy : copies) {
    cuda::CUDACachingAllocator::recordStream(copy.storage().data_ptr(), main);
  }
  return copies;
}

void let_wait(const c10::cuda::CUDAStream& second, const c10::cuda::CUDAStream& first) {
  at::cuda::CUDAEvent event;
  event.record(first);
  event.block(second);
}

class CudaGraph : public DeviceGraph {
 public:
  void beside(const std::function<void()>& work) override {
    const c10::cuda::CUDAStream main = c10::cuda::getCurrentCUDAStream();
    let_wait(side_, main);
    {
      const c10::cuda::CUDAStreamGuard on_side(side_);
      work();
    }
    let_wait(main, side_);
  }

  void record(const std::function<void()>& work) override {
    graph_.reset();  // its memory first
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    graph_ = std::make_unique<at::cuda::CUDAGraph>();
    // The work of other threads meanwhile (pinned memory of a loader, NCCL's watch) is their own.
    graph_->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      end_failed();
      throw;
    }
    graph_->capture_end();
  }

  void replay() override { graph_->replay(); }

 private:
  // The stream leaves the recording; that it fails is known.
  void end_failed() {
    try {
      graph_->capture_end();
    } catch (const std::exception&) {
    }
    graph_.reset();
  }

  c10::cuda::CUDAStream side_ = c10::cuda::getStreamFromPool();
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

std::unique_ptr<DeviceGraph> make_graph() {
  return std::make_unique<CudaGraph>();
}

}  // namespace
}  // namespace tune

extern "C" __attribute__((visibility("default"))) void tune_cuda_part(tune::CudaPart* part) {
  *part = {tune::was_asked_too_early, tune::complaint,     tune::use_device, tune::gpu_id,
           tune::make_nccl,           tune::seed,          tune::generator,  tune::limit_memory,
           tune::give_back_memory,    tune::copied_beside, tune::make_graph};
}
