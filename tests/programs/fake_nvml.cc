// Stands for libnvidia-ml.so.1 with as many GPUs as FAKE_GPUS says, each of them split into as many
// MIG instances as FAKE_MIG says.
#include <cstdio>
#include <cstdlib>

namespace {

constexpr unsigned long kInstance = 1000;  // a handle: GPU 2's third instance is 2003

unsigned number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 0;
}

}  // namespace

extern "C" {

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int nvmlInit_v2() {
  return 0;
}
EXPORTED int nvmlShutdown() {
  return 0;
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = number_of("FAKE_GPUS");
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<unsigned long>(index + 1));
  return 0;
}
EXPORTED int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  const auto handle = reinterpret_cast<unsigned long>(device);
  if (handle < kInstance) {
    std::snprintf(text, size, "GPU-%lu", handle);
  } else {
    std::snprintf(text, size, "MIG-%lu-%lu", handle / kInstance, handle % kInstance);
  }
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByUUID(const char* text, void** device) {
  unsigned long number = 0;
  if (std::sscanf(text, "GPU-%lu", &number) != 1) return 6;
  *device = reinterpret_cast<void*>(number);
  return 0;
}
struct FakeMemory {
  unsigned long long total, free, used;
};
EXPORTED int nvmlDeviceGetMemoryInfo(void*, FakeMemory* memory) {
  *memory = {80ull << 30, 60ull << 30, 20ull << 30};
  return 0;
}
struct FakeUtilization {
  unsigned gpu, memory;
};
EXPORTED int nvmlDeviceGetUtilizationRates(void*, FakeUtilization* percent) {
  *percent = {93, 40};
  return 0;
}
EXPORTED int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = number_of("FAKE_MIG") > 0 ? 1 : 0;
  return 0;
}
EXPORTED int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;  // as many as fit, not as there are
  return 0;
}
EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** instance) {
  if (index >= number_of("FAKE_MIG")) return 6;  // not found
  *instance =
      reinterpret_cast<void*>(reinterpret_cast<unsigned long>(device) * kInstance + index + 1);
  return 0;
}
}
