// A stream of records from tar files, for data of too many samples, or too small ones, to be files
// of their own. As WebDataset has them, a record is the files that follow each other with the same
// path up to the first dot of its last part:
//
//   train-0000.tar: 000001.jpg 000001.cls 000002.jpg 000002.cls ...
//
//   auto data = std::make_shared<tune::RecordShards>(
//       tune::shards_in("train"),
//       [=](const tune::Record& record, tune::RandomStream& random) -> tune::Batch {
//         return {transform(tune::decode_image(record.at("jpg"), record.key), random),
//                 torch::tensor(std::stol(record.at("cls")))};
//       },
//       tune::RecordShardsOptions{.shuffle_buffer = 4096});
//   register_data({.train = data, .batch_size = 64, .workers = 4});
//
// Shards may lie in an S3 store: tune::shards_in("s3://bucket/train"). They are brought to a cache of
// this machine once (core/platform/object_cache.h), and so is what is known of their records.
//
// Files are read from front to back, each rank its own part of them and each worker thread of a
// DataLoader its batches. The order depends on seed and epoch alone, so that a training goes on
// within an epoch without reading again what came before: see ShardSampler.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "trainables/torch/dataset.h"

namespace tune {

inline constexpr std::uint64_t kMaxRecordBytes = std::uint64_t{1} << 30;

struct Record {
  std::string shard = {};                         // its file
  std::string key = {};                           // "000001", with folders
  std::map<std::string, std::string> files = {};  // bytes by extension: "jpg", "seg.png"

  // Error (kBadInput) that says what the record has, when it has no such file.
  const std::string& at(const std::string& extension) const;
};

// Makes a sample of a record; called by several threads at once when a loader has workers. Random
// numbers are those of (seed, epoch, record).
using RecordDecoder = std::function<Batch(const Record& record, RandomStream& random)>;

struct RecordShardsOptions {
  // Of a shuffled order: so many records ahead one is drawn from, as from a buffer that they are
  // read into. Only numbers are held there, no records. 1: shards are shuffled, records are not.
  std::int64_t shuffle_buffer = 1024;
  std::uint64_t seed = 0;  // of the decoder's random numbers
};

class RecordShards : public Dataset {
 public:
  // Paths or addresses ("s3://bucket/train/0.tar"). Reads where each record lies, from the headers
  // of all shards: 16 bytes each are kept. Throws Error: kIo when a file cannot be read, or not be
  // had from its store; kBadInput when it is not a tar file, is broken, or there are no records.
  RecordShards(std::vector<std::filesystem::path> shards, RecordDecoder decode,
               const RecordShardsOptions& options = {});
  ~RecordShards() override;

  std::int64_t size() const override;
  // The batch that the decoder makes of it; its Error names shard and record.
  Batch get(std::int64_t index) const override;
  void set_epoch(std::int64_t epoch) override { epoch_ = epoch; }
  // A ShardSampler.
  std::shared_ptr<Sampler> sampler(const DistributedSamplerOptions& options) const override;

  Record read(std::int64_t index) const;
  const std::vector<std::int64_t>& shard_sizes() const { return sizes_; }  // records of each

 private:
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };
  class Files;
  std::vector<Place> list(std::size_t shard) const;
  void list_all();

  std::vector<std::filesystem::path> shards_;
  RecordDecoder decode_;
  RecordShardsOptions options_;
  std::int64_t epoch_ = 0;
  std::vector<Place> places_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> ends_;  // the numbers after each shard's last record
  std::unique_ptr<Files> files_;
};

// The files of a folder, or of an address in an S3 store, that end in .tar, by name. Throws Error:
// kIo when it cannot be listed, kBadInput when there are none.
std::vector<std::filesystem::path> shards_in(const std::filesystem::path& folder);

}  // namespace tune
