// JPEG and PNG files as pixels. Free of torch; image_folder.h makes tensors of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

// Bounds on what one file may make us hold: a header can claim any size.
inline constexpr std::int64_t kMaxImagePixels = std::int64_t{1} << 26;
inline constexpr std::int64_t kMaxImageFileBytes = std::int64_t{1} << 28;

struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  // height x width x 3: red, green, blue
};

// The first bytes tell the kind of file, not its name. Pixels are as torchvision's loader has them:
// grey is repeated for the three colours, alpha is left out (not blended), palettes are looked up,
// and EXIF's orientation is not heeded. Of 16 bits the upper 8 are taken, for grey too.
//
// Throws Error, which names the file: kIo when it cannot be read; kBadInput when it is not a JPEG
// or PNG, is broken or cut off, is a JPEG in CMYK (or YCCK), or is beyond the bounds.
Image read_image(const std::filesystem::path& file);
// The same of a file's bytes; `name` is for the words of errors.
Image read_image(std::string_view bytes, const std::string& name);

}  // namespace tune
