// c10d::Work for operations of ranks that speak through shared memory.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "trainables/shared_memory/conversation.h"

namespace tune {

// One operation or several, which began in their order.
class SharedMemoryWork : public c10d::Work {
 public:
  using Operations = std::vector<shared_memory::OperationPtr>;
  SharedMemoryWork(c10d::OpType type, std::shared_ptr<shared_memory::Conversation> conversation,
                   Operations operations, std::vector<at::Tensor> outputs);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return number_; }
  int sourceRank() const override { return *source_; }
  void synchronize() override {}  // of the CPU
  void abort() override;
  bool wait(std::chrono::milliseconds limit) override;

  // Where a receive writes the rank that sent.
  const std::shared_ptr<int>& source() const { return source_; }
  void set_source(std::shared_ptr<int> source) { source_ = std::move(source); }

 private:
  std::shared_ptr<shared_memory::Conversation> conversation_;
  Operations operations_;
  std::vector<at::Tensor> outputs_;
  std::uint64_t number_;
  std::shared_ptr<int> source_ = std::make_shared<int>(-1);
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// As c10d's own backends throw it: a c10::DistBackendError.
std::exception_ptr error_for_torch(const std::exception_ptr& error);

}  // namespace tune
