#include "trainables/torch/shared_memory_tensors.h"

namespace tune::shared_memory {

void expect_dense_on_cpu(const at::Tensor& tensor, const char* operation) {
  TORCH_CHECK(tensor.device().is_cpu() && tensor.layout() == at::kStrided, operation,
              " through shared memory takes dense tensors on the CPU, not one of layout ",
              tensor.layout(), " on ", tensor.device());
}

const at::Tensor& only(const std::vector<at::Tensor>& tensors, const char* operation) {
  TORCH_CHECK(tensors.size() == 1, operation, " takes one tensor of each rank, not ",
              tensors.size());
  expect_dense_on_cpu(tensors[0], operation);
  return tensors[0];
}

const std::vector<at::Tensor>& one_a_rank(const std::vector<std::vector<at::Tensor>>& lists,
                                          int size, const char* operation) {
  TORCH_CHECK(lists.size() == 1 && lists[0].size() == static_cast<std::size_t>(size), operation,
              " takes one list of a tensor for each of ", size, " ranks");
  return lists[0];
}

void expect_alike(const at::Tensor& tensor, const at::Tensor& other, const char* operation) {
  expect_dense_on_cpu(tensor, operation);
  TORCH_CHECK(tensor.scalar_type() == other.scalar_type() && tensor.numel() == other.numel(),
              operation, ": ", tensor.scalar_type(), " ", tensor.sizes(), " beside ",
              other.scalar_type(), " ", other.sizes());
}

std::vector<at::Tensor> split_by_rank(const at::Tensor& whole, int size) {
  const at::Tensor flat = whole.view({-1});
  const std::int64_t each = flat.numel() / size;
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < size; ++rank) parts.push_back(flat.narrow(0, rank * each, each));
  return parts;
}

}  // namespace tune::shared_memory
