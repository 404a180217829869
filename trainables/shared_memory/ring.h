// A stream of bytes from one rank to another through memory that both have mapped: a ring, of which
// one process moves the end and the other the beginning. Messages begin at multiples of kLine, so
// that the parts in which one is read never cut a value of at most kLine bytes. Each end is used by
// one thread at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trainables/shared_memory/copying.h"

namespace tune::shared_memory {

// The bytes that are handed over at once: the other rank begins with it while the next is being
// copied.
inline constexpr std::size_t kPiece = 32u << 10;

inline constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

struct RingControl {
  alignas(kLine) std::atomic<std::uint64_t> written;
  alignas(kLine) std::atomic<std::uint64_t> read;
};

class RingSender {
 public:
  RingSender() = default;
  RingSender(RingControl* control, char* data, std::size_t capacity)
      : control_(control), data_(data), capacity_(capacity) {}

  // The sender's own count runs ahead of what is published.
  std::size_t room() {
    std::size_t free = capacity_ - static_cast<std::size_t>(written_ - read_);
    if (free < capacity_ / 2) {
      read_ = control_->read.load(std::memory_order_acquire);
      free = capacity_ - static_cast<std::size_t>(written_ - read_);
    }
    return free;
  }

  // Copies as much as there is room for of a message's last `bytes`, at most `most` of them, and
  // returns how much.
  std::size_t put(const char* from, std::size_t bytes, Copying way = Copying::kThroughCaches) {
    std::size_t size = std::min({bytes, kPiece, room()});
    const std::size_t at = static_cast<std::size_t>(written_ % capacity_);
    size = std::min(size, capacity_ - at);
    if (size < bytes) size -= size % kLine;
    if (size == 0) return 0;
    copy(data_ + at, from, size, way);
    written_ += whole_lines(size);
    return size;
  }

  // Whether there was anything to publish.
  bool publish() {
    if (published_ == written_) return false;
    published_ = written_;
    control_->written.store(written_, std::memory_order_release);
    return true;
  }

  // Where the next message begins, and whether the receiver has come as far.
  std::uint64_t end() const { return written_; }
  bool has_been_read(std::uint64_t end) {
    read_ = control_->read.load(std::memory_order_acquire);
    return read_ >= end;
  }

 private:
  RingControl* control_ = nullptr;
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t written_ = 0, published_ = 0, read_ = 0;
};

class RingReceiver {
 public:
  RingReceiver() = default;
  RingReceiver(RingControl* control, const char* data, std::size_t capacity)
      : control_(control), data_(data), capacity_(capacity) {}

  struct Part {
    const char* bytes = nullptr;
    std::size_t size = 0;
  };
  // The next part of a message of which `bytes` are missing: what has come and lies in one piece,
  // whole lines but for the message's end.
  Part front(std::size_t bytes) {
    std::size_t here = static_cast<std::size_t>(written_ - read_);
    if (here < bytes) {
      written_ = control_->written.load(std::memory_order_acquire);
      here = static_cast<std::size_t>(written_ - read_);
    }
    const std::size_t at = static_cast<std::size_t>(read_ % capacity_);
    return {data_ + at, std::min({here, bytes, kPiece, capacity_ - at})};
  }
  void take(std::size_t bytes) { read_ += whole_lines(bytes); }

  // Gives the sender the room of what was taken; whether there was any.
  bool release() {
    if (released_ == read_) return false;
    released_ = read_;
    control_->read.store(read_, std::memory_order_release);
    return true;
  }

 private:
  RingControl* control_ = nullptr;
  const char* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t written_ = 0, read_ = 0, released_ = 0;
};

}  // namespace tune::shared_memory
