#include "trainables/torch/tar_file.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/error.h"

namespace tune {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kMaxHeaderBytes = 1u << 20;  // of a long name or a pax header

// Where a header has what: offset and length.
struct Field {
  std::size_t offset, length;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kMagic{257, 6}, kPrefix{345, 155};
constexpr std::size_t kType = 156;

std::string_view text_of(std::string_view header, const Field& field) {
  const std::string_view text = header.substr(field.offset, field.length);
  return text.substr(0, text.find('\0'));
}

// Octal digits, or with the first bit set the bytes of a number.
std::optional<std::uint64_t> number_of(std::string_view header, const Field& field) {
  std::string_view text = header.substr(field.offset, field.length);
  std::uint64_t number = 0;
  if ((static_cast<unsigned char>(text[0]) & 0x80u) != 0) {
    for (const char byte : text.substr(1)) {
      if (number >> 56 != 0) return std::nullopt;
      number = number << 8 | static_cast<unsigned char>(byte);
    }
    return number;
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find_first_of(std::string_view(" \0", 2)));
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, 8);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// The sum of a header's bytes, of which the checksum's own count as spaces.
bool is_header(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool is_sum = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    sum += is_sum ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return number_of(header, kChecksum) == sum;
}

std::string name_of(std::string_view header) {
  const std::string name(text_of(header, kName));
  if (text_of(header, kMagic) != "ustar") return name;  // GNU's has other things in the prefix
  const std::string_view prefix = text_of(header, kPrefix);
  return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

// "27 path=a/very/long/name\n", one after the other; of a key that stands twice the last.
std::optional<std::string> pax_value(std::string_view records, std::string_view key) {
  std::optional<std::string> value;
  while (!records.empty()) {
    std::size_t length = 0;
    const auto read = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(read.ptr - records.data());
    if (read.ec != std::errc() || length <= digits + 1 || length > records.size()) break;
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (record.substr(0, equals) == key && equals != std::string_view::npos) {
      value = std::string(record.substr(equals + 1));
    }
    records.remove_prefix(length);
  }
  return value;
}

}  // namespace

void TarWalk::refuse(const std::string& cause) const {
  throw Error(ErrorCode::kBadInput,
              "reading the tar file " + file_ + " at byte " + std::to_string(at_) + ": " + cause);
}

std::string_view TarWalk::part(std::uint64_t begin, std::uint64_t bytes) {
  if (begin > end_ || bytes > end_ - begin) refuse("it is cut off");
  return read_(begin, static_cast<std::size_t>(bytes));
}

std::optional<TarMember> TarWalk::next() {
  TarMember member{.begin = at_};
  std::optional<std::string> long_name;
  std::optional<std::uint64_t> long_size;
  while (at_ < end_) {
    const std::string header(part(at_, kBlock));
    if (header.starts_with("\x1f\x8b")) refuse("it is compressed: gzip -d unpacks it");
    has_ended_ = header.find_first_not_of('\0') == std::string::npos;
    if (has_ended_) return std::nullopt;
    if (!is_header(header)) refuse("there is no header of a tar file");
    auto size = number_of(header, kSize);
    const char type = header[kType];
    const bool is_about_next = type == 'x' || type == 'L' || type == 'g' || type == 'K';
    if (!is_about_next && long_size) size = long_size;
    if (!size || *size > std::numeric_limits<std::int64_t>::max() - kBlock) {
      refuse("a header has no size that can be read");
    }
    const std::uint64_t data = at_ + kBlock;
    const std::uint64_t end = data + (*size + kBlock - 1) / kBlock * kBlock;
    if (*size > 0 && (data > end_ || *size > end_ - data)) refuse("it is cut off");
    if (is_about_next) {
      if (*size > kMaxHeaderBytes) refuse("a header of " + std::to_string(*size) + " bytes");
      const std::string text(part(data, *size));
      if (type == 'L') long_name = text.substr(0, text.find('\0'));
      if (type == 'x') {
        if (const auto path = pax_value(text, "path")) long_name = path;
        if (const auto given = pax_value(text, "size")) {
          std::uint64_t bytes = 0;
          std::from_chars(given->data(), given->data() + given->size(), bytes);
          long_size = bytes;
        }
      }
      at_ = end;
      continue;
    }
    at_ = end;
    if (type == '0' || type == '\0' || type == '7') {
      member.name = long_name.value_or(name_of(header));
      member.data = data;
      member.size = *size;
      member.end = end;
      return member;
    }
    member.begin = at_;  // a folder, a link
    long_name.reset();
    long_size.reset();
  }
  return std::nullopt;
}

}  // namespace tune
