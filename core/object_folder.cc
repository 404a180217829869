#include "core/object_folder.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "core/json.h"
#include "core/sha256.h"
#include "core/value.h"

namespace tune {

namespace {

constexpr std::int64_t kManifestFormat = 1;
constexpr std::int64_t kPartsFormat = 2;  // of several machines: "parts"
constexpr const char* kManifestFile = "manifest.json";

[[noreturn]] void bad_manifest(const std::string& what, const std::string& why) {
  throw Error(ErrorCode::kIo, fmt::format("reading {}: {}", what, why));
}

std::uint64_t count_at(const Value& value, const char* key) {
  const auto count = value.get<std::int64_t>(key);
  if (count < 0) throw Error(ErrorCode::kIo, fmt::format("{} is {}", key, count));
  return static_cast<std::uint64_t>(count);
}

bool is_sum(const std::string& text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

RelayFile file_from(const Value& value) {
  RelayFile file{value.get<std::string>("path")};
  file.is_folder = value.get_or("folder", false);
  if (file.is_folder) return file;
  file.size = count_at(value, "size");
  file.sum = static_cast<std::uint32_t>(count_at(value, "crc32c"));
  file.mode = static_cast<std::uint32_t>(count_at(value, "mode"));
  return file;
}

Value value_of(const ObjectManifest& manifest) {
  Value::List files;
  for (const RelayFile& file : manifest.files) {
    Value one = Value::make_map();
    one.set("path", file.path);
    if (file.is_folder) {
      one.set("folder", true);
    } else {
      one.set("size", file.size);
      one.set("crc32c", file.sum);
      one.set("mode", file.mode);
    }
    files.push_back(std::move(one));
  }
  Value value = Value::make_map();
  value.set("format", kManifestFormat);
  value.set("piece_bytes", manifest.piece_bytes);
  value.set("pieces", Value::make_list({manifest.pieces.begin(), manifest.pieces.end()}));
  value.set("files", Value::make_list(std::move(files)));
  return value;
}

// Throws Error.
ObjectManifest part_from(const Value& value, const std::string& what) {
  ObjectManifest manifest;
  try {
    manifest.piece_bytes = count_at(value, "piece_bytes");
    manifest.pieces = value.get<std::vector<std::string>>("pieces");
    for (const Value& file : value.get<std::vector<Value>>("files")) {
      manifest.files.push_back(file_from(file));
    }
  } catch (const Error& error) {
    bad_manifest(what, error.what());
  }
  if (const std::string why = why_not_relayed(manifest.files); !why.empty()) {
    bad_manifest(what, why);
  }
  if (!std::ranges::all_of(manifest.pieces, is_sum)) bad_manifest(what, "a sum in it is none");
  constexpr std::uint64_t kLargestPiece = 16u << 20;
  if (manifest.piece_bytes == 0 || manifest.piece_bytes > kLargestPiece) {
    bad_manifest(what, fmt::format("its pieces have {} bytes", manifest.piece_bytes));
  }
  const std::uint64_t pieces = count_of_pieces(manifest.files, manifest.piece_bytes);
  if (pieces != manifest.pieces.size()) {
    bad_manifest(what, fmt::format("it has {} pieces, and its files have {}",
                                   manifest.pieces.size(), pieces));
  }
  return manifest;
}

}  // namespace

std::string to_text(const ObjectParts& parts) {
  if (parts.size() == 1) return to_json(value_of(parts.front())) + "\n";
  Value::List all;
  for (const ObjectManifest& part : parts) all.push_back(value_of(part));
  Value value = Value::make_map();
  value.set("format", kPartsFormat);
  value.set("parts", Value::make_list(std::move(all)));
  return to_json(value) + "\n";
}

ObjectParts parts_from(const std::string& text, const std::string& what) {
  std::vector<Value> found;
  try {
    Value value = parse_json(text, what);
    const auto format = value.get<std::int64_t>("format");
    if (format != kManifestFormat && format != kPartsFormat) {
      bad_manifest(what, fmt::format("it has format {}, and this build reads {} and {}", format,
                                     kManifestFormat, kPartsFormat));
    }
    if (format == kPartsFormat) found = value.get<std::vector<Value>>("parts");
    if (format == kManifestFormat) found.push_back(std::move(value));
  } catch (const Error& error) {
    bad_manifest(what, error.what());
  }
  ObjectParts parts;
  for (const Value& part : found) parts.push_back(part_from(part, what));
  if (parts.empty()) bad_manifest(what, "it has no parts");
  if (const auto differing = find_difference(parts)) {
    bad_manifest(what, fmt::format("two of its parts have another file {}", differing->path));
  }
  if (const std::string why = why_not_relayed(files_of(parts)); !why.empty()) {
    bad_manifest(what, why);
  }
  return parts;
}

std::vector<RelayFile> files_of(const ObjectParts& parts) {
  std::vector<RelayFile> files;
  std::set<std::string_view> paths;
  for (const ObjectManifest& part : parts) {
    for (const RelayFile& file : part.files) {
      if (paths.insert(file.path).second) files.push_back(file);
    }
  }
  std::ranges::sort(files, {}, &RelayFile::path);
  return files;
}

std::optional<FilesDiffer> find_difference(const ObjectParts& parts) {
  std::map<std::string_view, const RelayFile*> known;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (const RelayFile& file : parts[part].files) {
      const auto [at, is_new] = known.try_emplace(file.path, &file);
      const RelayFile& first = *at->second;
      const bool is_same =
          file.is_folder == first.is_folder && file.size == first.size && file.sum == first.sum;
      if (!is_new && !is_same) return FilesDiffer{part, file.path};
    }
  }
  return std::nullopt;
}

std::string part_list_name(const std::string& folder, std::uint32_t node) {
  return fmt::format("{}/part-{}.json", folder, node);
}

std::string manifest_name(const std::string& folder) {
  return folder + "/" + kManifestFile;
}

std::string piece_name(const std::string& folder, const std::string& sum) {
  return folder + "/" + sum;
}

std::uint64_t count_of_pieces(const std::vector<RelayFile>& files, std::uint64_t piece_bytes) {
  std::uint64_t bytes = 0;
  for (const RelayFile& file : files) bytes += file.size;
  return bytes / piece_bytes + (bytes % piece_bytes == 0 ? 0 : 1);
}

std::vector<FilePart> parts_of_piece(const std::vector<RelayFile>& files, std::uint64_t piece_bytes,
                                     std::uint64_t piece) {
  const std::uint64_t begin = piece * piece_bytes, end = begin + piece_bytes;
  std::vector<FilePart> parts;
  std::uint64_t before = 0;  // bytes of the files so far
  for (std::size_t i = 0; i < files.size() && before < end; ++i) {
    const std::uint64_t from = std::max(begin, before);
    const std::uint64_t to = std::min(end, before + files[i].size);
    if (from < to) parts.push_back({i, from - before, to - from});
    before += files[i].size;
  }
  return parts;
}

std::string read_piece(ObjectStore& store, const std::string& folder, const std::string& sum) {
  std::string bytes = store.get(piece_name(folder, sum));
  if (to_hex(sha256(bytes)) == sum) return bytes;
  throw ObjectError(
      ObjectError::Kind::kRefused,
      fmt::format("reading {}: it has other bytes than were written", piece_name(folder, sum)));
}

bool is_end(const ObjectParts& parts, ObjectPosition& at) {
  while (at.part < parts.size() && at.piece == parts[at.part].pieces.size()) {
    ++at.part;
    at.piece = 0;
  }
  return at.part == parts.size();
}

void read_next(
    ObjectStore& store, const std::string& folder, const ObjectParts& parts, ObjectPosition& at,
    const std::function<void(const std::string&, std::uint64_t, std::string_view)>& write) {
  const ObjectManifest& manifest = parts[at.part];
  const std::string bytes = read_piece(store, folder, manifest.pieces[at.piece]);
  std::string_view rest = bytes;
  for (const FilePart& part : parts_of_piece(manifest.files, manifest.piece_bytes, at.piece)) {
    if (rest.size() < part.bytes) {
      throw ObjectError(ObjectError::Kind::kRefused,
                        fmt::format("reading {}: a piece is too short", folder));
    }
    write(manifest.files[part.file].path, part.offset, rest.substr(0, part.bytes));
    rest.remove_prefix(part.bytes);
  }
  ++at.piece;
}

std::set<std::string> complete_folders(ObjectStore& store, const std::string& folder) {
  std::set<std::string> found;
  const std::string end = std::string("/") + kManifestFile;
  for (const std::string& name : all_names(store, folder + "/")) {
    if (!name.ends_with(end)) continue;
    found.insert(name.substr(folder.size() + 1, name.size() - folder.size() - 1 - end.size()));
  }
  return found;
}

void remove_objects(ObjectStore& store, std::vector<std::string> names) {
  std::ranges::stable_partition(
      names, [](const std::string& name) { return name.ends_with(kManifestFile); });
  for (const std::string& name : names) store.remove(name);
}

void remove_folder(ObjectStore& store, const std::string& folder) {
  remove_objects(store, all_names(store, folder + "/"));
}

}  // namespace tune
