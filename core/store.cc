#include "core/store.h"

#include <charconv>

#include <fmt/format.h>

namespace tune {

std::string to_string(EntryId id) {
  return fmt::format("{}-{}", id.epoch, id.sequence);
}

std::optional<EntryId> parse_entry_id(std::string_view text) {
  EntryId id;
  const char* end = text.data() + text.size();
  const auto epoch = std::from_chars(text.data(), end, id.epoch);
  if (epoch.ec != std::errc() || epoch.ptr == end || *epoch.ptr != '-') return std::nullopt;
  const auto sequence = std::from_chars(epoch.ptr + 1, end, id.sequence);
  if (sequence.ec != std::errc() || sequence.ptr != end) return std::nullopt;
  return id;
}

void refuse_too_large(std::size_t bytes, std::string_view doing) {
  if (bytes <= Store::kMaxPayloadBytes) return;
  throw Error(ErrorCode::kStore, fmt::format("{}: {} bytes at once, at most {} are allowed", doing,
                                             bytes, Store::kMaxPayloadBytes));
}

}  // namespace tune
