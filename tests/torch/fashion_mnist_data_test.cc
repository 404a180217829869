#include "fashion_mnist_data.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>

#include "core/refusal.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

// A folder to read from instead of the installed one. The files are plain, which zlib reads as
// well.
class DataFolder {
 public:
  DataFolder() {
    ::setenv("TUNE_FASHION_MNIST_DIR", folder_.path().c_str(), 1);
    write_images(2051, 3, 28, std::string(3 * 28 * 28, '\1'));
    write_labels(2049, 3, std::string("\0\5\11", 3));
  }
  ~DataFolder() { ::unsetenv("TUNE_FASHION_MNIST_DIR"); }

  void write_images(std::uint32_t magic, std::uint32_t count, std::uint32_t side,
                    const std::string& data) const {
    write("t10k-images-idx3-ubyte.gz",
          number(magic) + number(count) + number(side) + number(side) + data);
  }
  void write_labels(std::uint32_t magic, std::uint32_t count, const std::string& data) const {
    write("t10k-labels-idx1-ubyte.gz", number(magic) + number(count) + data);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }

 private:
  static std::string number(std::uint32_t value) {
    return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
            static_cast<char>(value >> 8), static_cast<char>(value)};
  }
  testing::TemporaryFolder folder_;
};

std::string refusal() {
  return testing::refusal([] { fashion_mnist_test(); });
}

TEST_CASE("the installed data has ten classes of equal size") {
  const LabelledImages test = fashion_mnist_test();
  REQUIRE(test.count() == 10'000);
  CHECK(test.pixels.size() == 10'000u * 28 * 28);
  std::vector<int> sizes(10);
  for (const std::uint8_t label : test.labels) ++sizes.at(label);
  CHECK(sizes == std::vector<int>(10, 1000));
  const double sum = std::accumulate(test.pixels.begin(), test.pixels.end(), 0.0);
  CHECK(sum / static_cast<double>(test.pixels.size()) / 255 ==
        doctest::Approx(0.287).epsilon(0.01));

  const LabelledImages few = fashion_mnist_training(100);
  CHECK(few.count() == 100);
  CHECK(few.pixels.size() == 100u * 28 * 28);
}

TEST_CASE("sound files are read, a limit reads less") {
  const DataFolder folder;
  CHECK(fashion_mnist_test().labels == std::vector<std::uint8_t>{0, 5, 9});
  CHECK(fashion_mnist_test(2).count() == 2);
}

TEST_CASE("missing data names the package to install") {
  const DataFolder folder;
  ::setenv("TUNE_FASHION_MNIST_DIR", "/nowhere", 1);
  const std::string message = refusal();
  CHECK_HAS(message, "/nowhere/t10k-images-idx3-ubyte.gz");
  CHECK_HAS(message, "dataset-fashion-mnist");
}

TEST_CASE("files whose header, length or labels are wrong are refused") {
  const DataFolder folder;
  const std::string pixels(3 * 28 * 28, '\1');
  const std::string labels("\0\5\11", 3);
  const auto images = [&](auto... fields) {
    folder.write_images(fields...);
    const std::string message = refusal();
    folder.write_images(2051, 3, 28, pixels);
    return message;
  };
  CHECK_HAS(images(2049, 3, 28, pixels), "the magic number is 2049 instead of 2051");
  CHECK_HAS(images(2051, 3, 32, pixels), "the number of rows is 32 instead of 28");
  CHECK_HAS(images(2051, 4'000'000'000u, 28, pixels), "it claims 4000000000 entries");
  CHECK_HAS(images(2051, 0, 28, pixels), "it claims 0 entries");
  CHECK_HAS(images(2051, 3, 28, pixels.substr(1)), "it ends too early");
  CHECK_HAS(images(2051, 3, 28, pixels + "x"), "it is longer than its header says");

  folder.write_labels(2049, 2, labels);
  CHECK_HAS(refusal(), "the number of labels is 2 instead of 3");
  folder.write_labels(2049, 3, std::string("\0\5\12", 3));
  CHECK_HAS(refusal(), "a label is not below 10");
  // The first two bytes of a gzip file, then something else.
  folder.write("t10k-labels-idx1-ubyte.gz", "\x1f\x8b nonsense that is not deflate stream");
  CHECK_HAS(refusal(), "t10k-labels-idx1-ubyte.gz");
}

}  // namespace
}  // namespace tune
