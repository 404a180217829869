// A folder in an object store: its files, one after another, are cut into pieces of bounded size,
// an object each, whose name is the sum of its bytes; a manifest, written last, makes it complete.
// So a folder that is written again never damages the one that is there, and nothing has to be held
// in memory but a piece. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/object_store.h"
#include "core/relay_contract.h"

namespace tune {

inline constexpr std::uint64_t kObjectPieceBytes = 8u << 20;
inline constexpr std::size_t kMaxObjectPieces = 100'000;  // of a folder: 781 GiB

struct ObjectManifest {
  std::uint64_t piece_bytes = kObjectPieceBytes;
  std::vector<std::string> pieces;  // their sums, SHA-256 in hexadecimal digits
  std::vector<RelayFile> files;
  friend bool operator==(const ObjectManifest&, const ObjectManifest&) = default;
};
std::string to_text(const ObjectManifest& manifest);
// Throws Error (kIo), also when its files may not be written or its pieces do not make them up.
ObjectManifest manifest_from(const std::string& text, const std::string& what);

// Objects of the folder `folder` ("0a1b2_00000/checkpoint_000010").
std::string manifest_name(const std::string& folder);
std::string piece_name(const std::string& folder, const std::string& sum);

// A part of a file that lies within a piece.
struct FilePart {
  std::size_t file;
  std::uint64_t offset;  // in the file
  std::uint64_t bytes;
};
// The files' content is as many pieces as this.
std::uint64_t count_of_pieces(const std::vector<RelayFile>& files, std::uint64_t piece_bytes);
std::vector<FilePart> parts_of_piece(const std::vector<RelayFile>& files, std::uint64_t piece_bytes,
                                     std::uint64_t piece);

// Reads a piece and checks its sum. Throws ObjectError.
std::string read_piece(ObjectStore& store, const std::string& folder, const std::string& sum);

// The complete folders below `folder` ("0a1b2_00000"), by name.
std::set<std::string> complete_folders(ObjectStore& store, const std::string& folder);
// Removes these objects of one folder; the manifest goes first, so that it is never complete in
// part.
void remove_objects(ObjectStore& store, std::vector<std::string> names);
void remove_folder(ObjectStore& store, const std::string& folder);

}  // namespace tune
