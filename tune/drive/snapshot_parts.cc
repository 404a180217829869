#include "tune/drive/snapshot_parts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/wire.h"

namespace tune {

namespace {

constexpr const char* kName = "snapshot";
constexpr const char* kPartsName = "snapshot.parts";

// The value that stands for a snapshot in parts: a map, which no snapshot in one value is.
struct List {
  std::uint64_t bytes = 0;  // of all parts together
  std::vector<std::string> parts;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.bytes, s.parts);
  }
};
constexpr std::string_view kListKey = "parts";

std::string packed(const List& list) {
  PackWriter out;
  out.map(1);
  out.text(kListKey);
  encode(out, list);
  return out.take();
}

bool is_list(std::string_view value) {
  PackReader in(value);
  return !value.empty() && in.peek() == PackReader::Type::kMap;
}

List unpacked_list(std::string_view value) {
  PackReader in(value);
  List list;
  if (in.map() != 1 || in.text() != kListKey) detail::bad_message("list of parts", 0, 1);
  decode(in, list);
  in.expect_end();
  if (list.parts.size() > SnapshotParts::kMaxParts) {
    detail::bad_message("number of parts", list.parts.size(), SnapshotParts::kMaxParts);
  }
  return list;
}

}  // namespace

bool SnapshotParts::is_in(Store& store) {
  return store.get(kName).has_value();
}

// A driver that stores another snapshot meanwhile removes the parts of the one that is being read.
std::optional<std::string> SnapshotParts::read() {
  std::optional<std::string> value = store_.get(kName);
  while (value && is_list(*value)) {
    const List list = unpacked_list(*value);
    std::string bytes;
    std::string missing;
    for (const std::string& name : list.parts) {
      const std::optional<std::string> part = store_.get(name);
      if (!part) missing = name;
      if (!part || bytes.size() + part->size() > list.bytes) break;
      bytes += *part;
    }
    if (bytes.size() == list.bytes) return bytes;
    std::optional<std::string> now = store_.get(kName);
    if (now == value) {
      throw Error(
          ErrorCode::kProtocol,
          fmt::format("{} of its {} bytes are there{}{}", bytes.size(), list.bytes,
                      missing.empty() ? "" : ", the first part that is missing is ", missing));
    }
    value = std::move(now);
  }
  return value;
}

void SnapshotParts::write(std::string_view bytes, EntryId through) {
  learn_parts();
  if (bytes.size() <= part_bytes_) {
    store_.put_and_trim(kName, bytes, through);
    return remember({});
  }
  std::vector<std::string> parts = write_parts(bytes, through);
  store_.put_and_trim(kName, packed({bytes.size(), parts}), through);
  remember(std::move(parts));
}

std::vector<std::string> SnapshotParts::write_parts(std::string_view bytes, EntryId through) {
  const std::size_t count = (bytes.size() + part_bytes_ - 1) / part_bytes_;
  if (count > kMaxParts) {
    throw Error(ErrorCode::kStore,
                fmt::format("storing the snapshot: {} bytes, at most {} are allowed", bytes.size(),
                            kMaxParts * part_bytes_));
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < count; ++i) {
    parts.push_back(fmt::format("{}.{}.{}", kName, to_string(through), i));
  }
  std::vector<std::string> there = *there_;
  for (const std::string& part : parts) {
    if (std::ranges::find(there, part) == there.end()) there.push_back(part);
  }
  if (there != *there_) store_.put(kPartsName, encoded(there));
  there_ = std::move(there);
  for (std::size_t i = 0; i < count; ++i) {
    store_.put(parts[i], bytes.substr(i * part_bytes_, part_bytes_));
  }
  return parts;
}

void SnapshotParts::learn_parts() {
  if (there_) return;
  const std::optional<std::string> known = store_.get(kPartsName);
  std::vector<std::string> there;
  if (known) there = decoded<std::vector<std::string>>(*known);
  // A driver that did not know yet that it is superseded may have written over the former value.
  const std::optional<std::string> value = store_.get(kName);
  if (value && is_list(*value)) {
    for (std::string& name : unpacked_list(*value).parts) {
      if (std::ranges::find(there, name) == there.end()) there.push_back(std::move(name));
    }
  }
  there_ = std::move(there);
}

// From now on only these parts count.
void SnapshotParts::remember(std::vector<std::string> parts) {
  bool has_removed = false;
  for (const std::string& name : *there_) {
    if (std::ranges::find(parts, name) != parts.end()) continue;
    store_.remove(name);
    has_removed = true;
  }
  if (has_removed) store_.put(kPartsName, encoded(parts));
  there_ = std::move(parts);
}

}  // namespace tune
