#include "trainables/tensorboard_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/event_file.h"
#include "trainables/png.h"
#include "trainables/trainable.h"

namespace tune {

namespace {

constexpr std::uint32_t kMaxSide = 65'535;  // pixels

double unix_seconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

Error events_error(const std::filesystem::path& path, int cause) {
  return Error(ErrorCode::kIo,
               fmt::format("writing for TensorBoard: {}: {}", path.string(), std::strerror(cause)));
}

}  // namespace

TensorBoardWriter& Context::writer() const {
  if (!writer_) {
    writer_ = std::make_shared<TensorBoardWriter>(
        is_attempt_ && rank_ == 0 ? trial_directory_ / "tensorboard" : std::filesystem::path(),
        attempt_);
  }
  return *writer_;
}

TensorBoardWriter::TensorBoardWriter(std::filesystem::path folder, std::uint32_t attempt)
    : folder_(std::move(folder)), attempt_(attempt) {}

TensorBoardWriter::~TensorBoardWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

void TensorBoardWriter::scalar(std::string_view tag, double value, std::uint64_t step) {
  if (!is_open()) return;
  ScalarsEvent event;
  event.add(tag, value);
  write(std::string(event.event(unix_seconds(), step)), step);
}

void TensorBoardWriter::image(std::string_view tag, const Image& image, std::uint64_t step) {
  const auto& [width, height, channels, pixels] = image;
  const bool has_channels = channels == 1 || channels == 3 || channels == 4;
  const bool has_sides = width > 0 && height > 0 && width <= kMaxSide && height <= kMaxSide;
  if (!has_channels || !has_sides || pixels.size() != std::uint64_t{width} * height * channels) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("writing the image {}: expected width x height x channels bytes with 1, "
                    "3 or 4 channels, got {} x {} x {} and {} bytes",
                    tag, width, height, channels, pixels.size()));
  }
  if (!is_open()) return;
  write(image_event(unix_seconds(), step, tag,
                    {.width = width, .height = height, .channels = channels},
                    png_of(width, height, channels, pixels)),
        step);
}

void TensorBoardWriter::histogram(std::string_view tag, std::span<const double> values,
                                  std::uint64_t step) {
  if (!is_open()) return;
  const std::string event = histogram_event(unix_seconds(), step, tag, values);
  if (!event.empty()) write(event, step);
}

void TensorBoardWriter::histogram(std::string_view tag, std::span<const float> values,
                                  std::uint64_t step) {
  if (!is_open()) return;
  histogram(tag, std::vector<double>(values.begin(), values.end()), step);
}

void TensorBoardWriter::text(std::string_view tag, std::string_view text, std::uint64_t step) {
  if (is_open()) write(text_event(unix_seconds(), step, tag, text), step);
}

// The name is in the order in which TensorBoard reads the files of a folder.
void TensorBoardWriter::begin(std::uint64_t step) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw events_error(folder_, error.value());
  file_ = folder_ / fmt::format("events.out.tfevents.{:010}.tune", attempt_);
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw events_error(file_, errno);
  std::string events;
  append_record(events, version_event(unix_seconds()));
  if (attempt_ > 1) append_record(events, restart_event(unix_seconds(), step));
  if (::write(descriptor_, events.data(), events.size()) < 0) throw events_error(file_, errno);
}

void TensorBoardWriter::write(const std::string& event, std::uint64_t step) {
  if (descriptor_ < 0) begin(step);
  std::string bytes;
  append_record(bytes, event);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw events_error(file_, errno);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace tune
