#include "core/platform/nvml.h"

#include <dlfcn.h>

namespace tune {

namespace {

// The few declarations of nvml.h that are needed; the ABI is stable (NVML API reference).
using Device = void*;
struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {  // percent
  unsigned gpu, memory;
};
constexpr int kSuccess = 0;
constexpr unsigned kNameBytes = 96;

class NvmlLibrary {
 public:
  NvmlLibrary() : handle_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) return;
    init_ = load<int()>("nvmlInit_v2");
    shutdown_ = load<int()>("nvmlShutdown");
    ready_ = init_ != nullptr && shutdown_ != nullptr && init_() == kSuccess;
  }
  ~NvmlLibrary() {
    if (ready_) shutdown_();
    if (handle_ != nullptr) dlclose(handle_);
  }
  NvmlLibrary(const NvmlLibrary&) = delete;

  bool is_ready() const { return ready_; }
  template <class Signature>
  Signature* load(const char* name) const {
    if (handle_ == nullptr) return nullptr;
    return reinterpret_cast<Signature*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  bool ready_ = false;
};

std::vector<std::string> mig_instances(const NvmlLibrary& nvml, Device device) {
  std::vector<std::string> ids;
  const auto mode = nvml.load<int(Device, unsigned*, unsigned*)>("nvmlDeviceGetMigMode");
  const auto count = nvml.load<int(Device, unsigned*)>("nvmlDeviceGetMaxMigDeviceCount");
  const auto at = nvml.load<int(Device, unsigned, Device*)>("nvmlDeviceGetMigDeviceHandleByIndex");
  const auto uuid = nvml.load<int(Device, char*, unsigned)>("nvmlDeviceGetUUID");
  unsigned current = 0, pending = 0, most = 0;
  if (!mode || !count || !at || !uuid) return ids;
  if (mode(device, &current, &pending) != kSuccess || current == 0) return ids;
  if (count(device, &most) != kSuccess) return ids;
  for (unsigned i = 0; i < most; ++i) {
    Device instance = nullptr;
    char text[kNameBytes] = {};
    if (at(device, i, &instance) == kSuccess && uuid(instance, text, sizeof text) == kSuccess) {
      ids.emplace_back(text);
    }
  }
  return ids;
}

}  // namespace

std::vector<PhysicalGpu> list_gpus() {
  std::vector<PhysicalGpu> gpus;
  const NvmlLibrary nvml;
  if (!nvml.is_ready()) return gpus;
  const auto count = nvml.load<int(unsigned*)>("nvmlDeviceGetCount_v2");
  const auto at = nvml.load<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
  const auto uuid = nvml.load<int(Device, char*, unsigned)>("nvmlDeviceGetUUID");
  const auto name = nvml.load<int(Device, char*, unsigned)>("nvmlDeviceGetName");
  const auto memory = nvml.load<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
  unsigned total = 0;
  if (!count || !at || !uuid || count(&total) != kSuccess) return gpus;
  for (unsigned i = 0; i < total; ++i) {
    Device device = nullptr;
    char text[kNameBytes] = {};
    if (at(i, &device) != kSuccess || uuid(device, text, sizeof text) != kSuccess) continue;
    PhysicalGpu gpu;
    gpu.uuid = text;
    char label[kNameBytes] = {};
    if (name && name(device, label, sizeof label) == kSuccess) gpu.name = label;
    Memory bytes{};
    if (memory && memory(device, &bytes) == kSuccess) {
      gpu.memory_bytes = static_cast<std::int64_t>(bytes.total);
    }
    gpu.mig = mig_instances(nvml, device);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

class GpuMeter::Inside {
 public:
  std::optional<GpuLoad> read(const std::string& uuid) const {
    Device device = nullptr;
    Memory bytes{};
    if (!nvml_.is_ready() || find_ == nullptr || memory_ == nullptr) return std::nullopt;
    if (find_(uuid.c_str(), &device) != kSuccess) return std::nullopt;
    if (memory_(device, &bytes) != kSuccess) return std::nullopt;
    GpuLoad load{std::nullopt, static_cast<std::int64_t>(bytes.used)};
    Utilization percent{};
    if (use_ != nullptr && use_(device, &percent) == kSuccess) load.busy = percent.gpu / 100.0;
    return load;
  }

 private:
  NvmlLibrary nvml_;
  int (*find_)(const char*,
               Device*) = nvml_.load<int(const char*, Device*)>("nvmlDeviceGetHandleByUUID");
  int (*memory_)(Device, Memory*) = nvml_.load<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
  int (*use_)(Device, Utilization*) =
      nvml_.load<int(Device, Utilization*)>("nvmlDeviceGetUtilizationRates");
};

GpuMeter::GpuMeter() = default;
GpuMeter::~GpuMeter() = default;

std::optional<GpuLoad> GpuMeter::read(const std::string& uuid) {
  if (!inside_) inside_ = std::make_unique<Inside>();
  return inside_->read(uuid);
}

}  // namespace tune
