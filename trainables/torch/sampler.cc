#include "trainables/torch/sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/random.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

void expect_rank(std::int64_t rank, std::int64_t world_size) {
  if (world_size < 1 || rank < 0 || rank >= world_size) {
    bad_input("rank " + std::to_string(rank) + " is not in a world of " +
              std::to_string(world_size));
  }
}

// As a torch.Generator of Python with that seed draws it.
at::Tensor permutation(std::int64_t size, std::uint64_t seed) {
  return at::randperm(size, at::make_generator<at::CPUGeneratorImpl>(seed), at::kLong);
}

// The order that a buffer gives which is filled from `order` and drawn from at random.
void draw_ahead(at::Tensor& order, std::int64_t buffer, std::uint64_t seed, std::uint64_t rank) {
  RandomStream random(seed, "buffer of records", rank);
  std::int64_t* const values = order.mutable_data_ptr<std::int64_t>();
  const std::int64_t size = order.numel();
  // Those drawn lie before `i`, the buffer's behind it: the one drawn changes places with the one
  // at `i`, and the next of the order follows behind.
  for (std::int64_t i = 0; i < size; ++i) {
    std::swap(values[i], values[random.integer(i, i + std::min(size - i, buffer))]);
  }
}

std::int64_t divide_up(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

}  // namespace

const at::Tensor& Sampler::indices() {
  if (!order_.defined()) order_ = order(epoch_);
  return order_;
}

at::Tensor Sampler::next(std::int64_t count) {
  TUNE_CHECK(count >= 1);
  const std::int64_t begin = position_;
  position_ = std::min(begin + count, size());
  return indices().slice(0, begin, position_);
}

void Sampler::set_epoch(std::int64_t epoch) {
  if (epoch < 0) bad_input("epoch " + std::to_string(epoch) + " of a sampler is below 0");
  if (epoch != epoch_) order_.reset();
  epoch_ = epoch;
  position_ = 0;
}

Value Sampler::state() const {
  return {{"epoch", epoch_}, {"position", position_}};
}

void Sampler::load_state(const Value& state) {
  const auto epoch = state.get<std::int64_t>("epoch");
  const auto position = state.get<std::int64_t>("position");
  if (position < 0 || position > size()) {
    bad_input("loading a sampler: position " + std::to_string(position) + " is not within its " +
              std::to_string(size()) +
              " samples: the state is of other data or another world size");
  }
  set_epoch(epoch);
  position_ = position;
}

DistributedSampler::DistributedSampler(std::int64_t data_size,
                                       const DistributedSamplerOptions& options)
    : data_size_(data_size), options_(options) {
  expect_rank(options.rank, options.world_size);
  if (data_size < 1) bad_input("a sampler needs samples, there are " + std::to_string(data_size));
  if (options.drop_last && !options.pad) {
    bad_input("drop_last leaves samples out, pad = false wants each once: choose one");
  }
  if (options.drop_last && data_size < options.world_size) {
    bad_input("drop_last leaves none of " + std::to_string(data_size) + " samples to " +
              std::to_string(options.world_size) + " ranks");
  }
}

std::int64_t DistributedSampler::size() const {
  if (options_.drop_last) return data_size_ / options_.world_size;
  if (options_.pad) return divide_up(data_size_, options_.world_size);
  return divide_up(std::max<std::int64_t>(data_size_ - options_.rank, 0), options_.world_size);
}

at::Tensor DistributedSampler::order(std::int64_t epoch) const {
  const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(epoch);
  at::Tensor all = options_.shuffle ? permutation(data_size_, seed) : at::arange(data_size_);
  const std::int64_t wanted = options_.pad ? size() * options_.world_size : data_size_;
  if (wanted > data_size_) all = all.repeat({divide_up(wanted, data_size_)});
  // Slices clamp: a rank that has none gets an empty tensor.
  return all.slice(0, 0, wanted).slice(0, options_.rank, wanted, options_.world_size).contiguous();
}

ShardSampler::ShardSampler(std::vector<std::int64_t> shard_sizes,
                           const DistributedSamplerOptions& options, std::int64_t buffer)
    : DistributedSampler(std::accumulate(shard_sizes.begin(), shard_sizes.end(), std::int64_t{0}),
                         options),
      sizes_(std::move(shard_sizes)),
      buffer_(buffer) {
  if (buffer < 1) {
    bad_input("the buffer of a sampler is " + std::to_string(buffer) + ", at least 1 is wanted");
  }
}

at::Tensor ShardSampler::order(std::int64_t epoch) const {
  const std::int64_t count = static_cast<std::int64_t>(sizes_.size());
  const std::uint64_t seed = options().seed + static_cast<std::uint64_t>(epoch);
  const at::Tensor shards = options().shuffle ? permutation(count, seed) : at::arange(count);
  std::vector<std::int64_t> begins(sizes_.size());
  std::exclusive_scan(sizes_.begin(), sizes_.end(), begins.begin(), std::int64_t{0});
  const std::int64_t all = begins.back() + sizes_.back();
  // This rank's piece: behind those of the ranks before it.
  const std::int64_t rank = options().rank;
  const std::int64_t more = options().pad ? 0 : std::min(rank, all % options().world_size);
  const std::int64_t each = options().pad ? size() : all / options().world_size;
  const std::int64_t begin = rank * each + more;
  const std::int64_t end = begin + size();

  at::Tensor order = at::empty({size()}, at::kLong);
  std::int64_t* const to = order.mutable_data_ptr<std::int64_t>();
  std::int64_t place = 0;  // in the stream, which begins anew where it is padded
  while (place < end) {
    for (std::int64_t i = 0; i < count && place < end; ++i) {
      const auto shard = static_cast<std::size_t>(shards.const_data_ptr<std::int64_t>()[i]);
      const std::int64_t first = std::max(begin - place, std::int64_t{0});
      const std::int64_t last = std::min(end - place, sizes_[shard]);
      for (std::int64_t j = first; j < last; ++j) to[place + j - begin] = begins[shard] + j;
      place += sizes_[shard];
    }
  }
  if (options().shuffle) draw_ahead(order, buffer_, seed, static_cast<std::uint64_t>(rank));
  return order;
}

SubsetRandomSampler::SubsetRandomSampler(const std::vector<std::int64_t>& indices,
                                         std::uint64_t seed)
    : subset_(at::tensor(indices, at::kLong)), seed_(seed) {
  if (indices.empty()) bad_input("a sampler needs samples, the subset has none");
}

std::int64_t SubsetRandomSampler::size() const {
  return subset_.size(0);
}

at::Tensor SubsetRandomSampler::order(std::int64_t epoch) const {
  return subset_.index_select(0, permutation(size(), seed_ + static_cast<std::uint64_t>(epoch)));
}

std::int64_t batch_of_rank(std::int64_t batch_size, std::int64_t world_size) {
  expect_rank(0, world_size);
  const std::int64_t share = batch_size / world_size;
  if (share < 1 || batch_size % world_size != 0) {
    const std::string nearest = std::to_string(std::max<std::int64_t>(share, 1) * world_size);
    bad_input("a batch of " + std::to_string(batch_size) + " cannot be shared evenly by " +
              std::to_string(world_size) + " ranks: make batch_size a multiple, " + nearest +
              " say");
  }
  return share;
}

}  // namespace tune
