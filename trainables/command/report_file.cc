#include "trainables/command/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "trainables/failure.h"

namespace tune {
namespace {

constexpr std::size_t kChunkBytes = 64u << 10;

}  // namespace

ReportFile::ReportFile(std::filesystem::path path, std::uint32_t attempt) : path_(std::move(path)) {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) return;
  const std::string aside = fmt::format("{}.a{}", path_.string(), attempt > 1 ? attempt - 1 : 0);
  std::filesystem::rename(path_, aside, error);
  if (error) {
    throw AttemptFailure(fmt::format("setup: moving {} of an earlier attempt aside: {}",
                                     path_.string(), error.message()));
  }
}

// Whether the file at the path can be read on from offset_.
bool ReportFile::open_again() {
  struct stat named {};
  if (::stat(path_.c_str(), &named) != 0) return file_.is_open();
  const bool is_another = !file_.is_open() || named.st_ino != inode_;
  if (is_another) {
    file_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file_.is_open()) return false;
  }
  const bool is_shorter = static_cast<std::uint64_t>(named.st_size) < offset_;
  inode_ = named.st_ino;
  if (is_another || is_shorter) {
    offset_ = 0;
    lines_ = LineBuffer();
  }
  return true;
}

bool ReportFile::read() {
  if (!open_again()) return false;
  bytes_.resize(kChunkBytes);
  ssize_t count = 0;
  do count = ::pread(file_.get(), bytes_.data(), bytes_.size(), static_cast<off_t>(offset_));
  while (count < 0 && errno == EINTR);
  if (count <= 0) return false;
  offset_ += static_cast<std::uint64_t>(count);
  lines_.append({bytes_.data(), static_cast<std::size_t>(count)});
  return true;
}

}  // namespace tune
