#include "trainables/command/line_buffer.h"

#include <algorithm>
#include <utility>

namespace tune {

// The last, open line is kept, and these bytes.
void LineBuffer::append(std::string_view bytes) {
  bytes_.erase(0, start_);
  searched_ -= std::exchange(start_, 0);
  const std::size_t room = kMaxLineBytes - std::min(bytes_.size(), kMaxLineBytes);
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  is_cut_ = is_cut_ || end > room;
  bytes_.append(bytes.substr(0, std::min(room, end)));
  bytes_.append(bytes.substr(end));
}

std::optional<Line> LineBuffer::next() {
  const std::size_t end = bytes_.find('\n', searched_);
  searched_ = end == std::string::npos ? bytes_.size() : end + 1;
  if (end == std::string::npos) return std::nullopt;
  const Line found = line(end);
  start_ = end + 1;
  return found;
}

std::optional<Line> LineBuffer::rest() {
  if (start_ == bytes_.size()) return std::nullopt;
  const Line found = line(bytes_.size());
  start_ = searched_ = bytes_.size();
  return found;
}

Line LineBuffer::line(std::size_t end) {
  ++lines_;
  std::string_view text = std::string_view(bytes_).substr(start_, end - start_);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return {text, std::exchange(is_cut_, false)};
}

}  // namespace tune
