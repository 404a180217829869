#include "core/platform/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace tune {

namespace fs = std::filesystem;

namespace {

const char* remedy(int cause) {
  switch (cause) {
    case ENOSPC:
    case EDQUOT:
      return ": free some space, then resume";
    case EFBIG:
      return ": the limit on file sizes (ulimit -f) is too small";
    case EMFILE:
    case ENFILE:
      return ": raise the limit on open files (ulimit -n)";
    case EACCES:
    case EPERM:
    case EROFS:
      return ": choose a folder you may write to";
    default:
      return "";
  }
}

void write_all(int descriptor, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error(fmt::format("writing {} bytes to", text.size()), path, errno);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

FileDescriptor open_file(const fs::path& path, int flags, const char* doing) {
  FileDescriptor file(open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file.is_open()) throw file_error(doing, path, errno);
  return file;
}

}  // namespace

Error file_error(const std::string& doing, const fs::path& path, int cause) {
  return Error(ErrorCode::kIo, fmt::format("{} {}: {}{}", doing, path.string(),
                                           std::strerror(cause), remedy(cause)));
}

std::string read_file(const fs::path& path) {
  const FileDescriptor file = open_file(path, O_RDONLY, "reading");
  std::string text;
  char buffer[16384];
  while (true) {
    const ssize_t count = read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error("reading", path, errno);
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

std::string read_if_there(const fs::path& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return {};
  }
}

void write_file_atomically(const fs::path& path, std::string_view text, Readers readers) {
  ReplacedFile file(path, readers);
  file.write(text);
  file.commit();
}

ReplacedFile::ReplacedFile(const fs::path& path, Readers readers) : path_(path), temporary_(path) {
  temporary_ += fmt::format(".tmp-{}", getpid());
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const mode_t mode = readers == Readers::kOwnerOnly ? 0600 : 0666;
  unlink(temporary_.c_str());  // an old file would keep its mode
  file_.reset(open(temporary_.c_str(), flags, mode));
  if (!file_.is_open()) throw file_error("writing", path, errno);
}

ReplacedFile::~ReplacedFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void ReplacedFile::write(std::string_view text) {
  write_all(file_.get(), text, path_);
}

void ReplacedFile::commit(Flush flush) {
  if (flush == Flush::kYes && fsync(file_.get()) != 0) throw file_error("flushing", path_, errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw file_error("renaming a temporary file to", path_, errno);
  }
  temporary_.clear();
}

void put_folder_in_place(const fs::path& fresh, const fs::path& place, const fs::path& aside) {
  if (rename(fresh.c_str(), place.c_str()) == 0) return;
  if (errno != ENOTEMPTY && errno != EEXIST) throw file_error("renaming", fresh, errno);
  fs::path former = fresh;
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) != 0) {
    former = aside;
    if (rename(place.c_str(), aside.c_str()) != 0) throw file_error("renaming", place, errno);
    if (rename(fresh.c_str(), place.c_str()) != 0) {
      const int cause = errno;
      rename(aside.c_str(), place.c_str());
      throw file_error("renaming", fresh, cause);
    }
  }
  std::error_code ignored;
  fs::remove_all(former, ignored);
}

void replace_folder(const fs::path& directory, const std::string& marker,
                    const std::function<void(const fs::path& folder)>& write) {
  // The folder that "model/", "model/." or a link to it stands for.
  fs::path place = fs::weakly_canonical(fs::absolute(directory).lexically_normal());
  if (!place.has_filename()) place = place.parent_path();
  const auto refuse = [&](const char* why) {
    return Error(
        ErrorCode::kBadInput,
        fmt::format("saving to {}: {}: give the name of a new folder", place.string(), why));
  };
  if (!place.has_filename()) throw refuse("this is not a folder of its own");
  if (fs::exists(place)) {
    if (!fs::is_directory(place)) throw refuse("this is a file");
    if (fs::equivalent(place, fs::current_path())) throw refuse("this is the current folder");
    if (!fs::is_empty(place) && !fs::exists(place / marker)) {
      throw refuse("it holds other things, which would be lost");
    }
  }
  const auto beside = [&](const char* ending) {
    return place.parent_path() /
           fmt::format(".{}.{}-{}", place.filename().string(), ending, getpid());
  };
  const fs::path fresh = beside("tmp");
  try {
    fs::remove_all(fresh);
    fs::create_directories(fresh);
    write(fresh);
    flush_folder(fresh);
    put_folder_in_place(fresh, place, beside("old"));
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    if (const auto* refused = dynamic_cast<const fs::filesystem_error*>(&error)) {
      throw file_error("writing", fresh, refused->code().value());
    }
    throw;
  }
  flush_path(place.parent_path());
}

void flush_path(const fs::path& path) {
  const FileDescriptor file = open_file(path, O_RDONLY, "flushing");
  // Some file systems cannot flush a folder (EINVAL); it is then as durable as it gets.
  if (fsync(file.get()) != 0 && errno != EINVAL) throw file_error("flushing", path, errno);
}

void flush_file_system(const fs::path& path) {
  const FileDescriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened.is_open() || syncfs(opened.get()) != 0) throw file_error("flushing", path, errno);
}

bool file_holds(const fs::path& path, std::string_view text) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 &&
         static_cast<std::size_t>(status.st_size) == text.size() && read_file(path) == text;
}

void cut_file(const fs::path& path, std::uint64_t bytes) {
  struct stat status {};
  const bool is_there = stat(path.c_str(), &status) == 0;
  const auto found = is_there ? static_cast<std::uint64_t>(status.st_size) : 0;
  if (found < bytes) {
    throw Error(ErrorCode::kIo,
                fmt::format("going on with {}: it has {} bytes and had {}: put the file back, or "
                            "begin anew with --fresh",
                            path.string(), found, bytes));
  }
  if (found > bytes && truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) {
    throw file_error(fmt::format("cutting to {} bytes", bytes), path, errno);
  }
}

void flush_folder(const fs::path& directory) {
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    const fs::file_type type = entry->symlink_status(error).type();
    if (type == fs::file_type::regular || type == fs::file_type::directory) {
      flush_path(entry->path());
    }
    if (!error) entry.increment(error);
  }
  if (error) throw file_error("flushing", directory, error.value());
  flush_path(directory);
}

std::string tail_lines(const fs::path& path, std::size_t lines, std::size_t bytes) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const off_t size = file.is_open() ? lseek(file.get(), 0, SEEK_END) : 0;
  if (size <= 0) return {};
  const auto wanted = std::min<off_t>(size, static_cast<off_t>(bytes));
  std::string text(static_cast<std::size_t>(wanted), '\0');
  const ssize_t count = pread(file.get(), text.data(), text.size(), size - wanted);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  std::size_t begin = text.size();
  for (std::size_t seen = 0; begin > 0 && seen < lines; --begin) {
    const bool line_ends = text[begin - 1] == '\n' && begin != text.size();
    if (line_ends && ++seen == lines) break;
  }
  return text.substr(begin);
}

AppendFile::AppendFile(const fs::path& path, bool truncate)
    : path_(path),
      file_(open_file(path, O_WRONLY | O_CREAT | O_APPEND | (truncate ? O_TRUNC : 0), "opening")) {}

void AppendFile::write(std::string_view text) {
  write_all(file_.get(), text, path_);
}

}  // namespace tune
