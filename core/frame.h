// Frames on a byte stream: 4 bytes of length (little-endian), then that many bytes. Pure: the edges
// read and write the stream itself.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/wire.h"

namespace tune {

inline constexpr std::size_t kFrameHeaderBytes = 4;

inline void put_frame_header(char* header, std::size_t length) {
  for (std::size_t i = 0; i < kFrameHeaderBytes; ++i) {
    header[i] = static_cast<char>(length >> (8 * i) & 0xff);
  }
}

inline void append_frame(std::string& out, std::string_view payload) {
  char header[kFrameHeaderBytes];
  put_frame_header(header, payload.size());
  out.append(header, kFrameHeaderBytes).append(payload);
}

// Takes bytes as they arrive and gives frames as they become complete.
class FrameBuffer {
 public:
  void append(std::string_view bytes) {
    if (start_ == bytes_.size()) {
      bytes_.clear();
      start_ = 0;
    } else if (start_ > kCompactBytes) {
      bytes_.erase(0, start_);
      start_ = 0;
    }
    bytes_.append(bytes);
  }

  // The next whole frame's payload, valid until the next append; nothing while it is incomplete.
  // Throws Error (kProtocol) when a frame claims more than kMaxFrameBytes.
  std::optional<std::string_view> next() {
    const std::string_view left = std::string_view(bytes_).substr(start_);
    if (left.size() < kFrameHeaderBytes) return std::nullopt;
    std::size_t length = 0;
    for (std::size_t i = 0; i < kFrameHeaderBytes; ++i) {
      length |= static_cast<std::size_t>(static_cast<unsigned char>(left[i])) << (8 * i);
    }
    if (length > kMaxFrameBytes) {
      throw Error(ErrorCode::kProtocol, "reading a frame: it claims " + std::to_string(length) +
                                            " bytes, at most " + std::to_string(kMaxFrameBytes) +
                                            " are allowed");
    }
    if (left.size() - kFrameHeaderBytes < length) return std::nullopt;
    start_ += kFrameHeaderBytes + length;
    return left.substr(kFrameHeaderBytes, length);
  }

 private:
  static constexpr std::size_t kCompactBytes = 64u << 10;
  std::string bytes_;
  std::size_t start_ = 0;
};

}  // namespace tune
