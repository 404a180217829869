// Images a second from a folder of JPEGs of 500 x 375 with two threads: decoded, cropped at random,
// resized with antialias to 224 x 224, flipped and normalized in batches; beside torchvision's
// loader with two workers (bench/image_folder.py).
#include <ATen/Parallel.h>
#include <tune/torch.h>

// clang-format off: jpeglib.h wants FILE.
#include <jpeglib.h>
#include <cstdio>
// clang-format on

#include <filesystem>
#include <string>

#include "bench/beside_python.h"
#include "bench/harness.h"
#include "core/error.h"
#include "core/random.h"

namespace tune::bench {
namespace {

constexpr const char* kHelp =
    "Times batches of 32 images from a folder of JPEGs, made by two threads. Beside it, taking\n"
    "turns, torchvision's ImageFolder and a DataLoader with two workers, if TUNE_BENCH_PYTHON\n"
    "names a Python that has torch and torchvision (bench/peers/setup.sh torchvision).\n\n"
    "bench_image_folder [--tiny] [--runs N]";

constexpr int kHeight = 375;
constexpr int kWidth = 500;
constexpr int kBatch = 32;

// Smooth colours with some noise: about 60 KB a file, as photographs of this size have.
void write_image(const std::filesystem::path& file, RandomStream& random) {
  std::vector<unsigned char> row(3 * kWidth);
  FILE* out = std::fopen(file.c_str(), "wb");
  if (out == nullptr) throw Error(ErrorCode::kIo, "cannot write " + file.string());
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_stdio_dest(&jpeg, out);
  jpeg.image_width = kWidth;
  jpeg.image_height = kHeight;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 90, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const auto noise = static_cast<int>(random.integer(0, 24));
      row[3 * x] = static_cast<unsigned char>(x * 200 / kWidth + noise);
      row[3 * x + 1] = static_cast<unsigned char>(y * 200 / kHeight + noise);
      row[3 * x + 2] = static_cast<unsigned char>((x / 50 + y / 40) % 2 * 100 + noise);
    }
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&jpeg, rows, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::fclose(out);
}

void write_images(const std::filesystem::path& folder, int count) {
  RandomStream random(1, "images", 0);
  for (const char* name : {"cat", "dog"}) {
    std::filesystem::create_directories(folder / name);
    for (int i = 0; i < count / 2; ++i) {
      write_image(folder / name / (std::to_string(i) + ".jpg"), random);
    }
  }
}

// Milliseconds a batch, without the first batches, which wait for the threads to begin.
double batch_milliseconds(const std::filesystem::path& folder) {
  at::set_num_threads(1);
  namespace images = transforms;
  auto data = std::make_shared<ImageFolder>(
      folder,
      images::compose({images::random_resized_crop(224), images::random_horizontal_flip()}));
  const BatchTransform prepare =
      images::normalize_batch({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  DataLoader loader(data,
                    std::make_shared<DistributedSampler>(data->size(), DistributedSamplerOptions{}),
                    {.batch_size = kBatch, .workers = 2});
  for (const Batch& batch : loader) prepare(batch.data);
  int batches = 0;
  const double seconds = time_call([&] {
    for (const Batch& batch : loader) batches += prepare(batch.data).size(0) > 0 ? 1 : 0;
  });
  return 1e3 * seconds / batches;
}

void measure(const Setting& setting) {
  const Workplace workplace(setting);
  const auto folder = workplace.fresh("images");
  write_images(folder, setting.tiny ? 2 * kBatch : 20 * kBatch);
  const BesidePython times = beside_python(
      setting.runs, [&] { return batch_milliseconds(folder); },
      [&] { return python_milliseconds("image_folder.py", folder.string()); });
  std::printf("%6.0f images/s   a batch of %d: %.2f ms   %s\n", 1e3 * kBatch / times.ours, kBatch,
              times.ours, summary(times, "torchvision's").c_str());
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 5);
  return guarded([&] { measure(setting); });
}
