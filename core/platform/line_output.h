// Output of several processes on one descriptor: whole lines, each with its process's prefix.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tune {

inline constexpr std::size_t kMaxLineBytes = 64u << 10;

// Cuts one stream of bytes into lines. A carriage return ends one too, so that a progress bar shows
// as it moves; a line longer than kMaxLineBytes becomes several. Pure.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // Appends the lines that these bytes complete.
  void add(std::string_view bytes, std::string& out);
  // Nothing comes any more: a line that was begun ends here.
  void finish(std::string& out);

 private:
  void end_line(std::string& out);

  std::string prefix_;
  std::string begun_;
  bool after_return_ = false;  // a line feed that follows belongs to it
};

// Writes to a descriptor whose reader may be slow, without waiting for it and without changing the
// descriptor, which others share.
class LineOutput {
 public:
  explicit LineOutput(int descriptor) : descriptor_(descriptor) {}

  std::string& pending() { return pending_; }  // append to it
  bool is_full() const { return pending_.size() > kMaxPendingBytes; }
  bool is_empty() const { return pending_.empty(); }
  int descriptor() const { return descriptor_; }
  // Writes a piece. Only when poll() says that the descriptor takes some. After an error, which is
  // an errno, everything is thrown away.
  void write_some();
  int error() const { return error_; }

 private:
  static constexpr std::size_t kMaxPendingBytes = 1u << 20;
  int descriptor_;
  int error_ = 0;
  std::string pending_;
};

}  // namespace tune
