#include "trainables/png.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tune {

namespace {

// Of zlib.h; its ABI since 1995.
using CompressBound = unsigned long (*)(unsigned long);
using Compress = int (*)(unsigned char*, unsigned long*, const unsigned char*, unsigned long, int);
constexpr int kFastLevel = 1;

struct Zlib {
  CompressBound bound = nullptr;
  Compress compress = nullptr;
  Zlib() {
    void* library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    bound = reinterpret_cast<CompressBound>(dlsym(library, "compressBound"));
    compress = reinterpret_cast<Compress>(dlsym(library, "compress2"));
  }
};

void append_big(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

// CRC-32 of the PNG specification, section D.
std::uint32_t crc32_of(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> sums{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t sum = i;
      for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0u);
      sums[i] = sum;
    }
    return sums;
  }();
  std::uint32_t sum = 0xffffffffu;
  for (const char byte : bytes)
    sum = sum >> 8 ^ table[(sum ^ static_cast<unsigned char>(byte)) & 255];
  return ~sum;
}

std::uint32_t adler32_of(std::string_view bytes) {
  std::uint32_t low = 1, high = 0;
  for (const char byte : bytes) {
    low = (low + static_cast<unsigned char>(byte)) % 65521;
    high = (high + low) % 65521;
  }
  return high << 16 | low;
}

// Blocks that are not compressed.
std::string stored(std::string_view bytes) {
  constexpr std::size_t kBlock = 65535;
  std::string out = "\x78\x01";
  const std::uint32_t sum = adler32_of(bytes);
  do {
    const std::string_view block = bytes.substr(0, kBlock);
    bytes.remove_prefix(block.size());
    const auto size = static_cast<unsigned>(block.size());
    out += bytes.empty() ? '\1' : '\0';
    for (const unsigned word : {size, ~size}) {
      out += static_cast<char>(word);
      out += static_cast<char>(word >> 8);
    }
    out += block;
  } while (!bytes.empty());
  append_big(out, sum);
  return out;
}

std::string deflated(std::string_view bytes) {
  static const Zlib zlib;
  if (zlib.bound == nullptr || zlib.compress == nullptr) return stored(bytes);
  unsigned long size = zlib.bound(bytes.size());
  std::string out(size, '\0');
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  if (zlib.compress(to, &size, from, bytes.size(), kFastLevel) != 0) return stored(bytes);
  out.resize(size);
  return out;
}

void append_chunk(std::string& out, std::string_view kind, std::string_view content) {
  append_big(out, static_cast<std::uint32_t>(content.size()));
  const std::size_t begin = out.size();
  out += kind;
  out += content;
  append_big(out, crc32_of(std::string_view(out).substr(begin)));
}

}  // namespace

std::string png_of(std::uint32_t width, std::uint32_t height, std::uint32_t channels,
                   std::span<const std::uint8_t> pixels) {
  std::string head;
  append_big(head, width);
  append_big(head, height);
  head += '\x08';  // bits
  head += channels == 1 ? '\0' : channels == 3 ? '\2' : '\6';
  head.append(3, '\0');  // the usual compression and filters, not interlaced
  const std::size_t row_bytes = std::size_t{width} * channels;
  std::string rows;
  rows.reserve((row_bytes + 1) * height);
  for (std::uint32_t row = 0; row < height; ++row) {
    rows += '\0';  // no filter
    const auto bytes = pixels.subspan(row * row_bytes, row_bytes);
    rows.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::string out("\x89PNG\r\n\x1a\n", 8);
  append_chunk(out, "IHDR", head);
  append_chunk(out, "IDAT", deflated(rows));
  append_chunk(out, "IEND", {});
  return out;
}

}  // namespace tune
