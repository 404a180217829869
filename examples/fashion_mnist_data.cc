#include "fashion_mnist_data.h"

#include <tune/tune.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kImagesMagic = 2051;  // IDX: unsigned bytes in three dimensions
constexpr std::uint32_t kLabelsMagic = 2049;  // and in one
constexpr std::size_t kMaxImages = 1'000'000;
constexpr std::uint8_t kClasses = 10;

[[noreturn]] void fail(const fs::path& file, const std::string& cause) {
  throw tune::Error(tune::ErrorCode::kBadInput, "reading " + file.string() + ": " + cause);
}

class IdxFile {
 public:
  explicit IdxFile(const fs::path& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) {
      fail(path,
           "it cannot be opened: install the package dataset-fashion-mnist, or set "
           "TUNE_FASHION_MNIST_DIR to the folder of the four .gz files");
    }
    gzbuffer(file_.get(), 1 << 17);
  }

  std::uint32_t number() {
    std::array<std::uint8_t, 4> bytes{};
    read(bytes.data(), bytes.size());
    return std::uint32_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
  }

  std::vector<std::uint8_t> bytes(std::size_t size) {
    std::vector<std::uint8_t> bytes(size);
    read(bytes.data(), size);
    return bytes;
  }

  void expect(const std::string& what, std::uint32_t wanted) {
    const std::uint32_t found = number();
    if (found != wanted) {
      fail(path_, what + " is " + std::to_string(found) + " instead of " + std::to_string(wanted));
    }
  }

  std::size_t count() {
    const std::uint32_t count = number();
    if (count == 0 || count > kMaxImages) {
      fail(path_, "it claims " + std::to_string(count) + " entries");
    }
    return count;
  }

  void expect_end() {
    std::uint8_t byte = 0;
    if (gzread(file_.get(), &byte, 1) != 0) fail(path_, "it is longer than its header says");
  }

 private:
  void read(std::uint8_t* to, std::size_t size) {
    while (size > 0) {
      const int got = gzread(file_.get(), to, static_cast<unsigned>(std::min(size, kMaxImages)));
      if (got < 0) fail(path_, "it is not a sound gzip file");
      if (got == 0) fail(path_, "it ends too early");
      to += got;
      size -= static_cast<std::size_t>(got);
    }
  }

  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  fs::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

LabelledImages read_set(const std::string& name, std::size_t limit) {
  const fs::path images_path = fashion_mnist_directory() / (name + "-images-idx3-ubyte.gz");
  const fs::path labels_path = fashion_mnist_directory() / (name + "-labels-idx1-ubyte.gz");
  IdxFile images(images_path);
  images.expect("the magic number", kImagesMagic);
  const std::size_t all = images.count();
  images.expect("the number of rows", LabelledImages::kSide);
  images.expect("the number of columns", LabelledImages::kSide);

  IdxFile labels(labels_path);
  labels.expect("the magic number", kLabelsMagic);
  labels.expect("the number of labels", static_cast<std::uint32_t>(all));

  const std::size_t count = std::min(all, limit);
  LabelledImages set;
  set.pixels = images.bytes(count * LabelledImages::kSide * LabelledImages::kSide);
  set.labels = labels.bytes(count);
  if (count == all) {
    images.expect_end();
    labels.expect_end();
  }
  if (std::ranges::any_of(set.labels, [](std::uint8_t label) { return label >= kClasses; })) {
    fail(labels_path, "a label is not below " + std::to_string(kClasses));
  }
  return set;
}

}  // namespace

fs::path fashion_mnist_directory() {
  const char* directory = std::getenv("TUNE_FASHION_MNIST_DIR");
  return directory ? directory : "/usr/share/datasets/fashion-mnist";
}

LabelledImages fashion_mnist_training(std::size_t limit) {
  return read_set("train", limit);
}
LabelledImages fashion_mnist_test(std::size_t limit) {
  return read_set("t10k", limit);
}
