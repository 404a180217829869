#include "trainables/torch/sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <string>

#include "core/error.h"
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
