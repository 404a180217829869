#include "core/platform/fingerprint.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "core/random.h"

namespace tune {

std::string fingerprint(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return {};
  // Plugins with debug information have hundreds of megabytes: eight bytes at a time.
  std::uint64_t hash = hash64("");
  std::vector<std::uint64_t> block(1u << 13);
  const std::streamsize bytes = std::ssize(block) * 8;
  while (std::fill(block.begin(), block.end(), 0),
         stream.read(reinterpret_cast<char*>(block.data()), bytes), stream.gcount() > 0) {
    for (const std::uint64_t word : block) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 32;
    }
    hash += static_cast<std::uint64_t>(stream.gcount());
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace tune
