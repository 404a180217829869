// TensorBoardWriter: what a trial shows in TensorBoard beside its results: scalars by a step of its
// own, images, histograms and text. `context().writer()` gives it; it writes on rank 0 alone, into
// tensorboard/ of the trial's folder: `tensorboard --logdir results/latest` shows all trials.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tune {

class TensorBoardWriter {
 public:
  // Of one attempt: each has a file of its own. Its first event takes the place of those that
  // earlier attempts wrote for this step and later ones. Empty folder: writes nothing.
  TensorBoardWriter(std::filesystem::path folder, std::uint32_t attempt);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;

  // Of another rank, or outside of a sweep: nothing is written. What is expensive to make need not
  // be made then.
  bool is_open() const { return !folder_.empty(); }

  // `step` is the place on the horizontal axis: an iteration, a batch, or what the user counts.
  // Every call writes by itself: what was written stays when the process is killed. Throw Error:
  // kIo when the file cannot be written, kBadInput as said below. The thread of the trainable.
  void scalar(std::string_view tag, double value, std::uint64_t step);
  // Rows from the top, `channels` bytes a pixel: 1 (grey), 3 (red, green, blue), 4 (and opacity).
  // Error (kBadInput) when the pixels are not width x height x channels bytes.
  struct Image {
    std::uint32_t width = 0, height = 0, channels = 1;
    std::span<const std::uint8_t> pixels;
  };
  void image(std::string_view tag, const Image& image, std::uint64_t step);
  // Values that are not finite are left out.
  void histogram(std::string_view tag, std::span<const double> values, std::uint64_t step);
  void histogram(std::string_view tag, std::span<const float> values, std::uint64_t step);
  void text(std::string_view tag, std::string_view text, std::uint64_t step);  // Markdown

 private:
  void write(const std::string& event, std::uint64_t step);
  void begin(std::uint64_t step);

  std::filesystem::path folder_;
  std::filesystem::path file_;
  std::uint32_t attempt_;
  int descriptor_ = -1;
};

}  // namespace tune
