// The members of a tar file, one after the other. Free of torch. Knows what tar, Python's tarfile
// and others write by default: ustar, GNU's long names and pax headers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tune {

struct TarMember {
  std::string name = {};    // with its folders
  std::uint64_t begin = 0;  // of its headers
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  std::uint64_t end = 0;  // where the next begins
};

// Walks over the bytes from `begin` to `end` of a file.
class TarWalk {
 public:
  // Gives that part of the file; it lies within `end`. The view holds until the next call.
  using Read = std::function<std::string_view(std::uint64_t begin, std::size_t bytes)>;

  // `file` is for the words of errors.
  TarWalk(std::string file, Read read, std::uint64_t begin, std::uint64_t end)
      : file_(std::move(file)), read_(std::move(read)), at_(begin), end_(end) {}

  // The next regular file; nothing at the end. Throws Error (kBadInput) that names the file when it
  // is not a tar, is compressed, broken or cut off.
  std::optional<TarMember> next();
  // Whether the mark of a file's end has come. Without it, what followed may be missing.
  bool has_ended() const { return has_ended_; }

 private:
  std::string_view part(std::uint64_t begin, std::uint64_t bytes);
  [[noreturn]] void refuse(const std::string& cause) const;

  std::string file_;
  Read read_;
  std::uint64_t at_;
  std::uint64_t end_;
  bool has_ended_ = false;
};

}  // namespace tune
