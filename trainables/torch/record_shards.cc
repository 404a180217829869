#include "trainables/torch/record_shards.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/error.h"
#include "core/platform/files.h"
#include "trainables/torch/sampler.h"
#include "trainables/torch/tar_file.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadAhead = 4096;  // of headers: small records have several in it
constexpr std::size_t kOpenFiles = 16;

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
  std::shared_ptr<const FileDescriptor> open(std::size_t shard, const fs::path& path) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(open_, [&](const auto& one) { return one.first == shard; });
    if (found != open_.end()) {
      std::rotate(open_.begin(), found, found + 1);
      return open_.front().second;
    }
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw file_error("opening", path, errno);
    if (open_.size() == kOpenFiles) open_.pop_back();
    open_.emplace(open_.begin(), shard, std::make_shared<const FileDescriptor>(descriptor));
    return open_.front().second;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, std::shared_ptr<const FileDescriptor>>> open_;  // newest first
};

RecordShards::RecordShards(std::vector<fs::path> shards, RecordDecoder decode,
                           const RecordShardsOptions& options)
    : shards_(std::move(shards)),
      decode_(std::move(decode)),
      options_(options),
      files_(std::make_unique<Files>()) {
  if (options_.shuffle_buffer < 1) {
    bad_input("shuffle_buffer of records is " + std::to_string(options_.shuffle_buffer) +
              ", at least 1 is wanted");
  }
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) list(shard);
  if (places_.empty()) {
    bad_input("there are no records in " + std::to_string(shards_.size()) + " shards" +
              (shards_.empty() ? "" : ", of which the first is " + shards_[0].string()));
  }
}

RecordShards::~RecordShards() = default;

void RecordShards::list(std::size_t shard) {
  const fs::path& path = shards_[shard];
  const auto file = files_->open(shard, path);
  std::error_code failure;
  const std::uint64_t end = fs::file_size(path, failure);
  if (failure) throw file_error("reading", path, failure.value());
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
  const std::size_t before = places_.size();
  std::string key;
  while (const auto member = walk.next()) {
    const Name name = split(member->name);
    if (places_.size() == before || name.key != key) {
      places_.push_back({member->begin, 0});
      key = name.key;
    }
    Place& place = places_.back();
    place.bytes = member->data + member->size - place.begin;
    if (place.bytes > kMaxRecordBytes) {
      bad_input("record " + key + " of " + path.string() + " has more than " +
                std::to_string(kMaxRecordBytes) + " bytes");
    }
  }
  if (!walk.has_ended()) bad_input("reading the tar file " + path.string() + ": it is cut off");
  sizes_.push_back(static_cast<std::int64_t>(places_.size() - before));
  ends_.push_back(static_cast<std::int64_t>(places_.size()));
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
  try {
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
