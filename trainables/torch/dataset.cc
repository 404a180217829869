#include "trainables/torch/dataset.h"

#include <ATen/Functions.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tune {

namespace {

// at::stack would say it too, but not of which samples.
void expect_equal_shapes(const std::vector<at::Tensor>& tensors, const std::int64_t* indices) {
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].sizes() == tensors[0].sizes()) continue;
    std::ostringstream text;
    text << "samples " << indices[0] << " and " << indices[i] << " differ in shape, "
         << tensors[0].sizes() << " and " << tensors[i].sizes()
         << ": a batch needs equal ones, which a crop or resize of both sides gives";
    throw Error(ErrorCode::kBadInput, text.str());
  }
}

// Images whose channels lie last stay so: at::stack would turn each of them.
at::Tensor stacked_tensors(const std::vector<at::Tensor>& tensors) {
  const at::Tensor& first = tensors.front();
  const bool is_last = first.dim() == 3 && first.size(0) > 1 && first.stride(0) == 1 &&
                       first.permute({1, 2, 0}).is_contiguous();
  if (!is_last) return at::stack(tensors);
  std::vector<at::Tensor> images;
  for (const at::Tensor& tensor : tensors) images.push_back(tensor.permute({1, 2, 0}));
  return at::stack(images).permute({0, 3, 1, 2});
}

}  // namespace

Batch stacked(const std::vector<Batch>& samples, const at::Tensor& indices) {
  const std::int64_t* index = indices.const_data_ptr<std::int64_t>();
  const auto together = [&](auto&& tensor_of) {
    std::vector<at::Tensor> tensors;
    for (const Batch& sample : samples) {
      if (const at::Tensor& tensor = tensor_of(sample); tensor.defined()) tensors.push_back(tensor);
    }
    expect_equal_shapes(tensors, index);
    return tensors.empty() ? at::Tensor() : stacked_tensors(tensors);
  };
  const std::size_t count = samples.at(0).more.size();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].more.size() == count) continue;
    throw Error(ErrorCode::kBadInput, "samples " + std::to_string(index[0]) + " and " +
                                          std::to_string(index[i]) + " have " +
                                          std::to_string(count) + " and " +
                                          std::to_string(samples[i].more.size()) +
                                          " more tensors: equally many are wanted");
  }
  Batch batch = {together([](const Batch& sample) -> const at::Tensor& { return sample.data; }),
                 together([](const Batch& sample) -> const at::Tensor& { return sample.target; })};
  for (std::size_t i = 0; i < count; ++i) {
    batch.more.push_back(
        together([i](const Batch& sample) -> const at::Tensor& { return sample.more[i]; }));
  }
  return batch;
}

Batch Dataset::get_batch(const at::Tensor& indices) const {
  std::vector<Batch> samples;
  const std::int64_t* index = indices.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < indices.numel(); ++i) samples.push_back(get(index[i]));
  return stacked(samples, indices);
}

std::shared_ptr<Sampler> Dataset::sampler(const DistributedSamplerOptions& options) const {
  return std::make_shared<DistributedSampler>(size(), options);
}

void Dataset::set_epoch(std::int64_t) {}

TensorDataset::TensorDataset(at::Tensor data, at::Tensor target)
    : data_(std::move(data)), target_(std::move(target)) {
  if (!data_.defined() || data_.dim() < 1 || data_.size(0) < 1) {
    throw Error(ErrorCode::kBadInput, "a data set needs samples, its tensor has none");
  }
  if (target_.defined() && (target_.dim() < 1 || target_.size(0) != data_.size(0))) {
    throw Error(ErrorCode::kBadInput,
                "a data set of " + std::to_string(data_.size(0)) + " samples has " +
                    std::to_string(target_.dim() < 1 ? 0 : target_.size(0)) + " targets");
  }
}

std::int64_t TensorDataset::size() const {
  return data_.size(0);
}

Batch TensorDataset::get(std::int64_t index) const {
  return {data_.select(0, index), target_.defined() ? target_.select(0, index) : at::Tensor()};
}

Batch TensorDataset::get_batch(const at::Tensor& indices) const {
  return {data_.index_select(0, indices.to(data_.device())),
          target_.defined() ? target_.index_select(0, indices.to(target_.device())) : at::Tensor()};
}

}  // namespace tune
