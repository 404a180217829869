// ObjectCache: objects of an S3 store as files of this machine, for what is read again and again:
// training data. A file stays for later epochs, trials and sweeps; all processes of the machine
// share them, and each object is brought by one of them.
//
// Files lie in TUNE_DATA_CACHE, or else in tune/data of the user's cache folder. Their names are
// sums of what they are, with the object's tag, so that another content is another file. Those that
// were not used for longest go when the file system gets full.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/platform/process.h"
#include "core/platform/s3_store.h"

namespace tune {

struct ObjectCacheOptions {
  std::filesystem::path folder = {};  // empty: see above
  // A store that is away is asked again for so long.
  std::chrono::milliseconds patience = std::chrono::minutes(5);
  // Of the file system, left to others; so are 5 % of it, when that is less.
  std::uint64_t reserve_bytes = std::uint64_t{1} << 30;
};

// For any threads. Calls throw Error: kBadInput for a bad address, kIo, with the address, when
// an object is not there, cannot be had or not be kept.
class ObjectCache {
 public:
  explicit ObjectCache(const std::string& bucket, ObjectCacheOptions options = {});
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;

  // All objects whose names begin with `prefix`, in order.
  std::vector<S3Object> list(const std::string& prefix);
  S3Object find(const std::string& name);

  // The object's content, for reading. The file may lose its name at any time.
  FileDescriptor open(const S3Object& object);

  // The text made of an object's content, kept beside it under a word: "index". Empty: nothing is
  // there. Keeping is a favour: it fails without a word.
  std::string find_made(const S3Object& object, const std::string& word) const;
  void keep_made(const S3Object& object, const std::string& word, const std::string& text);

  const std::filesystem::path& folder() const { return options_.folder; }
  std::string address_of(const std::string& name) const { return bucket_ + "/" + name; }

 private:
  class Lease;
  template <class Ask>
  auto ask(const std::string& what, const Ask& ask);
  std::filesystem::path place_of(const S3Object& object) const;
  FileDescriptor open_file(const S3Object& object, const std::filesystem::path& file) const;
  void bring(const S3Object& object, const std::filesystem::path& file);
  void make_room(std::uint64_t bytes, const S3Object& object) const;

  std::string bucket_;  // "s3://bucket"
  ObjectCacheOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<S3Store>> idle_;  // connections
  pid_t process_;                               // that made them
};

}  // namespace tune
