#include "core/platform/line_output.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tune {

void LinePrefixer::add(std::string_view bytes, std::string& out) {
  for (const char byte : bytes) {
    const bool is_rest_of_end = after_return_ && byte == '\n';
    after_return_ = byte == '\r';
    if (is_rest_of_end) continue;
    if (byte == '\n' || byte == '\r') {
      end_line(out);
      continue;
    }
    if (begun_.size() == kMaxLineBytes) end_line(out);
    begun_.push_back(byte);
  }
}

void LinePrefixer::finish(std::string& out) {
  if (!begun_.empty()) end_line(out);
}

void LinePrefixer::end_line(std::string& out) {
  out.append(prefix_).append(begun_).push_back('\n');
  begun_.clear();
}

void LineOutput::write_some() {
  if (error_ == 0) {
    // A pipe that poll() calls writable takes this much without waiting.
    const std::size_t size = std::min<std::size_t>(pending_.size(), PIPE_BUF);
    const ssize_t count = write(descriptor_, pending_.data(), size);
    if (count > 0) pending_.erase(0, static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR && errno != EAGAIN) error_ = errno;
  }
  if (error_ != 0) pending_.clear();
}

}  // namespace tune
