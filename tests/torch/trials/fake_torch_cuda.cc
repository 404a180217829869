// Stands for LibTorch's CUDA part, cuDNN and a part of that, each by its NAME: tells the file
// FAKE_CUDA_OPENED which process opens it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

__attribute__((constructor)) static void tell() {
  const char* file = std::getenv("FAKE_CUDA_OPENED");
  if (file == nullptr) return;
  if (std::FILE* out = std::fopen(file, "a")) {
    std::fprintf(out, NAME " %d\n", static_cast<int>(::getpid()));
    std::fclose(out);
  }
}
