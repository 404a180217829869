// The tensors of collectives, and what a collective is made of: for the sources of
// SharedMemoryBackend alone.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "trainables/torch/shared_memory_backend.h"

namespace tune {

struct SharedMemoryBackend::Collective {
  shared_memory::CallKind kind;
  std::chrono::milliseconds timeout;
  bool is_async;
  at::ScalarType type = at::kByte;
  int root = 0;
  shared_memory::Operator reduction = shared_memory::Operator::kSum;
  using MakeMotion = std::unique_ptr<shared_memory::Motion>(shared_memory::RankMemory&,
                                                            const shared_memory::Call&);
  std::function<MakeMotion> make = {};
  std::function<void()> finish = {};
};

namespace shared_memory {

// A tensor that may lie anyhow, and its values as they lie for the others: row by row.
struct Dense {
  explicit Dense(const at::Tensor& tensor)
      : given(tensor), values(tensor.detach().resolve_conj().resolve_neg().contiguous()) {}

  bool is_copy() const { return values.const_data_ptr() != given.const_data_ptr(); }
  void give_back() const {
    if (is_copy()) given.copy_(values);
  }
  char* bytes() const { return static_cast<char*>(values.mutable_data_ptr()); }
  std::size_t size() const { return values.nbytes(); }

  at::Tensor given, values;
};

inline std::size_t place(int rank) {
  return static_cast<std::size_t>(rank);
}

// The timeout that a caller gives for one collective; below 0: nothing.
template <class How>
std::chrono::milliseconds own_timeout(const How& how) {
  return how.timeout.count() > 0 ? how.timeout : c10d::kUnsetTimeout;
}

// They throw c10::Error, which names the operation.
void expect_dense_on_cpu(const at::Tensor& tensor, const char* operation);
const at::Tensor& only(const std::vector<at::Tensor>& tensors, const char* operation);
const std::vector<at::Tensor>& one_a_rank(const std::vector<std::vector<at::Tensor>>& lists,
                                          int size, const char* operation);
void expect_alike(const at::Tensor& tensor, const at::Tensor& other, const char* operation);

// A tensor of all ranks' values, as one for each.
std::vector<at::Tensor> split_by_rank(const at::Tensor& whole, int size);

}  // namespace shared_memory
}  // namespace tune
