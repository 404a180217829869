// The bytes of TensorBoard's event files: records of TFRecord framing (length, its masked CRC-32C,
// an Event message, the message's masked CRC-32C), and the events that tune writes. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/protobuf.h"

namespace tune {

void append_record(std::string& out, std::string_view event);
// Visits the events of the whole records that the text begins with; returns the length of these. A
// writer that was killed may have left a part of one behind them.
std::size_t for_each_record(std::string_view text,
                            const std::function<void(std::string_view event)>& visit);

// ---- Events; times are unix seconds ----

// A file begins with it.
std::string version_event(double time);
// Reports of a run for this step or a later one do not count any more.
std::string restart_event(double time, std::uint64_t step);
// A summary without a value of its own: only a plugin reads `content`, by the tag.
std::string plugin_event(double time, std::string_view tag, std::string_view plugin,
                         std::string_view content);

// Of what users write beside their results. An image is a PNG of this size, `channels` 1 (grey), 3
// or 4.
struct ImageShape {
  std::uint32_t width = 0, height = 0, channels = 0;
};
std::string image_event(double time, std::uint64_t step, std::string_view tag,
                        const ImageShape& shape, std::string_view png);
// The finite ones among the values, in TensorFlow's buckets: each a tenth wider than the one
// before. Empty when there is none.
std::string histogram_event(double time, std::uint64_t step, std::string_view tag,
                            std::span<const double> values);
std::string text_event(double time, std::uint64_t step, std::string_view tag,
                       std::string_view text);

// The numbers of one step, as scalars. Reused for the next one.
class ScalarsEvent {
 public:
  void clear() { summary_.clear(); }
  void add(std::string_view tag, double value);  // rounded to a float
  bool is_empty() const { return summary_.bytes().empty(); }
  // Valid until the next call.
  std::string_view event(double time, std::uint64_t step);

 private:
  ProtoWriter summary_;
  ProtoWriter value_;
  ProtoWriter event_;
};

struct EventHead {
  std::uint64_t step = 0;
  bool is_restart = false;
};
EventHead head_of_event(std::string_view event);

}  // namespace tune
