#include "fashion_mnist_data.h"

#include <zlib.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "/usr/share/datasets/fashion-mnist";
constexpr std::uint32_t kImageMagic = 2051;  // IDX: unsigned bytes, 3 dimensions
constexpr std::uint32_t kLabelMagic = 2049;  // IDX: unsigned bytes, 1 dimension
constexpr std::int64_t kSide = 28;
constexpr float kMean = 0.2860f;  // of the training set's pixels, 0 to 1
constexpr float kDeviation = 0.3530f;

class GzFile {
 public:
  explicit GzFile(const fs::path& path) : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (file_) return;
    throw std::runtime_error("reading Fashion-MNIST: there is no " + path.string() +
                             ": install the package dataset-fashion-mnist, or set "
                             "TUNE_FASHION_MNIST_DIR to a folder with its .gz files");
  }
  void read(void* target, std::size_t bytes) {
    const int count = gzread(file_.get(), target, static_cast<unsigned>(bytes));
    if (count < 0 || static_cast<std::size_t>(count) != bytes) {
      throw std::runtime_error("reading " + path_.string() + ": it is damaged or too short");
    }
  }
  std::uint32_t number() {  // big-endian
    std::array<unsigned char, 4> b{};
    read(b.data(), b.size());
    return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
  }
  void expect(std::uint32_t wanted, const char* what) {
    if (const std::uint32_t found = number(); found != wanted) {
      throw std::runtime_error("reading " + path_.string() + ": its " + what + " is " +
                               std::to_string(found) + ", not " + std::to_string(wanted));
    }
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

fs::path file_of(Part part, const char* kind) {
  const char* folder = std::getenv("TUNE_FASHION_MNIST_DIR");
  const std::string name = part == Part::kTrain ? "train" : "t10k";
  return fs::path(folder != nullptr ? folder : kFolder) / (name + "-" + kind + "-ubyte.gz");
}

void check_count(GzFile& file, std::int64_t count) {
  if (const std::uint32_t there = file.number(); there < count) {
    throw std::runtime_error("reading " + file.path().string() + ": " + std::to_string(count) +
                             " images are wanted, it holds " + std::to_string(there));
  }
}

}  // namespace

Images load_fashion_mnist(Part part, std::int64_t count) {
  if (count < 1) throw std::runtime_error("Fashion-MNIST: ask for at least one image");
  GzFile images(file_of(part, "images-idx3"));
  images.expect(kImageMagic, "first number");
  check_count(images, count);
  images.expect(kSide, "height");
  images.expect(kSide, "width");
  const auto pixels = torch::empty({count, 1, kSide, kSide}, torch::kUInt8);
  images.read(pixels.data_ptr<std::uint8_t>(), static_cast<std::size_t>(pixels.numel()));

  GzFile labels(file_of(part, "labels-idx1"));
  labels.expect(kLabelMagic, "first number");
  check_count(labels, count);
  const auto classes = torch::empty({count}, torch::kUInt8);
  labels.read(classes.data_ptr<std::uint8_t>(), static_cast<std::size_t>(count));

  return {(pixels.to(torch::kFloat32) / 255 - kMean) / kDeviation, classes.to(torch::kInt64)};
}
