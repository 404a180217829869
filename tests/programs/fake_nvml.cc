// Stands for libnvidia-ml.so.1 with as many GPUs as FAKE_GPUS says.
#include <cstdio>
#include <cstdlib>

extern "C" {

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int nvmlInit_v2() {
  return 0;
}
EXPORTED int nvmlShutdown() {
  return 0;
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  const char* gpus = std::getenv("FAKE_GPUS");
  *count = gpus != nullptr ? static_cast<unsigned>(std::atoi(gpus)) : 0;
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<unsigned long>(index + 1));
  return 0;
}
EXPORTED int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%lu", reinterpret_cast<unsigned long>(device));
  return 0;
}
}
