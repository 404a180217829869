// Image files, transforms and folders of images. The expected pixels are Pillow's and torchvision's
// (data/images.py).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"
#include "trainables/torch/image_file.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::refusal;

const fs::path kData = TUNE_SOURCE_DIR "/tests/torch/data";

// The images of a file of expected values, (3, H, W) uint8 by name.
std::map<std::string, torch::Tensor> expected_images(const char* file) {
  std::map<std::string, torch::Tensor> images;
  std::ifstream in(kData / file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream text(line);
    std::string name;
    std::int64_t height = 0;
    std::int64_t width = 0;
    char colon = 0;
    text >> name >> height >> width >> colon;
    const std::vector<int> values(std::istream_iterator<int>(text), {});
    images[name] =
        torch::tensor(values).to(torch::kUInt8).view({height, width, 3}).permute({2, 0, 1});
  }
  return images;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

// --- files

TEST_CASE("images of every kind are read as Pillow reads them") {
  const auto images = expected_images("images.txt");
  CHECK(images.size() == 12);
  for (const auto& [name, expected] : images) {
    CAPTURE(name);
    const torch::Tensor image = read_image_tensor(kData / "images" / name);
    CHECK(image.dtype() == torch::kUInt8);
    CHECK(image.permute({1, 2, 0}).is_contiguous());
    REQUIRE(image.sizes() == expected.sizes());
    // Decoders of JPEG may differ by a step of rounding; PNG knows none.
    const auto distance = (image.to(torch::kInt) - expected.to(torch::kInt)).abs().max();
    CHECK(distance.item<int>() <= (name.ends_with(".png") ? 0 : 1));
  }
}

TEST_CASE("of 16 bits of grey the upper 8 are taken, for each colour") {
  const torch::Tensor image = read_image_tensor(kData / "images" / "grey16.png");
  const torch::Tensor red = expected_images("images.txt").at("rgb16.png")[0];
  for (int channel = 0; channel < 3; ++channel) CHECK(image[channel].equal(red));
}

TEST_CASE("files that are not sound images are refused by name") {
  const testing::TemporaryFolder folder;
  const auto refused = [&](const std::string& name, const std::string& bytes) {
    write(folder.path() / name, bytes);
    const std::string message = refusal([&] { read_image(folder.path() / name); });
    CHECK_HAS(message, "reading image " + (folder.path() / name).string() + ": ");
    return message;
  };
  const std::string png = bytes_of(kData / "images" / "rgb.png");
  const std::string jpeg = bytes_of(kData / "images" / "rgb.jpg");
  CHECK_HAS(refused("a.png", ""), "neither a JPEG nor a PNG");
  CHECK_HAS(refused("a.jpg", "GIF89a"), "neither a JPEG nor a PNG");
  for (std::size_t size = 8; size < png.size(); ++size) {
    CAPTURE(size);
    refused("cut.png", png.substr(0, size));
  }
  // The last two bytes of a JPEG only say that it ends.
  for (std::size_t size = 3; size < jpeg.size() - 2; size += 7) {
    CAPTURE(size);
    refused("cut.jpg", jpeg.substr(0, size));
  }
  // A bit of the header's width, and one of the compressed pixels.
  for (const std::size_t place : {19, 50}) {
    std::string damaged = png;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    refused("damaged.png", damaged);
  }
  CHECK_HAS(refusal([&] { read_image(folder.path() / "none.jpg"); }, ErrorCode::kIo),
            "No such file");
  CHECK_HAS(refusal([&] { read_image(kData / "images" / "cmyk.jpg"); }), "CMYK");
}

TEST_CASE("a header that claims too many pixels is refused before room is made") {
  const std::string claim = "pixels, at most 67108864 are read";
  CHECK_HAS(refusal([] { read_image(kData / "images" / "huge.png"); }), "100000 x 100000 " + claim);

  const testing::TemporaryFolder folder;
  std::string jpeg = bytes_of(kData / "images" / "rgb.jpg");
  const auto frame = jpeg.find("\xff\xc0");  // then length (2), depth (1), height (2), width (2)
  REQUIRE(frame != std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  write(folder.path() / "huge.jpg", jpeg);
  CHECK_HAS(refusal([&] { read_image(folder.path() / "huge.jpg"); }), "65500 x 65500 " + claim);
}

// --- transforms

RandomStream stream(std::uint64_t number = 0) {
  return {1, "images test", number};
}

// The largest difference of two pixels: LibTorch resizes bytes in whole numbers.
int distance(const torch::Tensor& image, const torch::Tensor& expected) {
  REQUIRE(image.sizes() == expected.sizes());
  return (image.to(torch::kInt) - expected.to(torch::kInt)).abs().max().item<int>();
}

torch::Tensor applied(const ImageTransform& transform, const torch::Tensor& image,
                      std::uint64_t number = 0) {
  RandomStream random = stream(number);
  return transform(image, random);
}

TEST_CASE("sizes and pixels are those of torchvision") {
  const auto images = expected_images("transforms.txt");
  const torch::Tensor original = images.at("original");
  const std::map<std::string, ImageTransform> by_name = {
      {"resize_7", transforms::resize(7)},
      {"resize_24", transforms::resize(24)},
      {"resize_5x9", transforms::resize(5, 9)},
      {"resize_20x3", transforms::resize(20, 3)},
      {"center_crop_6", transforms::center_crop(6)},
      {"center_crop_5x7", transforms::center_crop(5, 7)},
      {"center_crop_14x13", transforms::center_crop(14, 13)},
      {"center_crop_13x21", transforms::center_crop(13, 21)}};
  for (const auto& [name, transform] : by_name) {
    CAPTURE(name);
    CHECK(distance(applied(transform, original), images.at(name)) <= 1);
  }
  CHECK(distance(applied(transforms::resize(7), original.transpose(1, 2)),
                 images.at("resize_tall_7")) <= 1);
  CHECK(images.size() == by_name.size() + 2);
  CHECK(applied(transforms::resize(11), original).equal(original));
  // Floats are not rounded: far from the edges of a ramp it stays a ramp.
  const torch::Tensor ramp = torch::arange(8, torch::kFloat).expand({1, 8, 8}) / 8;
  CHECK(applied(transforms::resize(4, 4), ramp)[0][1][1].item<float>() == doctest::Approx(2.5 / 8));
}

TEST_CASE("a random crop is a part of the padded image, and each can come") {
  const torch::Tensor image = torch::arange(1, 17).view({1, 4, 4}).to(torch::kUInt8);
  const torch::Tensor padded = torch::constant_pad_nd(image, {1, 1, 1, 1});
  std::set<std::int64_t> seen;
  for (std::uint64_t number = 0; number < 300; ++number) {
    const torch::Tensor part = applied(transforms::random_crop(4, 1), image, number);
    REQUIRE(part.sizes() == image.sizes());
    for (std::int64_t place = 0; place < 9; ++place) {
      const std::int64_t top = place / 3;
      const std::int64_t left = place % 3;
      if (part.equal(padded.slice(1, top, top + 4).slice(2, left, left + 4))) seen.insert(place);
    }
  }
  CHECK(seen.size() == 9);
  CHECK(applied(transforms::random_crop(4), image).equal(image));
  CHECK(applied(transforms::random_crop(2, 3, 0), image).sizes() == torch::IntArrayRef{1, 2, 3});
  CHECK(refusal([&] { applied(transforms::random_crop(7, 1), image); }) ==
        "random_crop takes 7 x 7 pixels, the padded image has 6 x 6");
}

TEST_CASE("a random resized crop has the side asked for, and different parts") {
  const torch::Tensor image = expected_images("transforms.txt").at("original");
  std::set<std::string> seen;
  for (std::uint64_t number = 0; number < 20; ++number) {
    const torch::Tensor part = applied(transforms::random_resized_crop(6), image, number);
    REQUIRE(part.sizes() == torch::IntArrayRef{3, 6, 6});
    CHECK(part.dtype() == torch::kUInt8);
    seen.insert(c10::str(part));
  }
  CHECK(seen.size() > 15);
  // The whole area at its own ratio fits in one way only: no crop.
  const torch::Tensor square = image.slice(2, 0, 11);
  CHECK(applied(transforms::random_resized_crop(11, {.scale = {1, 1}, .ratio = {1, 1}}), square)
            .equal(square));
  // A strip never fits: its middle at the nearest ratio is 4/3 of its height wide, 3 x 4 of 3 x 60.
  const torch::Tensor strip = torch::arange(60).expand({1, 3, 60}).to(torch::kFloat);
  const ImageTransform whole = transforms::random_resized_crop(3, {.scale = {1, 1}});
  CHECK(applied(whole, strip)
            .equal(applied(transforms::resize(3, 3), strip.slice(2, (60 - 4) / 2, (60 + 4) / 2))));
  const torch::Tensor tall = strip.transpose(1, 2);
  CHECK(applied(whole, tall)
            .equal(applied(transforms::resize(3, 3), tall.slice(1, (60 - 4) / 2, (60 + 4) / 2))));
}

TEST_CASE("a transform gives the same pixels however an image lies") {
  const torch::Tensor image = expected_images("transforms.txt").at("original").contiguous();
  const torch::Tensor last = image.permute({1, 2, 0}).contiguous().permute({2, 0, 1});
  for (const ImageTransform& transform :
       {transforms::resize(7), transforms::random_resized_crop(6), transforms::random_crop(5, 2),
        transforms::random_horizontal_flip(1), transforms::to_tensor()}) {
    CHECK(applied(transform, image, 3).equal(applied(transform, last, 3)));
  }
  CHECK(applied(transforms::to_tensor(), last).is_contiguous());
}

TEST_CASE("a batch of bytes lies channels last, and is normalized as its images would be") {
  const torch::Tensor image = expected_images("transforms.txt").at("original");
  const torch::Tensor last = image.permute({1, 2, 0}).contiguous().permute({2, 0, 1});
  const Batch batch = stacked({{last, {}}, {last.flip({2}), {}}}, torch::arange(2));
  CHECK(batch.data.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(batch.data[0].equal(image));
  CHECK(batch.data[1].equal(image.flip({2})));
  const std::vector<double> means = {0.4, 0.5, 0.6};
  const std::vector<double> deviations = {0.2, 0.25, 0.3};
  const ImageTransform each =
      transforms::compose({transforms::to_tensor(), transforms::normalize(means, deviations)});
  const torch::Tensor prepared = transforms::normalize_batch(means, deviations)(batch.data);
  CHECK(prepared.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(prepared[0].allclose(applied(each, image), 1e-5, 1e-6));
  CHECK(transforms::normalize_batch({0.5}, {0.5})(torch::ones({1, 2, 3, 3}))[0][1][2][2]
            .item<float>() == doctest::Approx(1));
  CHECK(refusal([] { transforms::normalize_batch({1}, {0}); }) ==
        "a deviation of normalize_batch is 0");
  CHECK(refusal([&] { transforms::normalize_batch(means, deviations)(image); }) ==
        "normalize_batch takes a batch of images (n, channels, height, width), not 3 dimensions");
  CHECK(refusal([&] {
          transforms::normalize_batch({1, 2}, {1, 2})(batch.data);
        }) == "normalize_batch has 2 means, the images 3 channels");
}

TEST_CASE("a flip turns left and right, as often as asked for") {
  const torch::Tensor image = torch::arange(6).view({1, 2, 3});
  const torch::Tensor flipped = torch::tensor({2, 1, 0, 5, 4, 3}).view({1, 2, 3});
  int flips = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    flips +=
        applied(transforms::random_horizontal_flip(0.25), image, number).equal(flipped) ? 1 : 0;
  }
  // 100 are expected, the standard deviation is below 9.
  CHECK(flips > 60);
  CHECK(flips < 140);
  CHECK(applied(transforms::random_horizontal_flip(1), image).equal(flipped));
  CHECK(applied(transforms::random_horizontal_flip(0), image).equal(image));
}

TEST_CASE("to_tensor and normalize make floats, composed in order") {
  const torch::Tensor image = torch::tensor({0, 255, 51, 102}, torch::kUInt8).view({2, 1, 2});
  CHECK(applied(transforms::to_tensor(), image)
            .allclose(torch::tensor({0.0, 1.0, 0.2, 0.4}).to(torch::kFloat).view({2, 1, 2})));
  const ImageTransform both =
      transforms::compose({transforms::to_tensor(), transforms::normalize({0.5, 0.2}, {0.5, 0.1})});
  // (0 - 0.5) / 0.5, (1 - 0.5) / 0.5; (0.2 - 0.2) / 0.1, (0.4 - 0.2) / 0.1
  CHECK(applied(both, image)
            .allclose(torch::tensor({-1.0, 1.0, 0.0, 2.0}).to(torch::kFloat).view({2, 1, 2})));
  CHECK(image[0][0][1].item<int>() == 255);
  CHECK(applied(transforms::normalize({1}, {2}), torch::zeros({3, 1, 1}))
            .equal(torch::full({3, 1, 1}, -0.5)));
}

TEST_CASE("transforms refuse settings and images that make no sense") {
  const torch::Tensor image = torch::zeros({3, 4, 4}, torch::kUInt8);
  CHECK(refusal([] { transforms::resize(0); }) == "resize to 0 x 0 pixels leaves nothing");
  CHECK(refusal([] { transforms::center_crop(3, -1); }) ==
        "center_crop to 3 x -1 pixels leaves nothing");
  CHECK(refusal([] { transforms::random_crop(3, -1); }) ==
        "the padding of random_crop is -1, at least 0 is wanted");
  CHECK_HAS(refusal([] { transforms::random_resized_crop(3, {.scale = {0.5, 0.1}}); }), "scale");
  CHECK_HAS(refusal([] { transforms::random_horizontal_flip(1.5); }), "1.5");
  CHECK(refusal([] {
          transforms::normalize({1, 2}, {1});
        }) == "normalize has 2 means and 1 deviations");
  CHECK(refusal([] { transforms::normalize({1}, {0}); }) == "a deviation of normalize is 0");
  CHECK(refusal([&] { applied(transforms::normalize({1}, {1}), image); }) ==
        "normalize wants floats: put to_tensor before it");
  CHECK(refusal([&] {
          applied(transforms::normalize({1, 1}, {1, 1}), image.to(torch::kFloat));
        }) == "normalize has 2 means, the image 3 channels");
  CHECK(refusal([&] { applied(transforms::resize(3), image[0]); }) ==
        "an image has three dimensions (channels, height, width), not 2");
}

// --- folders

struct Folder {
  Folder() {
    copy("rgb.png", "dog/b.PNG");
    copy("grey.png", "dog/a.jpeg");  // what it is its bytes say
    copy("rgb.jpg", "dog/more/a.jpg");
    copy("alpha.png", "Zebra/z.png");
    copy("rgb.png", "cat/1.png");
    write(path() / "cat" / "notes.txt", "not an image");
    write(path() / "top.png", "not in a class");
  }
  void copy(const std::string& from, const std::string& to) const {
    write(path() / to, bytes_of(kData / "images" / from));
  }
  const fs::path& path() const { return folder.path(); }
  testing::TemporaryFolder folder;
};

TEST_CASE("classes and files come in the order of their names") {
  const Folder folder;
  const ImageFolder data(folder.path());
  CHECK(data.classes() == std::vector<std::string>{"Zebra", "cat", "dog"});
  std::vector<std::string> found;
  for (const auto& sample : data.samples()) {
    found.push_back(std::to_string(sample.label) + " " +
                    fs::relative(sample.file, folder.path()).string());
  }
  CHECK(found == std::vector<std::string>{"0 Zebra/z.png", "1 cat/1.png", "2 dog/a.jpeg",
                                          "2 dog/b.PNG", "2 dog/more/a.jpg"});
  const Batch sample = data.get(1);
  CHECK(sample.target.item<std::int64_t>() == 1);
  CHECK(sample.data.dtype() == torch::kFloat);
  CHECK(sample.data.allclose(expected_images("images.txt").at("rgb.png").to(torch::kFloat) / 255));
}

TEST_CASE("random transforms depend on seed, epoch and index, not on who loads in which order") {
  const Folder folder;
  const auto load = [&](int workers, std::uint64_t seed, std::int64_t epoch) {
    const auto data = std::make_shared<ImageFolder>(
        folder.path(),
        transforms::compose({transforms::resize(12), transforms::random_crop(8, 4),
                             transforms::random_horizontal_flip(), transforms::to_tensor()}),
        seed);
    DataLoader loader(
        data, std::make_shared<DistributedSampler>(5, DistributedSamplerOptions{.shuffle = false}),
        {.batch_size = 2, .workers = workers});
    loader.set_epoch(epoch);
    std::vector<torch::Tensor> images;
    for (const Batch& batch : loader) images.push_back(batch.data);
    return torch::cat(images);
  };
  const torch::Tensor images = load(0, 1, 0);
  CHECK(images.sizes() == torch::IntArrayRef{5, 3, 8, 8});
  CHECK(load(3, 1, 0).equal(images));
  CHECK_FALSE(load(0, 1, 1).equal(images));
  CHECK_FALSE(load(0, 2, 0).equal(images));
}

TEST_CASE("folders without images or classes, and broken files, are refused by name") {
  const Folder folder;
  const testing::TemporaryFolder empty;
  CHECK_HAS(refusal([&] { ImageFolder{empty.path()}; }), "has no folders: one for each class");
  CHECK_HAS(refusal([&] { ImageFolder{empty.path() / "none"}; }, ErrorCode::kIo), "No such file");
  fs::create_directory(folder.path() / "eel");
  CHECK(refusal([&] { ImageFolder{folder.path()}; }) ==
        "class eel of " + folder.path().string() + " has no images (.jpg, .jpeg, .png)");

  write(folder.path() / "eel" / "broken.jpg", "\xff\xd8\xff");
  const ImageFolder data(folder.path(), transforms::center_crop(4));
  CHECK_HAS(refusal([&] { data.get_batch(torch::arange(data.size())); }), "broken.jpg");
  const ImageFolder crops(folder.path(), transforms::random_crop(100));
  CHECK_HAS(refusal([&] { crops.get(0); }), "z.png: random_crop takes 100 x 100");
}

TEST_CASE("a batch of images of different sizes says what is missing") {
  const Folder folder;
  const ImageFolder data(folder.path());
  CHECK_HAS(refusal([&] {
              data.get_batch(torch::tensor({0, 4}));
            }),
            "samples 0 and 4 differ in shape, [3, 4, 5] and [3, 11, 18]");
}

}  // namespace
}  // namespace tune
