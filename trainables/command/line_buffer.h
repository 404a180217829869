// Lines from bytes as they come, in bounded memory: of a longer line only the beginning is kept, or
// what stands behind its last carriage return: a bar of progress overwrites its line for hours.
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tune {

struct Line {
  std::string_view text;  // without its end; valid until the next call that is not const
  bool is_cut = false;    // it was longer
};

class LineBuffer {
 public:
  static constexpr std::size_t kMaxLineBytes = 1u << 20;

  // Only when next() has given every whole line.
  void append(std::string_view bytes);
  // The next whole line.
  std::optional<Line> next();
  // The bytes after the last line end, once nothing more comes.
  std::optional<Line> rest();
  // The beginning of the line that is not whole yet, once it is too long. next() will give it when
  // its end comes, which may be never.
  std::optional<Line> too_long() const;
  std::size_t lines() const { return lines_; }  // given so far

 private:
  void append_to_line(std::string_view bytes);
  Line line(std::size_t end);

  std::string bytes_;
  std::size_t start_ = 0;
  std::size_t searched_ = 0;  // no line ends between these
  bool is_cut_ = false;  // of the line that is not whole yet, bytes were dropped
  std::size_t lines_ = 0;
};

}  // namespace tune
