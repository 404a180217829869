#include "trainables/torch/record_shards.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/object_cache.h"
#include "core/s3_request.h"
#include "trainables/torch/sampler.h"
#include "trainables/torch/tar_file.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadAhead = 4096;  // of headers: small records have several in it
constexpr std::size_t kOpenFiles = 16;
constexpr std::size_t kBringers = 8;  // of shards from a store

struct Name {
  std::string_view key, extension;
};

Name split(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t dot = path.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

void read_exactly(const FileDescriptor& file, const fs::path& path, std::uint64_t begin,
                  std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::pread(file.get(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_error("reading", path, errno);
    if (got == 0) bad_input("reading " + path.string() + ": it has become shorter");
    done += static_cast<std::size_t>(got);
  }
}

// The places of a shard's records as text: their number, then first byte and length of each.
template <class Places>
std::string index_of(const Places& places) {
  std::string text = std::to_string(places.size()) + "\n";
  for (const auto& place : places) {
    text += std::to_string(place.begin) + " " + std::to_string(place.bytes) + "\n";
  }
  return text + "end\n";
}

// Whether it is a whole index of a file of `end` bytes.
template <class Places>
bool read_index(const std::string& text, std::uint64_t end, Places& places) {
  std::istringstream in(text);
  std::size_t count = 0;
  if (!(in >> count) || count > text.size()) return false;
  places.resize(count);
  bool is_whole = true;
  for (auto& place : places) {
    is_whole &= static_cast<bool>(in >> place.begin >> place.bytes);
    is_whole = is_whole && place.begin <= end && place.bytes <= end - place.begin &&
               place.bytes <= kMaxRecordBytes;
  }
  std::string last;
  is_whole = is_whole && in >> last && last == "end";
  if (!is_whole) places.clear();
  return is_whole;
}

}  // namespace

const std::string& Record::at(const std::string& extension) const {
  if (const auto found = files.find(extension); found != files.end()) return found->second;
  std::string names;
  for (const auto& [name, bytes] : files) names += (names.empty() ? "" : ", ") + name;
  bad_input("it has no file ." + extension + ", but " + names);
}

// Shards are read from front to back: few of them are in use at a time.
class RecordShards::Files {
 public:
  explicit Files(const std::vector<fs::path>& shards) {
    for (const fs::path& shard : shards) {
      if (!is_s3(shard.string())) {
        remote_.emplace_back();
        continue;
      }
      const S3Address address = parse_s3_address(shard.string());
      auto& cache = caches_[address.bucket];
      if (!cache) cache = std::make_unique<ObjectCache>(shard.string());
      remote_.push_back({cache.get(), {address.prefix}});
    }
  }

  bool are_remote() const { return !caches_.empty(); }

  // The file's size. One of a store is looked for there.
  std::uint64_t find(std::size_t shard, const fs::path& path) {
    Remote& remote = remote_[shard];
    if (remote.cache != nullptr) {
      remote.object = remote.cache->find(remote.object.name);
      return remote.object.bytes;
    }
    std::error_code failure;
    const std::uint64_t bytes = fs::file_size(path, failure);
    if (failure) throw file_error("reading", path, failure.value());
    return bytes;
  }

  // The index that an earlier process read of the shard; empty: none.
  std::string find_index(std::size_t shard) const {
    const Remote& remote = remote_[shard];
    return remote.cache == nullptr ? "" : remote.cache->find_made(remote.object, "index");
  }
  void keep_index(std::size_t shard, const std::string& text) const {
    const Remote& remote = remote_[shard];
    if (remote.cache != nullptr) remote.cache->keep_made(remote.object, "index", text);
  }

  std::shared_ptr<const FileDescriptor> open(std::size_t shard, const fs::path& path) {
    {
      const std::lock_guard lock(mutex_);
      const auto found =
          std::ranges::find_if(open_, [&](const auto& one) { return one.first == shard; });
      if (found != open_.end()) {
        std::rotate(open_.begin(), found, found + 1);
        return open_.front().second;
      }
    }
    auto file = std::make_shared<const FileDescriptor>(open_anew(shard, path));
    const std::lock_guard lock(mutex_);
    if (open_.size() == kOpenFiles) open_.pop_back();
    open_.emplace(open_.begin(), shard, file);
    return file;
  }

 private:
  struct Remote {
    ObjectCache* cache = nullptr;  // null: a file of this machine
    S3Object object = {};
  };

  FileDescriptor open_anew(std::size_t shard, const fs::path& path) const {
    const Remote& remote = remote_[shard];
    if (remote.cache != nullptr) return remote.cache->open(remote.object);
    FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) throw file_error("opening", path, errno);
    return file;
  }

  std::map<std::string, std::unique_ptr<ObjectCache>> caches_;  // by bucket
  std::vector<Remote> remote_;                                  // by shard
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, std::shared_ptr<const FileDescriptor>>> open_;  // newest first
};

RecordShards::RecordShards(std::vector<fs::path> shards, RecordDecoder decode,
                           const RecordShardsOptions& options)
    : shards_(std::move(shards)),
      decode_(std::move(decode)),
      options_(options),
      files_(std::make_unique<Files>(shards_)) {
  if (options_.shuffle_buffer < 1) {
    bad_input("shuffle_buffer of records is " + std::to_string(options_.shuffle_buffer) +
              ", at least 1 is wanted");
  }
  list_all();
  if (places_.empty()) {
    bad_input("there are no records in " + std::to_string(shards_.size()) + " shards" +
              (shards_.empty() ? "" : ", of which the first is " + shards_[0].string()));
  }
}

RecordShards::~RecordShards() = default;

// Those of a store are brought several at a time.
void RecordShards::list_all() {
  std::vector<std::vector<Place>> places(shards_.size());
  std::vector<std::exception_ptr> failures(shards_.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> has_failed = false;
  const auto work = [&] {
    for (std::size_t shard = next++; shard < shards_.size() && !has_failed; shard = next++) {
      try {
        places[shard] = list(shard);
      } catch (...) {
        failures[shard] = std::current_exception();
        has_failed = true;
      }
    }
  };
  std::vector<std::thread> others;
  const std::size_t more = files_->are_remote() ? std::min(kBringers, shards_.size()) - 1 : 0;
  for (std::size_t i = 0; i < more; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    if (failures[shard]) std::rethrow_exception(failures[shard]);
    places_.insert(places_.end(), places[shard].begin(), places[shard].end());
    sizes_.push_back(static_cast<std::int64_t>(places[shard].size()));
    ends_.push_back(static_cast<std::int64_t>(places_.size()));
  }
}

std::vector<RecordShards::Place> RecordShards::list(std::size_t shard) const {
  const fs::path& path = shards_[shard];
  const std::uint64_t end = files_->find(shard, path);
  std::vector<Place> places;
  if (read_index(files_->find_index(shard), end, places)) return places;
  const auto file = files_->open(shard, path);
  std::string ahead;
  std::uint64_t ahead_begin = 0;
  TarWalk walk(
      path.string(),
      [&](std::uint64_t begin, std::size_t bytes) -> std::string_view {
        if (begin < ahead_begin || begin + bytes > ahead_begin + ahead.size()) {
          ahead.resize(std::max(bytes, std::min<std::size_t>(kReadAhead, end - begin)));
          read_exactly(*file, path, ahead_begin = begin, ahead);
        }
        return std::string_view(ahead).substr(begin - ahead_begin, bytes);
      },
      0, end);
  std::string key;
  while (const auto member = walk.next()) {
    const Name name = split(member->name);
    if (places.empty() || name.key != key) {
      places.push_back({member->begin, 0});
      key = name.key;
    }
    Place& place = places.back();
    place.bytes = member->data + member->size - place.begin;
    if (place.bytes > kMaxRecordBytes) {
      bad_input("record " + key + " of " + path.string() + " has more than " +
                std::to_string(kMaxRecordBytes) + " bytes");
    }
  }
  if (!walk.has_ended()) bad_input("reading the tar file " + path.string() + ": it is cut off");
  files_->keep_index(shard, index_of(places));
  return places;
}

std::int64_t RecordShards::size() const {
  return static_cast<std::int64_t>(places_.size());
}

Record RecordShards::read(std::int64_t index) const {
  TUNE_CHECK(index >= 0);
  TUNE_CHECK(index < size());
  const auto shard =
      static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  const fs::path& path = shards_[shard];
  const Place& place = places_[static_cast<std::size_t>(index)];
  std::string bytes(place.bytes, '\0');
  read_exactly(*files_->open(shard, path), path, place.begin, bytes);
  Record record{.shard = path.string()};
  TarWalk walk(
      path.string(),
      [&](std::uint64_t begin, std::size_t size) {
        return std::string_view(bytes).substr(begin, size);
      },
      0, bytes.size());
  while (const auto member = walk.next()) {
    const Name name = split(member->name);
    record.key = name.key;
    record.files[std::string(name.extension)] = bytes.substr(member->data, member->size);
  }
  return record;
}

Batch RecordShards::get(std::int64_t index) const {
  const Record record = read(index);
  RandomStream random(options_.seed, "record of epoch " + std::to_string(epoch_),
                      static_cast<std::uint64_t>(index));
  try {
    return decode_(record, random);
  } catch (const Error& error) {
    throw Error(error.code(), "record " + record.key + " of " + record.shard + ": " + error.what());
  } catch (const std::logic_error& error) {  // a number that is none
    bad_input("record " + record.key + " of " + record.shard + ": " + error.what());
  }
}

std::shared_ptr<Sampler> RecordShards::sampler(const DistributedSamplerOptions& options) const {
  return std::make_shared<ShardSampler>(sizes_, options, options_.shuffle_buffer);
}

std::vector<fs::path> shards_in(const fs::path& folder) {
  std::vector<fs::path> shards;
  if (is_s3(folder.string())) {
    const std::string prefix = s3_folder(folder.string());
    ObjectCache cache(folder.string());
    for (const S3Object& object : cache.list(prefix)) {
      const bool is_below = object.name.find('/', prefix.size()) != std::string::npos;
      if (object.name.ends_with(".tar") && !is_below) {
        shards.emplace_back(cache.address_of(object.name));
      }
    }
  } else try {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".tar") shards.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    throw file_error("listing shards in", folder, error.code().value());
  }
  if (shards.empty()) bad_input(folder.string() + " has no shards: files that end in .tar");
  std::ranges::sort(shards);
  return shards;
}

}  // namespace tune
