// SnapshotParts: a journal's snapshot in its store, however large it is.
//
// A small snapshot is one value. A larger one is cut into parts, each a value with a name of its
// own, and the value named "snapshot" lists them. That list is written together with the trimming
// of the entries that the snapshot stands for, both or neither: until then the former snapshot and
// all its parts stand, from then on the new one. A driver that is killed meanwhile leaves parts
// that no list names. The value "snapshot.parts", written before any of them, names these, and the
// next snapshot removes them.
//
// The simpler ways fail. One value for all was not written at all above the limit of the server,
// and the journal grew for ever. Writing all parts in one transaction holds them all in the
// server's memory twice, and its other clients wait for as long.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/store.h"

namespace tune {

class SnapshotParts {
 public:
  static constexpr std::size_t kPartBytes = 16u << 20;
  static constexpr std::size_t kMaxParts = 4096;

  explicit SnapshotParts(Store& store, std::size_t part_bytes = kPartBytes)
      : store_(store), part_bytes_(part_bytes) {}

  static bool is_in(Store& store);

  // The whole snapshot; nothing: there is none. Throws Error (kProtocol) when a part is missing or
  // the list cannot be read.
  std::optional<std::string> read();
  // Writes it in place of the former snapshot and of all entries up to `through`. When it throws
  // the former one stands, or, in doubt, the new one; then it may be called again. Throws as
  // Store::put_and_trim, and Error (kStore) above kMaxParts parts.
  void write(std::string_view bytes, EntryId through);
  // The store may have changed: the server may have gone back in time.
  void forget() { there_.reset(); }

 private:
  std::vector<std::string> write_parts(std::string_view bytes, EntryId through);
  void learn_parts();
  void remember(std::vector<std::string> parts);

  Store& store_;
  std::size_t part_bytes_;
  std::optional<std::vector<std::string>> there_;  // parts that may be in the store
};

}  // namespace tune
