#include "trainables/torch/image_file.h"

// clang-format off: jpeglib.h wants FILE, jerror.h wants jpeglib.h.
#include <jerror.h>
#include <jpeglib.h>
#include <cstdio>
// clang-format on
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::uint8_t>;

std::vector<std::uint8_t> read_bytes(const fs::path& file) {
  std::error_code failure;
  const auto size = fs::file_size(file, failure);
  if (failure) {
    throw Error(ErrorCode::kIo, "reading image " + file.string() + ": " + failure.message());
  }
  if (size > static_cast<std::uintmax_t>(kMaxImageFileBytes)) {
    throw Error(ErrorCode::kBadInput, "reading image " + file.string() + ": it has " +
                                          std::to_string(size) + " bytes, at most " +
                                          std::to_string(kMaxImageFileBytes) + " are read");
  }
  std::vector<std::uint8_t> bytes(size);
  std::ifstream in(file, std::ios::binary);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!in) throw Error(ErrorCode::kIo, "cannot read image " + file.string());
  return bytes;
}

// Makes room for the pixels that a header claims. False when they are too many, which `cause` says.
bool make_room(Image& image, std::int64_t height, std::int64_t width, std::string& cause) {
  if (height < 1 || width < 1 || width > kMaxImagePixels / height) {
    cause = "its header claims " + std::to_string(width) + " x " + std::to_string(height) +
            " pixels, at most " + std::to_string(kMaxImagePixels) + " are read";
    return false;
  }
  image.height = height;
  image.width = width;
  image.pixels.resize(static_cast<std::size_t>(height * width * 3));
  return true;
}

// Both libraries report an error by a function that must not return, from C: it jumps to the
// setjmp in a `run` function below. Those hold nothing that a jump would leave undestroyed; what
// owns memory lives in the reader around them.

class JpegReader {
 public:
  JpegReader(const Bytes& bytes, Image& image) : image_(image) {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_.client_data = this;
    errors_.error_exit = [](j_common_ptr jpeg) {
      auto* reader = static_cast<JpegReader*>(jpeg->client_data);
      jpeg->err->format_message(jpeg, reader->message_);
      std::longjmp(reader->jump_, 1);
    };
    // Warnings are of small damage; that data is missing is none. Viewers show such a file's upper
    // part, to learn from it would be a mistake.
    errors_.emit_message = [](j_common_ptr jpeg, int level) {
      if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF) jpeg->err->error_exit(jpeg);
    };
    bytes_ = &bytes;
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // The cause of a failure, or nothing.
  std::string read() {
    if (!run_header()) return message_;
    if (jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK) {
      return "its colours are CMYK, which is for printing: convert it to RGB";
    }
    std::string cause;
    if (!make_room(image_, jpeg_.image_height, jpeg_.image_width, cause)) return cause;
    return run_pixels() ? "" : message_;
  }

 private:
  bool run_header() {
    if (setjmp(jump_) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_mem_src(&jpeg_, bytes_->data(), bytes_->size());
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }

  bool run_pixels() {
    if (setjmp(jump_) != 0) return false;
    jpeg_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = image_.pixels.data() + std::size_t{3} * jpeg_.output_scanline * image_.width;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  Image& image_;
  const Bytes* bytes_ = nullptr;
  jpeg_decompress_struct jpeg_ = {};
  jpeg_error_mgr errors_ = {};
  std::jmp_buf jump_ = {};
  char message_[JMSG_LENGTH_MAX] = "";
};

class PngReader {
 public:
  PngReader(const Bytes& bytes, Image& image)
      : image_(image), next_(bytes.data()), end_(bytes.data() + bytes.size()) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &PngReader::fail, &PngReader::warn);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // The cause of a failure, or nothing.
  std::string read() {
    if (info_ == nullptr) return "out of memory";
    if (!run_header()) return message_;
    std::string cause;
    const std::int64_t height = png_get_image_height(png_, info_);
    if (!make_room(image_, height, png_get_image_width(png_, info_), cause)) return cause;
    for (std::int64_t y = 0; y < height; ++y) {
      rows_.push_back(image_.pixels.data() + y * image_.width * 3);
    }
    return run_pixels() ? "" : message_;
  }

 private:
  static void fail(png_structp png, png_const_charp message) {
    auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(reader->message_, message, sizeof(reader->message_) - 1);
    png_longjmp(png, 1);
  }
  static void warn(png_structp, png_const_charp) {}
  static void give(png_structp png, png_bytep out, std::size_t size) {
    auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
    if (size > static_cast<std::size_t>(reader->end_ - reader->next_)) {
      png_error(png, "the file ends too early");
    }
    std::copy_n(reader->next_, size, out);
    reader->next_ += size;
  }

  bool run_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, &PngReader::give);
    png_read_info(png_, info_);
    return true;
  }

  bool run_pixels() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != static_cast<std::size_t>(image_.width) * 3) {
      png_error(png_, "it does not convert to RGB");
    }
    png_read_image(png_, rows_.data());
    png_read_end(png_, nullptr);
    return true;
  }

  Image& image_;
  const std::uint8_t* next_;
  const std::uint8_t* end_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<png_bytep> rows_;
  char message_[200] = "";
};

bool starts_with(const Bytes& bytes, std::initializer_list<std::uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

Image decoded(Bytes bytes, const std::string& name) {
  Image image;
  std::string cause = "it is neither a JPEG nor a PNG";
  if (starts_with(bytes, {0xff, 0xd8, 0xff})) {
    cause = JpegReader(bytes, image).read();
  } else if (starts_with(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'})) {
    cause = PngReader(bytes, image).read();
  }
  if (!cause.empty()) {
    throw Error(ErrorCode::kBadInput, "reading image " + name + ": " + cause);
  }
  return image;
}

}  // namespace

Image read_image(const fs::path& file) {
  return decoded(read_bytes(file), file.string());
}

Image read_image(std::string_view bytes, const std::string& name) {
  return decoded({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, name);
}

}  // namespace tune
