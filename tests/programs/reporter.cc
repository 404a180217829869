// A training program that knows of tune by one header only: it counts, saves and goes on.
#define TUNE_REPORT_IMPLEMENTATION
#include "trainables/command/tune_report.h"

#include <cstdio>
#include <string>

namespace {

int save(const char* directory, void* user) {
  std::FILE* file = std::fopen((std::string(directory) + "/n").c_str(), "w");
  if (file == nullptr) return 1;
  std::fprintf(file, "%d\n", *static_cast<int*>(user));
  return std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  const double scale = argc > 1 ? std::stod(argv[1]) : 1;
  int n = 0;
  tune_begin(save, &n);
  if (const char* folder = tune_checkpoint()) {
    std::FILE* file = std::fopen((std::string(folder) + "/n").c_str(), "r");
    if (file == nullptr || std::fscanf(file, "%d", &n) != 1) return 2;
    std::fclose(file);
    std::printf("from %d\n", n);
  }
  const char* names[] = {"loss", "odd \"name\"", "none"};
  bool more = true;
  while (more && n < 9) {
    ++n;
    const double values[] = {scale / n, 1e300 * n, 0.0 / 0.0};
    more = tune_report_numbers(3, names, values) == 1;
  }
  std::printf("%s after %d\n", more ? "done" : "stopped", n);
  return 0;
}
