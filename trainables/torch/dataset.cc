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

}  // namespace

Batch Dataset::get_batch(const at::Tensor& indices) const {
  std::vector<at::Tensor> data;
  std::vector<at::Tensor> targets;
  const std::int64_t* index = indices.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < indices.numel(); ++i) {
    Batch sample = get(index[i]);
    data.push_back(std::move(sample.data));
    if (sample.target.defined()) targets.push_back(std::move(sample.target));
  }
  expect_equal_shapes(data, index);
  expect_equal_shapes(targets, index);
  return {at::stack(data), targets.empty() ? at::Tensor() : at::stack(targets)};
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
