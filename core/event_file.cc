#include "core/event_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "core/crc32c.h"

namespace tune {

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kSumBytes = 4;

// Event, Summary and SessionLog of tensorflow/core/util/event.proto and summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum ValueField {
  kTag = 1,
  kSimpleValue = 2,
  kImage = 4,
  kHistogram = 5,
  kTensor = 8,
  kMetadata = 9
};
constexpr int kSummaryValue = 1;
constexpr int kSessionStatus = 1;
constexpr std::uint64_t kSessionBegan = 1;
constexpr std::uint64_t kFloatTensor = 1, kTextTensor = 7;  // DT_FLOAT, DT_STRING

std::uint32_t masked(std::uint32_t sum) {
  return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

template <class T>
void append_fixed(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> 8 * i);
}

std::uint64_t fixed_at(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  }
  return value;
}

ProtoWriter begin_event(double time, std::uint64_t step) {
  ProtoWriter event;
  event.number(kWallTime, time);
  if (step > 0) event.varint(kStep, step);
  return event;
}

std::string event_of(double time, std::uint64_t step, const ProtoWriter& value) {
  ProtoWriter summary;
  summary.message(kSummaryValue, value);
  ProtoWriter event = begin_event(time, step);
  event.message(kSummary, summary);
  return event.bytes();
}

ProtoWriter plugin_data(std::string_view plugin, std::string_view content) {
  ProtoWriter data, metadata;
  data.text(1, plugin);
  if (!content.empty()) data.text(2, content);
  metadata.message(1, data);
  return metadata;
}

// Upper bounds of buckets, from -1e20 over 0 to 1e20 and what lies beyond.
std::vector<double> bucket_limits() {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  positive.push_back(std::numeric_limits<double>::max());
  std::vector<double> limits;
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) limits.push_back(-*limit);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

// A list of doubles within a message.
std::string packed_doubles(std::span<const double> values) {
  std::string bytes;
  for (const double value : values) append_fixed(bytes, std::bit_cast<std::uint64_t>(value));
  return bytes;
}

}  // namespace

void append_record(std::string& out, std::string_view event) {
  const std::size_t begin = out.size();
  append_fixed(out, static_cast<std::uint64_t>(event.size()));
  append_fixed(out, masked(crc32c(std::string_view(out).substr(begin))));
  out += event;
  append_fixed(out, masked(crc32c(event)));
}

std::size_t for_each_record(std::string_view text,
                            const std::function<void(std::string_view event)>& visit) {
  std::size_t at = 0;
  while (text.size() - at >= kLengthBytes + 2 * kSumBytes) {
    const std::string_view length = text.substr(at, kLengthBytes);
    if (fixed_at(text.substr(at + kLengthBytes, kSumBytes)) != masked(crc32c(length))) break;
    const std::uint64_t size = fixed_at(length);
    if (size > text.size() - at - kLengthBytes - 2 * kSumBytes) break;
    const auto event = text.substr(at + kLengthBytes + kSumBytes, static_cast<std::size_t>(size));
    const std::size_t end = at + kLengthBytes + kSumBytes + event.size();
    if (fixed_at(text.substr(end, kSumBytes)) != masked(crc32c(event))) break;
    visit(event);
    at = end + kSumBytes;
  }
  return at;
}

std::string version_event(double time) {
  ProtoWriter event = begin_event(time, 0);
  event.text(kFileVersion, "brain.Event:2");
  return event.bytes();
}

std::string restart_event(double time, std::uint64_t step) {
  ProtoWriter log;
  log.varint(kSessionStatus, kSessionBegan);
  ProtoWriter event = begin_event(time, step);
  event.message(kSessionLog, log);
  return event.bytes();
}

// The tensor is empty: a float tensor of the shape [0].
std::string plugin_event(double time, std::string_view tag, std::string_view plugin,
                         std::string_view content) {
  ProtoWriter dimension, shape, tensor, value;
  shape.message(2, dimension);
  tensor.varint(1, kFloatTensor);
  tensor.message(2, shape);
  value.text(kTag, tag);
  value.message(kTensor, tensor);
  value.message(kMetadata, plugin_data(plugin, content));
  return event_of(time, 0, value);
}

std::string image_event(double time, std::uint64_t step, std::string_view tag,
                        const ImageShape& shape, std::string_view png) {
  ProtoWriter image, value;
  image.varint(1, shape.height);
  image.varint(2, shape.width);
  image.varint(3, shape.channels);
  image.text(4, png);
  value.text(kTag, tag);
  value.message(kImage, image);
  return event_of(time, step, value);
}

std::string histogram_event(double time, std::uint64_t step, std::string_view tag,
                            std::span<const double> values) {
  static const std::vector<double> limits = bucket_limits();
  std::vector<double> counts(limits.size());
  double least = std::numeric_limits<double>::infinity(), most = -least;
  double count = 0, sum = 0, squares = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const auto limit = std::upper_bound(limits.begin(), limits.end(), value);
    counts[std::min<std::size_t>(limit - limits.begin(), limits.size() - 1)] += 1;
    least = std::min(least, value);
    most = std::max(most, value);
    count += 1;
    sum += value;
    squares += value * value;
  }
  if (count == 0) return {};
  std::size_t first = 0, last = counts.size() - 1;
  while (counts[first] == 0) ++first;
  while (counts[last] == 0) --last;
  // Empty buckets in a row become one, which ends where the last of them does; the one before all
  // others gives the first its lower bound.
  std::vector<double> ends, kept;
  for (std::size_t i = first > 0 ? first - 1 : 0; i <= last; ++i) {
    const bool goes_on = counts[i] == 0 && !kept.empty() && kept.back() == 0;
    if (goes_on) {
      ends.back() = limits[i];
    } else {
      ends.push_back(limits[i]);
      kept.push_back(counts[i]);
    }
  }
  ProtoWriter histogram, value;
  histogram.number(1, least);
  histogram.number(2, most);
  histogram.number(3, count);
  histogram.number(4, sum);
  histogram.number(5, squares);
  histogram.text(6, packed_doubles(ends));
  histogram.text(7, packed_doubles(kept));
  value.text(kTag, tag);
  value.message(kHistogram, histogram);
  return event_of(time, step, value);
}

std::string text_event(double time, std::uint64_t step, std::string_view tag,
                       std::string_view text) {
  ProtoWriter dimension, shape, tensor, value;
  dimension.varint(1, 1);
  shape.message(2, dimension);
  tensor.varint(1, kTextTensor);
  tensor.message(2, shape);
  tensor.text(8, text);
  value.text(kTag, tag);
  value.message(kTensor, tensor);
  value.message(kMetadata, plugin_data("text", {}));
  return event_of(time, step, value);
}

void ScalarsEvent::add(std::string_view tag, double value) {
  value_.clear();
  value_.text(kTag, tag);
  value_.number(kSimpleValue, static_cast<float>(value));
  summary_.message(kSummaryValue, value_);
}

std::string_view ScalarsEvent::event(double time, std::uint64_t step) {
  event_.clear();
  event_.number(kWallTime, time);
  event_.varint(kStep, step);
  event_.message(kSummary, summary_);
  return event_.bytes();
}

EventHead head_of_event(std::string_view event) {
  EventHead head;
  ProtoReader reader(event);
  while (const auto field = reader.next()) {
    if (field->number == kStep) head.step = field->value;
    if (field->number == kSummary) break;
    if (field->number != kSessionLog) continue;
    const auto status = ProtoReader(field->text).next();
    head.is_restart = status && status->number == kSessionStatus && status->value == kSessionBegan;
  }
  return head;
}

}  // namespace tune
