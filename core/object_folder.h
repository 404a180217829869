// A folder in an object store: its files, one after another, are cut into pieces of bounded size,
// an object each, whose name is the sum of its bytes; a manifest, written last, makes it complete.
// So a folder that is written again never damages the one that is there, and nothing has to be held
// in memory but a piece. Pure.
//
// A folder that several machines have written is a part of each: its own files and pieces. Each
// leaves a list of them, of the same form as a manifest, and the manifest is made of these lists. A
// file that several have written is the same in all.
#pragma once

#include <cstdint>
#include <functional>
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
using ObjectParts = std::vector<ObjectManifest>;  // of one machine, mostly
std::string to_text(const ObjectParts& parts);
// Throws Error (kIo), also when its files may not be written or its pieces do not make them up.
ObjectParts parts_from(const std::string& text, const std::string& what);
// The files of all parts, each once, by path.
std::vector<RelayFile> files_of(const ObjectParts& parts);
// A file that two parts have, and that is not the same in both.
struct FilesDiffer {
  std::size_t part;  // the later of the two
  std::string path;
};
std::optional<FilesDiffer> find_difference(const ObjectParts& parts);

// Objects of the folder `folder` ("0a1b2_00000/checkpoint_000010").
std::string manifest_name(const std::string& folder);
std::string part_list_name(const std::string& folder, std::uint32_t node);
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

// The next piece of a folder that is read from its beginning.
struct ObjectPosition {
  std::size_t part = 0;
  std::uint64_t piece = 0;
};
bool is_end(const ObjectParts& parts, ObjectPosition& at);  // passes parts that have no more
// Reads that piece, and calls write(path, offset, bytes) with what lies in it. Throws ObjectError,
// and Error (kIo) for a piece that is too short.
void read_next(
    ObjectStore& store, const std::string& folder, const ObjectParts& parts, ObjectPosition& at,
    const std::function<void(const std::string&, std::uint64_t, std::string_view)>& write);

// The complete folders below `folder` ("0a1b2_00000"), by name.
std::set<std::string> complete_folders(ObjectStore& store, const std::string& folder);
// Removes these objects of one folder; the manifest goes first, so that it is never complete in
// part.
void remove_objects(ObjectStore& store, std::vector<std::string> names);
void remove_folder(ObjectStore& store, const std::string& folder);

}  // namespace tune
