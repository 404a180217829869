// The order in which the samples of a data set are gone through: which indices, in which epoch, on
// which rank. Not the samples themselves: those are a Dataset's, batches are a DataLoader's.
//
// An order depends on the options and the epoch alone, so that a sampler's state is two numbers.
// The orders are those of PyTorch of Python for the same seed and epoch, index for index. Used
// from one thread. Errors are kBadInput.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/value.h"

namespace tune {

class Sampler {
 public:
  virtual ~Sampler() = default;

  // The number of indices of an epoch, on this rank.
  virtual std::int64_t size() const = 0;

  // The whole order of the present epoch: (size()) int64 on the CPU.
  const at::Tensor& indices();

  // The next indices of the epoch, at most `count` >= 1; none at its end. A view of indices().
  at::Tensor next(std::int64_t count);

  // Begins that epoch, >= 0, at its start.
  void set_epoch(std::int64_t epoch);
  std::int64_t epoch() const { return epoch_; }
  std::int64_t position() const { return position_; }  // indices of the epoch that next() gave

  // {epoch, position}. A state whose position is past the end is refused: it is of another sampler.
  Value state() const;
  void load_state(const Value& state);

 protected:
  // Of (size()) int64.
  virtual at::Tensor order(std::int64_t epoch) const = 0;

 private:
  std::int64_t epoch_ = 0;
  std::int64_t position_ = 0;
  at::Tensor order_;
};

struct DistributedSamplerOptions {
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  bool shuffle = true;
  // When the world does not divide the data, ranks get equally many samples: the rest is left out
  // (true), or the first samples are given twice (false).
  bool drop_last = false;
  std::uint64_t seed = 0;  // the same on all ranks
  // False, for validation: neither left out nor repeated, each sample is one rank's. Ranks then
  // differ by up to one sample, or hold none: sums must be weighted, and a forward pass that
  // communicates does not fit. drop_last must be false.
  bool pad = true;
};

// The ranks' shares of 0 .. data_size - 1: rank r has positions r, r + world, r + 2 world, ... of
// the order that all have in common.
class DistributedSampler : public Sampler {
 public:
  // Refuses data_size < 1, a rank outside the world, and drop_last that leaves none.
  DistributedSampler(std::int64_t data_size, const DistributedSamplerOptions& options);
  std::int64_t size() const override;

 protected:
  at::Tensor order(std::int64_t epoch) const override;
  const DistributedSamplerOptions& options() const { return options_; }

 private:
  std::int64_t data_size_;
  DistributedSamplerOptions options_;
};

// The order of a stream of shards, in which samples lie one after the other: shards in an order
// drawn from seed + epoch, their samples one after the other, of which each rank has one piece (so
// that it reads few of them) and draws from the next `buffer` samples of it. Options and numbers of
// samples are as DistributedSampler's. The state is that of any sampler, though nothing need be
// read again. A group of another size goes on with the same share of its own pieces: until the
// epoch's end some samples come twice then, and others not.
class ShardSampler : public DistributedSampler {
 public:
  // The samples of each shard, in the order of their indices; refuses what DistributedSampler does,
  // and a buffer below 1.
  ShardSampler(std::vector<std::int64_t> shard_sizes, const DistributedSamplerOptions& options,
               std::int64_t buffer = 1024);

 protected:
  at::Tensor order(std::int64_t epoch) const override;

 private:
  std::vector<std::int64_t> sizes_;
  std::int64_t buffer_;
};

// The given indices, at least one, in an order drawn from seed + epoch.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(const std::vector<std::int64_t>& indices, std::uint64_t seed = 0);
  std::int64_t size() const override;

 protected:
  at::Tensor order(std::int64_t epoch) const override;

 private:
  at::Tensor subset_;
  std::uint64_t seed_;
};

// One rank's part of a batch that all ranks share. Refused when the batch is smaller than the world
// or not a multiple of it: ranks that step unequally often wait for each other for ever.
std::int64_t batch_of_rank(std::int64_t batch_size, std::int64_t world_size);

}  // namespace tune
