#include "core/object_folder.h"

#include <doctest/doctest.h>

#include <string>

#include "core/refusal.h"
#include "core/sha256.h"
#include "memory_objects.h"

namespace tune {
namespace {

using testing::refusal;

std::vector<RelayFile> files_of(std::vector<std::uint64_t> sizes) {
  std::vector<RelayFile> files;
  for (const std::uint64_t size : sizes) {
    files.push_back({"f" + std::to_string(files.size()), false, size, 7, 0644});
  }
  return files;
}

TEST_CASE("pieces cut the files, one after another, into equal parts") {
  for (const auto& sizes : std::vector<std::vector<std::uint64_t>>{
           {}, {0}, {10}, {3, 0, 4, 13}, {1, 1, 1, 1, 1, 1, 1}, {100, 0, 0, 1}}) {
    const std::vector<RelayFile> files = files_of(sizes);
    std::vector<std::uint64_t> next(files.size(), 0);
    const std::uint64_t pieces = count_of_pieces(files, 4);
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
      std::uint64_t bytes = 0;
      for (const FilePart& part : parts_of_piece(files, 4, piece)) {
        CHECK(part.offset == next[part.file]);
        next[part.file] += part.bytes;
        bytes += part.bytes;
      }
      CHECK(bytes <= 4);
      CHECK((bytes == 4 || piece + 1 == pieces));
    }
    for (std::size_t i = 0; i < files.size(); ++i) CHECK(next[i] == files[i].size);
  }
}

TEST_CASE("a manifest reads back, and one that may not be written is refused") {
  ObjectManifest manifest;
  manifest.piece_bytes = 4;
  manifest.files = files_of({3, 4});
  manifest.files.push_back({"empty", true});
  manifest.pieces = {to_hex(sha256("a")), to_hex(sha256("b"))};
  CHECK(parts_from(to_text(ObjectParts{manifest}), "m") == ObjectParts{manifest});

  const auto refused = [&](const std::function<void(ObjectManifest&)>& change) {
    ObjectManifest other = manifest;
    change(other);
    return refusal([&] { parts_from(to_text(ObjectParts{other}), "the manifest"); },
                   ErrorCode::kIo);
  };
  CHECK_HAS(refused([](ObjectManifest& m) { m.pieces.pop_back(); }),
            "reading the manifest: it has 1 pieces, and its files have 2");
  CHECK_HAS(refused([](ObjectManifest& m) { m.pieces[0] = "../../x"; }), "a sum in it is none");
  CHECK_HAS(refused([](ObjectManifest& m) { m.files[0].path = "../x"; }), "leaves its folder");
  CHECK_HAS(refused([](ObjectManifest& m) { m.piece_bytes = 0; }), "pieces have 0 bytes");
  CHECK_HAS(refused([](ObjectManifest& m) { m.piece_bytes = 1u << 30; }), "1073741824 bytes");
  for (const char* text : {"", "{", "[]", "{\"format\": 1}", "{\"format\": 2, \"pieces\": []}",
                           "{\"format\":1,\"piece_bytes\":-1,\"pieces\":[],\"files\":[]}",
                           "{\"format\":1,\"piece_bytes\":4,\"pieces\":[],\"files\":[3]}"}) {
    CAPTURE(text);
    CHECK_HAS(refusal([&] { parts_from(text, "the manifest"); }, ErrorCode::kIo),
              "reading the manifest");
  }
}

TEST_CASE("a damaged piece is refused, and a folder without its manifest is none") {
  MemoryObjects store;
  const std::string sum = to_hex(sha256("abc"));
  store.objects = {{"t/c1/manifest.json", "{}"},
                   {"t/c1/" + sum, "abc"},
                   {"t/c2/" + sum, "abd"},
                   {"tt/c3/manifest.json", "{}"}};
  CHECK(read_piece(store, "t/c1", sum) == "abc");
  CHECK_HAS(refusal([&] { read_piece(store, "t/c2", sum); }, ErrorCode::kIo), "other bytes");
  CHECK(complete_folders(store, "t") == std::set<std::string>{"c1"});
  store.requests.clear();
  remove_folder(store, "t/c1");
  CHECK(store.requests ==
        std::vector<std::string>{"list t/c1/", "remove t/c1/manifest.json", "remove t/c1/" + sum});
  CHECK(store.objects.size() == 2);
}

TEST_CASE("a listing goes on until all are listed") {
  MemoryObjects store;
  for (int i = 0; i < 2500; ++i) store.objects["p/" + std::to_string(10'000 + i)] = "";
  store.objects["q"] = "";
  CHECK(all_names(store, "p/").size() == 2500);
  CHECK(store.requests.size() == 3);
}

TEST_CASE("a store is proved by what it keeps and gives back") {
  MemoryObjects store;
  prove(store, "nonce");
  CHECK(store.objects.empty());
  store.forgets = true;
  CHECK_HAS(refusal([&] { prove(store, "nonce"); }, ErrorCode::kIo), "not");
}

TEST_CASE("a manifest of several parts reads back, and is refused where they do not fit") {
  ObjectManifest one, two;
  one.piece_bytes = two.piece_bytes = 4;
  one.files = {{"a", false, 3, 1, 0644}, {"same", false, 1, 7, 0644}};
  two.files = {{"b", false, 5, 2, 0644}, {"same", false, 1, 7, 0600}};
  one.pieces = {to_hex(sha256("a"))};
  two.pieces = {to_hex(sha256("b")), to_hex(sha256("c"))};
  const ObjectParts parts{one, two};
  CHECK(parts_from(to_text(parts), "m") == parts);
  CHECK(files_of(parts).size() == 3);
  ObjectParts differing = parts;
  differing[1].files[1].sum = 8;
  REQUIRE(find_difference(differing));
  CHECK(find_difference(differing)->part == 1);
  CHECK(find_difference(differing)->path == "same");
  CHECK_HAS(refusal([&] { parts_from(to_text(differing), "m"); }, ErrorCode::kIo),
            "another file same");
  differing = parts;
  differing[1].pieces.pop_back();
  CHECK_HAS(refusal([&] { parts_from(to_text(differing), "m"); }, ErrorCode::kIo), "1 pieces");
  CHECK_HAS(refusal([&] { parts_from("{\"format\": 2, \"parts\": []}", "m"); }, ErrorCode::kIo),
            "it has no parts");
  CHECK_HAS(refusal([&] { parts_from("{\"format\": 3}", "m"); }, ErrorCode::kIo),
            "this build reads 1 and 2");
}

}  // namespace
}  // namespace tune
