#include "trainables/command/line_buffer.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tune {

// The last, open line is kept, and these bytes.
void LineBuffer::append(std::string_view bytes) {
  TUNE_CHECK(searched_ == bytes_.size());
  bytes_.erase(0, start_);
  searched_ -= std::exchange(start_, 0);
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  append_to_line(bytes.substr(0, end));
  bytes_.append(bytes.substr(end));
}

void LineBuffer::append_to_line(std::string_view bytes) {
  if (bytes.size() > kMaxLineBytes - bytes_.size()) {
    // A return at the very end may belong to the line's end.
    const std::size_t back = bytes.substr(0, bytes.size() - 1).rfind('\r');
    if (back != std::string_view::npos) {
      bytes_.clear();
      searched_ = 0;
      is_cut_ = false;
      bytes.remove_prefix(back + 1);
    }
  }
  const std::size_t room = kMaxLineBytes - bytes_.size();
  is_cut_ = is_cut_ || bytes.size() > room;
  bytes_.append(bytes.substr(0, room));
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

std::optional<Line> LineBuffer::too_long() const {
  if (!is_cut_) return std::nullopt;
  return Line{std::string_view(bytes_).substr(start_), true};
}

Line LineBuffer::line(std::size_t end) {
  ++lines_;
  std::string_view text = std::string_view(bytes_).substr(start_, end - start_);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return {text, std::exchange(is_cut_, false)};
}

}  // namespace tune
