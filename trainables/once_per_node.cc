#include "trainables/once_per_node.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "trainables/failure.h"

namespace tune {
namespace {

// Held until destroyed or until the process is gone.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    int locked = descriptor_;
    while (locked >= 0 && (locked = ::flock(descriptor_, LOCK_EX)) != 0 && errno == EINTR) {
      locked = 0;
    }
    if (locked < 0) {
      const int cause = errno;
      if (descriptor_ >= 0) ::close(descriptor_);
      throw Error(ErrorCode::kIo, fmt::format("once_per_node: cannot lock {}: {}", path.string(),
                                              std::strerror(cause)));
    }
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() { ::close(descriptor_); }

 private:
  int descriptor_;
};

// The known outcomes of the function: "+" once it has run, "-<number of failures> <the last one>"
// while it has only thrown.
constexpr char kDone = '+';
constexpr char kFailed = '-';

struct Known {
  bool is_done = false;
  int failures = 0;
  std::string error;
};

Known read_outcome(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  Known known;
  const int kind = file.get();
  known.is_done = kind == kDone;
  if (kind == kFailed && file >> known.failures && file.get() == ' ') {
    known.error.assign(std::istreambuf_iterator<char>(file), {});
  }
  return known;
}

// By rename, so that the file is either complete or missing.
void write_outcome(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path fresh = path.string() + ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file || std::rename(fresh.c_str(), path.c_str()) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("once_per_node: cannot write {}: {}", path.string(),
                                            std::strerror(errno)));
  }
}

}  // namespace

void run_once(const std::filesystem::path& directory, const std::string& name,
              const std::function<void()>& function) {
  std::error_code ignored;  // the lock below reports a fault of the folder
  std::filesystem::create_directories(directory, ignored);
  const std::string key = fmt::format("once-{:016x}", hash64(name));
  const std::filesystem::path outcome = directory / (key + ".outcome");
  const int failures_before = read_outcome(outcome).failures;
  const FileLock lock(directory / (key + ".lock"));
  const Known known = read_outcome(outcome);
  if (known.is_done) return;
  // The function threw while this process waited. A process that comes later tries again.
  if (known.failures > failures_before) throw std::runtime_error(known.error);
  try {
    function();
  } catch (...) {
    write_outcome(
        outcome, fmt::format("{}{} {}", kFailed, known.failures + 1, describe_current_exception()));
    throw;
  }
  write_outcome(outcome, std::string(1, kDone));
}

}  // namespace tune
