#include "core/platform/object_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/s3_request.h"
#include "core/sha256.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kPartBytes = 8u << 20;
constexpr milliseconds kFirstPause{200}, kLongestPause{10'000};
constexpr milliseconds kLockPause{50};
// One that brings an object longer than this is not waited for: both may.
constexpr std::chrono::minutes kLongestLock{10};
constexpr std::time_t kTouchAfter_s = 3600;
// Of a file that is being brought, which is written to all the while.
constexpr std::string_view kPart = ".part-";
constexpr std::time_t kPartIsOver_s = 3600;

fs::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (!variable("TUNE_DATA_CACHE").empty()) return variable("TUNE_DATA_CACHE");
  if (!variable("XDG_CACHE_HOME").empty()) return variable("XDG_CACHE_HOME") / "tune/data";
  if (!variable("HOME").empty()) return variable("HOME") / ".cache/tune/data";
  throw Error(ErrorCode::kBadInput,
              "keeping data of an object store: neither TUNE_DATA_CACHE nor HOME is set: set "
              "TUNE_DATA_CACHE to a folder with room for it");
}

Error cannot_keep(const std::string& address, const fs::path& path, int cause) {
  return Error(ErrorCode::kIo,
               fmt::format("keeping {} in {}: {}: set TUNE_DATA_CACHE to a folder with room for it",
                           address, path.string(), std::strerror(cause)));
}

void make_folder(const std::string& address, const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw cannot_keep(address, folder, failure.value());
}

// Held by the process that brings an object; the others wait, and find it then.
FileDescriptor lock_of(const std::string& address, const fs::path& file) {
  FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.is_open()) throw cannot_keep(address, file, errno);
  const auto until = SteadyClock::now() + kLongestLock;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && SteadyClock::now() < until) {
    std::this_thread::sleep_for(kLockPause);
  }
  return lock;
}

void write_all(const FileDescriptor& to, std::string_view bytes, const std::string& address,
               const fs::path& file) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(to.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw cannot_keep(address, file, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

struct Kept {
  fs::path file;
  std::time_t used = 0;
  std::uint64_t bytes = 0;
};

// All but what another process brings just now: it would lose what it has brought.
std::vector<Kept> all_kept(const fs::path& folder) {
  std::vector<Kept> all;
  const std::time_t now = std::time(nullptr);
  std::error_code failure;
  for (fs::recursive_directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    struct stat file {};
    if (::lstat(at->path().c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
    const bool is_part = at->path().filename().string().find(kPart) != std::string::npos;
    if (is_part && now - file.st_mtime < kPartIsOver_s) continue;
    all.push_back({at->path(), file.st_mtime, static_cast<std::uint64_t>(file.st_blocks) * 512});
  }
  std::ranges::sort(all, {}, &Kept::used);
  return all;
}

}  // namespace

ObjectCache::ObjectCache(const std::string& bucket, ObjectCacheOptions options)
    : options_(std::move(options)), process_(::getpid()) {
  const S3Address address = parse_s3_address(bucket);
  bucket_ = S3Address{address.bucket, ""}.text();
  if (options_.folder.empty()) options_.folder = cache_folder();
}

ObjectCache::~ObjectCache() = default;

// ---- The store ----------------------------------------------------------------------------------

// A connection that no other thread uses. Those of a process that forked this one stay its own.
class ObjectCache::Lease {
 public:
  explicit Lease(ObjectCache& cache) : cache_(cache) {
    const std::lock_guard lock(cache.mutex_);
    if (cache.process_ != ::getpid()) {
      for (auto& store : cache.idle_) static_cast<void>(store.release());
      cache.idle_.clear();
      cache.process_ = ::getpid();
    }
    if (cache.idle_.empty()) {
      store_ = std::make_unique<S3Store>(S3Place{cache.bucket_});
    } else {
      store_ = std::move(cache.idle_.back());
      cache.idle_.pop_back();
    }
  }
  ~Lease() {
    const std::lock_guard lock(cache_.mutex_);
    cache_.idle_.push_back(std::move(store_));
  }
  Lease(const Lease&) = delete;
  S3Store& operator*() { return *store_; }

 private:
  ObjectCache& cache_;
  std::unique_ptr<S3Store> store_;
};

template <class Ask>
auto ObjectCache::ask(const std::string& what, const Ask& ask) {
  const auto until = SteadyClock::now() + options_.patience;
  milliseconds pause = kFirstPause;
  for (bool is_said = false;; is_said = true) {
    try {
      Lease store(*this);
      return ask(*store);
    } catch (const ObjectError& error) {
      if (error.kind() != ObjectError::Kind::kAway) throw;
      const double seconds = std::chrono::duration<double>(options_.patience).count();
      if (SteadyClock::now() + pause >= until) {
        throw Error(ErrorCode::kIo,
                    fmt::format("{}: the store was away for {:g} s: {}", what, seconds, error.what()));
      }
      if (!is_said) {
        std::fprintf(stderr, "%s: the store is away, and is asked again for %g s: %s\n",
                     what.c_str(), seconds, error.what());
      }
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

std::vector<S3Object> ObjectCache::list(const std::string& prefix) {
  std::vector<S3Object> all;
  for (;;) {
    const std::string after = all.empty() ? "" : all.back().name;
    const auto page = ask("listing " + address_of(prefix),
                          [&](S3Store& store) { return store.list_objects(prefix, after); });
    all.insert(all.end(), page.begin(), page.end());
    if (page.size() < ObjectStore::kMaxListed) return all;
  }
}

S3Object ObjectCache::find(const std::string& name) {
  const auto page = ask("looking for " + address_of(name),
                        [&](S3Store& store) { return store.list_objects(name, ""); });
  const auto found = std::ranges::find(page, name, &S3Object::name);
  if (found == page.end()) {
    throw Error(ErrorCode::kIo, "reading " + address_of(name) + ": it is not there");
  }
  return *found;
}

// ---- The files ----------------------------------------------------------------------------------

fs::path ObjectCache::place_of(const S3Object& object) const {
  const char* endpoint = std::getenv("AWS_ENDPOINT_URL");
  const std::string what = fmt::format("{}\n{}\n{}\n{}\n{}", endpoint == nullptr ? "" : endpoint,
                                       bucket_, object.name, object.tag, object.bytes);
  const std::string sum = to_hex(sha256(what));
  return options_.folder / "objects" / sum.substr(0, 2) / sum;
}

FileDescriptor ObjectCache::open_file(const S3Object& object, const fs::path& file) const {
  FileDescriptor found(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!found.is_open() || ::fstat(found.get(), &about) != 0 ||
      static_cast<std::uint64_t>(about.st_size) != object.bytes) {
    return {};
  }
  // Its time says when it was used last, to the hour.
  if (std::time(nullptr) - about.st_mtime > kTouchAfter_s) ::futimens(found.get(), nullptr);
  return found;
}

FileDescriptor ObjectCache::open(const S3Object& object) {
  const fs::path file = place_of(object);
  FileDescriptor found = open_file(object, file);
  if (found.is_open()) return found;
  const std::string address = address_of(object.name);
  make_folder(address, file.parent_path());
  make_folder(address, options_.folder / "locks");
  const auto lock =
      lock_of(address, options_.folder / "locks" / file.filename().string().substr(0, 3));
  found = open_file(object, file);
  if (found.is_open()) return found;
  bring(object, file);
  found = open_file(object, file);
  if (!found.is_open()) throw cannot_keep(address, file, ENOENT);
  return found;
}

void ObjectCache::bring(const S3Object& object, const fs::path& file) {
  const std::string address = address_of(object.name);
  make_room(object.bytes, object);
  static std::atomic<int> brought = 0;
  const fs::path part = file.string() + fmt::format("{}{}-{}", kPart, ::getpid(), ++brought);
  try {
    const FileDescriptor out(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!out.is_open()) throw cannot_keep(address, part, errno);
    for (std::uint64_t done = 0; done < object.bytes;) {
      const auto size = static_cast<std::size_t>(
          std::min<std::uint64_t>(kPartBytes, object.bytes - done));
      write_all(out, ask("reading " + address,
                         [&](S3Store& store) { return store.get_part(object, done, size); }),
                address, part);
      done += size;
    }
    if (::rename(part.c_str(), file.c_str()) != 0) throw cannot_keep(address, file, errno);
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
}

// Files that are open elsewhere can be read on.
void ObjectCache::make_room(std::uint64_t bytes, const S3Object& object) const {
  struct statvfs room {};
  const std::string address = address_of(object.name);
  const auto free_bytes = [&] {
    if (::statvfs(options_.folder.c_str(), &room) != 0) {
      throw cannot_keep(address, options_.folder, errno);
    }
    return static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
  };
  std::uint64_t free = free_bytes();
  const std::uint64_t reserve = std::min<std::uint64_t>(
      options_.reserve_bytes, static_cast<std::uint64_t>(room.f_blocks) * room.f_frsize / 20);
  if (free >= bytes + reserve) return;
  for (const Kept& one : all_kept(options_.folder / "objects")) {
    if (free >= bytes + reserve) return;
    if (::unlink(one.file.c_str()) == 0) free += one.bytes;
  }
  free = free_bytes();
  if (free >= bytes + reserve) return;
  throw Error(ErrorCode::kIo,
              fmt::format("keeping {} ({} bytes) in {}: its file system has {} bytes left, of which "
                          "{} stay: set TUNE_DATA_CACHE to a folder with room for it",
                          address, bytes, options_.folder.string(), free, reserve));
}

std::string ObjectCache::find_made(const S3Object& object, const std::string& word) const {
  return read_if_there(place_of(object).string() + "." + word);
}

void ObjectCache::keep_made(const S3Object& object, const std::string& word,
                            const std::string& text) try {
  const fs::path file = place_of(object).string() + "." + word;
  make_folder(address_of(object.name), file.parent_path());
  write_file_atomically(file, text);
} catch (const Error&) {
}

}  // namespace tune
