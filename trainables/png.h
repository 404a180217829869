// An image as a PNG file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tune {

// Rows from the top, pixels from the left, `channels` bytes each: 1 (grey), 3 (red, green, blue) or
// 4 (and opacity). The caller has checked that the sizes fit. Compressed where there is a zlib on
// the machine, which is loaded at the first call: most programs write no images.
std::string png_of(std::uint32_t width, std::uint32_t height, std::uint32_t channels,
                   std::span<const std::uint8_t> pixels);

}  // namespace tune
