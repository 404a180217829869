// Files and folders: helpers beyond std::filesystem that several parts need. Errors are tune::Error
// (kIo) that name the path, the cause and, where there is one, the remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/platform/process.h"

namespace tune {

// The error for a failed call on a path, from errno: "writing results/x: No space left on device:
// free some space".
Error file_error(const std::string& doing, const std::filesystem::path& path, int cause);

std::string read_file(const std::filesystem::path& path);
// The same of a file that may be missing or unreadable: empty then.
std::string read_if_there(const std::filesystem::path& path);
enum class Readers { kAsUsual, kOwnerOnly };  // as the umask says; nobody else, at no moment
// Whole or not at all: a temporary file beside it, flushed, then renamed.
void write_file_atomically(const std::filesystem::path& path, std::string_view text,
                           Readers readers = Readers::kAsUsual);
enum class Flush { kYes, kNo };  // kNo: a power failure may leave it empty
// The same in pieces: takes the place of `path` by commit(); without it nothing of it stays.
class ReplacedFile {
 public:
  explicit ReplacedFile(const std::filesystem::path& path, Readers readers = Readers::kAsUsual);
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  void write(std::string_view text);
  void commit(Flush flush = Flush::kYes);

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: it has its name
  FileDescriptor file_;
};
// Renames a folder, which may take the place of another; nothing of the former one stays. The two
// are swapped, so that a complete folder stands there all the time. Where the file system cannot
// swap, the former one is moved to `aside` first. Not flushed.
void put_folder_in_place(const std::filesystem::path& fresh, const std::filesystem::path& place,
                         const std::filesystem::path& aside);
// Lets `write` fill a folder, and puts it in the place of `directory` once it is complete and on
// disk. A folder that is there already must be empty or hold the file `marker`: otherwise throws
// Error (kBadInput) before anything is written. After an error the former folder is still there.
void replace_folder(const std::filesystem::path& directory, const std::string& marker,
                    const std::function<void(const std::filesystem::path& folder)>& write);
// Every file and folder below, and the folder itself, is on disk when it returns.
void flush_folder(const std::filesystem::path& directory);
void flush_path(const std::filesystem::path& path);
// Everything written so far to the file system that holds the path is on disk when it returns.
void flush_file_system(const std::filesystem::path& path);
// Whether the file has exactly this content.
bool file_holds(const std::filesystem::path& path, std::string_view text);
// Removes the content of a file beyond this many bytes; a missing file has none. A shorter file is
// an Error: recorded content is gone.
void cut_file(const std::filesystem::path& path, std::uint64_t bytes);
// The last lines of a file, at most so many lines and bytes; empty when it cannot be read.
std::string tail_lines(const std::filesystem::path& path, std::size_t lines, std::size_t bytes);

// A file that text is appended to in large pieces. Not flushed to disk.
class AppendFile {
 public:
  AppendFile() = default;
  // Creates it when it is not there; truncates it first when told so.
  AppendFile(const std::filesystem::path& path, bool truncate);
  bool is_open() const { return file_.is_open(); }
  void write(std::string_view text);  // all of it, or an Error
  void close() { file_.reset(); }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace tune
