// Where there is no libFuzzer: gives a target every file of its corpus, whole and cut short.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/check.h"

namespace {

constexpr std::size_t kMaxCuts = 64;

void give(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int count, char** arguments) {
  int files = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string input(std::istreambuf_iterator<char>(file), {});
      give(input);
      const std::size_t stride = input.size() / kMaxCuts + 1;
      for (std::size_t size = 0; size < input.size(); size += stride) give(input.substr(0, size));
      ++files;
    }
  }
  tune::fuzz::require(files > 0, "no corpus: name its folder");
  std::printf("%d files\n", files);
  return 0;
}
