// CheckpointCopies: tensors as they are now, for a checkpoint that is written while the training
// goes on.
//
//   void save(const std::filesystem::path& directory) override {
//     context().write_beside(tune::checkpoint_writer(directory, *net_, *optimizer_, &copies_));
//   }
//   tune::CheckpointCopies copies_;   // a member: the next checkpoint uses the same memory
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

namespace tune {

// Writes files of a checkpoint. Called once, in any thread; it owns all it uses.
using CheckpointWriter = std::function<void()>;

class CheckpointCopies {
 public:
  CheckpointCopies() = default;
  CheckpointCopies(const CheckpointCopies&) = delete;
  CheckpointCopies& operator=(const CheckpointCopies&) = delete;

  // On the CPU, in pinned memory if it comes from a GPU, with the same strides and no gradient.
  // Memory of a copy that nobody holds any more is used again: the first checkpoint pays for it.
  at::Tensor copy(const at::Tensor& tensor);

 private:
  using Kind = std::tuple<at::ScalarType, std::vector<std::int64_t>, std::vector<std::int64_t>>;
  std::map<Kind, std::vector<at::Tensor>> memory_;
};

}  // namespace tune
