#include "core/platform/files.h"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/refusal.h"
#include "every_step.h"
#include "file_calls.h"
#include "skip.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string marker, other;
};

Folder content_of(const fs::path& directory) {
  return {read_text(directory / "marker"), read_text(directory / "sub" / "other")};
}

void replace(const fs::path& directory, const std::string& content) {
  replace_folder(directory, "marker", [&](const fs::path& folder) {
    std::ofstream(folder / "marker") << content;
    fs::create_directory(folder / "sub");
    std::ofstream(folder / "sub" / "other") << content;
  });
}

TEST_CASE("a folder is replaced however its name is written") {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  fs::create_directory(folder.path() / "model.tmp");  // somebody's own
  fs::create_directory(model);
  fs::create_directory_symlink(model, folder.path() / "link");
  for (const char* name : {"model", "model/", "model/.", "model//", "x/../model", "link"}) {
    CAPTURE(name);
    replace(folder.path() / name, name);
    CHECK(content_of(model).marker == name);
    CHECK(content_of(model).other == name);
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 3);  // nothing else is left
  }
  CHECK(fs::is_symlink(folder.path() / "link"));
}

TEST_CASE("a folder of other things is never replaced") {
  const TemporaryFolder folder;
  const fs::path results = folder.path() / "results";
  fs::create_directory(results);
  std::ofstream(results / "thesis") << "text";
  std::ofstream(folder.path() / "file") << "text";
  const auto refused = [](const fs::path& directory) {
    return refusal([&] { replace(directory, "new"); });
  };
  CHECK_HAS(refused(results), "it holds other things, which would be lost");
  CHECK_HAS(refused(results / ""), "it holds other things, which would be lost");
  CHECK_HAS(refused(folder.path() / "file"), "this is a file");
  CHECK_HAS(refused("."), "this is the current folder");
  CHECK_HAS(refused("/"), "this is not a folder of its own");
  CHECK(read_text(results / "thesis") == "text");
}

TEST_CASE("a folder that cannot be written leaves the former one and nothing else") {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  replace(model, "old");
  const auto fail = [](const fs::path& fresh) {
    std::ofstream(fresh / "part") << "x";
    throw Error(ErrorCode::kProcess, "the workers are gone");
  };
  CHECK_HAS(refusal([&] { replace_folder(model, "marker", fail); }, ErrorCode::kProcess),
            "the workers are gone");
  CHECK(content_of(model).marker == "old");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  CHECK_HAS(refusal([] { replace("/proc/self/model", "x"); }, ErrorCode::kIo), "/proc/");
}

TEST_CASE("a folder is replaced whole, wherever the process is killed") {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  kill_at_every_step({.folder = folder.path(),
                      .prepare =
                          [&] {
                            fs::remove_all(model);
                            replace(model, "old");
                          },
                      .body = [&] { replace(model, "new"); },
                      .check =
                          [&](bool killed) {
                            const Folder found = content_of(model);
                            CHECK(found.marker == found.other);
                            CHECK((found.marker == "new" || (killed && found.marker == "old")));
                          }});
}

TEST_CASE("a file is written whole or stays as it was") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a";
  write_file_atomically(file, "one");
  write_file_atomically(file, std::string_view("t\0wo", 4));
  CHECK(read_file(file) == std::string_view("t\0wo", 4));
  fs::create_directory(folder.path() / "b");
  CHECK_HAS(refusal([&] { write_file_atomically(folder.path() / "b", "x"); }, ErrorCode::kIo),
            (folder.path() / "b").string());
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);  // nothing else is left
}

TEST_CASE("a file whose writer is killed at any step holds the old text or the new one") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a";
  const std::string before(5000, 'o');
  const std::string after(70000, 'n');
  int old = 0;
  int fresh = 0;
  const int steps =
      kill_at_every_step({.folder = folder.path(),
                          .prepare = [&] { write_file_atomically(file, before); },
                          .body = [&] { write_file_atomically(file, after); },
                          .check =
                              [&](bool killed) {
                                const std::string found = read_text(file);
                                CHECK((found == after || (killed && found == before)));
                                ++(found == after ? fresh : old);
                              }});
  if (steps == 0) return;
  CHECK(old > 4);  // open, write, fsync, before and after each
  CHECK(fresh > 1);
}

TEST_CASE("what gets its name by renaming is on the disk before") {
  const TemporaryFolder folder;
  const fs::path parent = fs::canonical(folder.path());
  Unflushed unflushed;
  const auto watch = [&](const std::function<void()>& body) {
    return watch_file_calls_of(body, parent, [&](const FileCall& call) {
      unflushed.note(call);
      return true;
    });
  };
  if (watch([&] { write_file_atomically(parent / "a", "text"); }) == Watched::kNotTraced) {
    return skip("processes may not be traced here");
  }
  CHECK(read_text(parent / "a") == "text");
  for (const char* text : {"old", "new"}) watch([&] { replace(parent / "model", text); });
  CHECK(content_of(parent / "model").marker == "new");
  CHECK(listed(unflushed.renamed_too_early()) == "");
  CHECK(listed(unflushed.names()) == "");  // the folder's flush is for all of its names
}

TEST_CASE("a file for its owner only is so at every step, also over one that others may read") {
  const mode_t former = ::umask(022);
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a";
  const auto for_others = [&] {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if ((entry.status().permissions() & (fs::perms::group_all | fs::perms::others_all)) !=
          fs::perms::none) {
        found.insert(entry.path().filename());
      }
    }
    return found;
  };
  kill_at_every_step({.folder = folder.path(),
                      .prepare = [&] { write_file_atomically(file, "public"); },
                      .body = [&] { write_file_atomically(file, "secret", Readers::kOwnerOnly); },
                      .check =
                          [&](bool) {
                            const bool is_old = read_text(file) == "public";
                            CHECK(for_others() ==
                                  (is_old ? std::set<std::string>{"a"} : std::set<std::string>{}));
                          }});
  write_file_atomically(file, "secret", Readers::kOwnerOnly);
  CHECK(for_others().empty());
  ::umask(former);
}

TEST_CASE("files that cannot be read or written are errors that name path and cause") {
  const TemporaryFolder folder;
  const std::string none = (folder.path() / "none/a").string();
  for (const std::string& message :
       {refusal([&] { read_file(none); }, ErrorCode::kIo),
        refusal([&] { write_file_atomically(none, "x"); }, ErrorCode::kIo),
        refusal([&] { AppendFile file(none, false); }, ErrorCode::kIo),
        refusal([&] { flush_path(none); }, ErrorCode::kIo),
        refusal([&] { flush_folder(none); }, ErrorCode::kIo)}) {
    CHECK_HAS(message, none);
    CHECK_HAS(message, "No such file");
    CHECK(message.find(".tmp-") == std::string::npos);  // a name that nobody gave
  }
  CHECK_HAS(refusal([&] { read_file(folder.path()); }, ErrorCode::kIo), "Is a directory");
}

TEST_CASE("an error says what helps") {
  struct Case {
    int cause;
    const char* remedy;
  };
  for (const Case& c :
       {Case{ENOSPC, "free some space"}, Case{EDQUOT, "free some space"}, Case{EMFILE, "ulimit -n"},
        Case{EFBIG, "ulimit -f"}, Case{EACCES, "a folder you may write to"}}) {
    CHECK_HAS(file_error("writing", "/a/b", c.cause).what(), c.remedy);
    CHECK_HAS(file_error("writing", "/a/b", c.cause).what(), "writing /a/b: ");
  }
}

TEST_CASE("a full disk is an error with its remedy") {
  if (!fs::exists("/dev/full")) return skip("no /dev/full here");
  AppendFile full("/dev/full", false);
  const std::string message = refusal([&] { full.write("abc"); }, ErrorCode::kIo);
  CHECK_HAS(message, "writing 3 bytes to /dev/full: No space left");
  CHECK_HAS(message, "free some space");
}

TEST_CASE("text is appended to what is there unless the file is begun anew") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a";
  {
    AppendFile file(path, false);
    file.write("one\n");
    AppendFile(path, false).write("two\n");
    file.write("three\n");
  }
  CHECK(read_file(path) == "one\ntwo\nthree\n");
  AppendFile file(path, true);
  file.write("four\n");
  file.close();
  CHECK_FALSE(file.is_open());
  CHECK(read_file(path) == "four\n");
}

TEST_CASE("the tail of a file is its last lines") {
  struct Case {
    const char* text;
    std::size_t lines, bytes;
    const char* tail;
  };
  for (const Case& c :
       {Case{"1\n2\n3\n4\n", 2, 100, "3\n4\n"}, Case{"1\n2", 1, 100, "2"},
        Case{"1\n2\n3\n4\n", 9, 100, "1\n2\n3\n4\n"}, Case{"1\n2\n3\n4\n", 9, 3, "\n4\n"},
        Case{"1\n\n\n", 2, 100, "\n\n"}, Case{"1\n2\n", 0, 100, ""}, Case{"", 5, 100, ""}}) {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "a") << c.text;
    CHECK(tail_lines(folder.path() / "a", c.lines, c.bytes) == c.tail);
  }
  CHECK(tail_lines("/nowhere/a", 1, 100).empty());
}

TEST_CASE("a folder with everything that may be in it can be flushed") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "a/b");
  std::ofstream(folder.path() / "a/b/file") << "x";
  fs::create_symlink("/nowhere", folder.path() / "a/dangling");
  fs::create_symlink(folder.path(), folder.path() / "a/loop");
  CHECK_NOTHROW(flush_folder(folder.path()));
  CHECK_NOTHROW(flush_path(folder.path() / "a/b/file"));
}

}  // namespace
}  // namespace tune::testing
