#include "tune/export/event_file.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace tune {

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kSumBytes = 4;

// Event, Summary and SessionLog of tensorflow/core/util/event.proto and summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum ValueField { kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9 };
constexpr int kSummaryValue = 1;
constexpr int kSessionStatus = 1;
constexpr std::uint64_t kSessionBegan = 1;
constexpr std::uint64_t kFloatTensor = 1;  // DT_FLOAT

// Eight bytes a step: table k has the sum of a byte that is followed by k zero bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t sum = i;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0u);
    tables[0][i] = sum;
  }
  for (std::uint32_t i = 0; i < 256; ++i) {
    for (std::size_t k = 1; k < tables.size(); ++k) {
      const std::uint32_t sum = tables[k - 1][i];
      tables[k][i] = sum >> 8 ^ tables[0][sum & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

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

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t sum = 0xffffffffu;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const std::uint32_t low = sum ^ static_cast<std::uint32_t>(fixed_at(bytes.substr(0, 4)));
    sum = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][byte(4)] ^ kTables[2][byte(5)] ^ kTables[1][byte(6)] ^
          kTables[0][byte(7)];
  }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    sum = sum >> 8 ^ kTables[0][(sum ^ byte(i)) & 0xff];
  return ~sum;
}

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
  ProtoWriter dimension, shape, tensor, data, metadata, value, summary;
  shape.message(2, dimension);
  tensor.varint(1, kFloatTensor);
  tensor.message(2, shape);
  data.text(1, plugin);
  data.text(2, content);
  metadata.message(1, data);
  value.text(kTag, tag);
  value.message(kTensor, tensor);
  value.message(kMetadata, metadata);
  summary.message(kSummaryValue, value);
  ProtoWriter event = begin_event(time, 0);
  event.message(kSummary, summary);
  return event.bytes();
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
