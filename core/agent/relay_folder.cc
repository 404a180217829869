#include "core/agent/relay_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/process.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

FileDescriptor opened(const fs::path& path, int flags, const char* doing) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!file.is_open()) throw file_error(doing, path, errno);
  return file;
}

// As many as there are, up to `bytes`.
std::string read_at(const FileDescriptor& file, const fs::path& path, std::uint64_t offset,
                    std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t filled = 0;
  while (filled < bytes) {
    const ssize_t count = ::pread(file.get(), text.data() + filled, bytes - filled,
                                  static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error("reading", path, errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  text.resize(filled);
  return text;
}

void write_at(const FileDescriptor& file, const fs::path& path, std::uint64_t offset,
              std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error("writing", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

RelayFile described(const fs::path& path, std::string name) {
  const FileDescriptor file = opened(path, O_RDONLY, "reading");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw file_error("reading", path, errno);
  RelayFile found{std::move(name), false, 0, 0, status.st_mode & 0777u};
  constexpr std::size_t kPart = 1u << 20;
  while (true) {
    const std::string part = read_at(file, path, found.size, kPart);
    found.sum = crc32c(part, found.sum);
    found.size += part.size();
    if (part.size() < kPart) return found;
  }
}

bool is_same(const fs::path& one, const fs::path& other) {
  const RelayFile first = described(one, {}), second = described(other, {});
  return first.size == second.size && first.sum == second.sum;
}

// Moves what is in `from` to `to`, which may have some of it.
void merge(const fs::path& from, const fs::path& to, const std::string& host,
           const fs::path& within = {}) {
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path name = within / entry.path().filename();
    const fs::path there = to / entry.path().filename();
    const bool exists = fs::exists(there);
    if (exists && fs::is_directory(there) != entry.is_directory()) {
      throw PartsDiffer(host, name.string());
    }
    if (entry.is_directory()) {
      fs::create_directory(there);
      merge(entry.path(), there, host, name);
    } else if (!exists) {
      fs::rename(entry.path(), there);
    } else if (!is_same(entry.path(), there)) {
      throw PartsDiffer(host, name.string());
    }
  }
}

// An error of the standard library in the words of ours.
template <class What>
auto in_words(const char* doing, const fs::path& path, What what) try {
  return what();
} catch (const fs::filesystem_error& error) {
  throw file_error(doing, path, error.code().value());
}

}  // namespace

std::vector<RelayFile> RelayFolder::list(const std::string& folder) {
  const fs::path top = root_ / folder;
  return in_words("reading", top, [&] {
    std::vector<RelayFile> files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      const std::string name = entry.path().lexically_relative(top).string();
      if (entry.is_regular_file()) {
        files.push_back(described(entry.path(), name));
      } else if (entry.is_directory() && !entry.is_symlink()) {
        files.push_back({name, true});
      } else {
        throw Error(ErrorCode::kIo, fmt::format("reading {}: it is neither a file nor a folder, "
                                                "and cannot be carried to another machine",
                                                entry.path().string()));
      }
    }
    std::ranges::sort(files, {}, &RelayFile::path);
    return files;
  });
}

std::string RelayFolder::read(const std::string& file, std::uint64_t offset, std::size_t bytes) {
  const fs::path path = root_ / file;
  return read_at(opened(path, O_RDONLY, "reading"), path, offset, bytes);
}

void RelayFolder::begin(const RelayPlace& place, const std::vector<RelayFile>& files) {
  const fs::path folder = root_ / place.temporary;
  in_words("making", folder, [&] {
    fs::remove_all(folder);
    fs::create_directories(folder);
    for (const RelayFile& file : files) {
      const fs::path path = folder / file.path;
      fs::create_directories(file.is_folder ? path : path.parent_path());
      if (!file.is_folder) opened(path, O_WRONLY | O_CREAT | O_NOFOLLOW, "writing");
    }
  });
}

void RelayFolder::write(const std::string& file, std::uint64_t offset, std::string_view bytes) {
  const fs::path path = root_ / file;
  const FileDescriptor to = opened(path, O_WRONLY | O_NOFOLLOW, "writing");
  write_at(to, path, offset, bytes);
  // The disk begins now, so that the flush at the end is short. It may refuse: then it is not.
  ::sync_file_range(to.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes.size()),
                    SYNC_FILE_RANGE_WRITE);
}

void RelayFolder::commit(const RelayPlace& place, const std::vector<RelayFile>& files) {
  const fs::path folder = root_ / place.temporary;
  for (const RelayFile& file : files) {
    if (file.is_folder) continue;
    const fs::path path = folder / file.path;
    const RelayFile found = described(path, file.path);
    if (found.size != file.size || found.sum != file.sum) {
      throw Error(ErrorCode::kIo,
                  fmt::format("reading {} back: it has {} bytes with sum {:08x}, and {} with sum "
                              "{:08x} were sent",
                              path.string(), found.size, found.sum, file.size, file.sum));
    }
    if (::chmod(path.c_str(), (file.mode & 0777) | 0600) != 0) {
      throw file_error("writing", path, errno);
    }
  }
  flush_folder(folder);
  const fs::path final_place = root_ / place.place;
  put_folder_in_place(folder, final_place, root_ / place.aside);
  flush_path(final_place.parent_path());
}

// It ends with the name, which is given once; what is left of the parts goes after that. So
// whatever is found tells how far it has come.
void RelayFolder::join(const RelayPlace& place, const std::vector<RelayPart>& parts) {
  const fs::path folder = root_ / place.temporary, whole = root_ / place.place;
  in_words("putting together", whole, [&] {
    const auto is_there = [&](const RelayPart& part) { return fs::exists(root_ / part.folder); };
    const auto missing = std::ranges::find_if_not(parts, is_there);
    if (fs::exists(whole) && !fs::exists(folder)) return;  // it was done before
    if (missing != parts.end()) {
      throw Error(ErrorCode::kIo, fmt::format("putting together {}: the part of {} is not there",
                                              whole.string(), missing->host));
    }
    fs::create_directories(folder);
    for (const RelayPart& part : parts) merge(root_ / part.folder, folder, part.host);
    flush_folder(folder);
    put_folder_in_place(folder, whole, root_ / place.aside);
    flush_path(whole.parent_path());
  });
  std::error_code ignored;
  for (const RelayPart& part : parts) fs::remove_all(root_ / part.folder, ignored);
}

void RelayFolder::move(const std::string& from, const std::string& to) {
  in_words("renaming", root_ / from, [&] {
    fs::create_directories((root_ / to).parent_path());
    fs::rename(root_ / from, root_ / to);
  });
}

void RelayFolder::remove(const std::string& file_or_folder) noexcept {
  const fs::path path = root_ / file_or_folder;
  const fs::path gone = path.parent_path() / removed_checkpoint_name(path.filename().string());
  std::error_code error;
  fs::rename(path, gone, error);  // a folder under its name is complete
  fs::remove_all(error ? path : gone, error);
}

std::vector<std::string> RelayFolder::names(const std::string& folder) noexcept {
  std::vector<std::string> found;
  std::error_code ends;
  for (auto entry = fs::directory_iterator(root_ / folder, ends);
       !ends && entry != fs::directory_iterator(); entry.increment(ends)) {
    found.push_back(entry->path().filename());
  }
  return found;
}

std::uint64_t RelayFolder::size(const std::string& file) {
  struct stat status {};
  if (::stat((root_ / file).c_str(), &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t RelayFolder::append(const std::string& file, std::optional<std::uint64_t> after,
                                  std::string_view bytes) {
  const fs::path path = root_ / file;
  in_words("making", path.parent_path(), [&] { fs::create_directories(path.parent_path()); });
  const FileDescriptor to = opened(path, O_RDWR | O_CREAT | O_NOFOLLOW, "writing");
  struct stat status {};
  if (::fstat(to.get(), &status) != 0) throw file_error("writing", path, errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (after && *after < size && size - *after <= bytes.size()) {
    const std::string end = read_at(to, path, *after, static_cast<std::size_t>(size - *after));
    bytes.remove_prefix(already_there(end, bytes));
  }
  write_at(to, path, size, bytes);
  return size + bytes.size();
}

}  // namespace tune
