#include "trainables/torch/shared_memory_work.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "trainables/shared_memory/failure.h"
#include "trainables/torch/shared_memory_backend.h"

namespace tune {
namespace {

using shared_memory::Failure;
using shared_memory::FailureKind;
using shared_memory::OperationPtr;
using Future = c10::ivalue::Future;

std::exception_ptr first_error(const std::vector<OperationPtr>& operations) {
  for (const OperationPtr& one : operations) {
    if (const auto error = shared_memory::error_of(one)) return error_for_torch(error);
  }
  return nullptr;
}

}  // namespace

std::exception_ptr error_for_torch(const std::exception_ptr& error) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  try {
    std::rethrow_exception(error);
  } catch (const Failure& failure) {
    if (failure.kind() == FailureKind::kDifferentCalls) {
      return std::make_exception_ptr(DifferentCalls(here, failure.what()));
    }
    return std::make_exception_ptr(c10::DistBackendError(here, failure.what()));
  } catch (...) {
    return std::current_exception();
  }
}

SharedMemoryWork::SharedMemoryWork(c10d::OpType type,
                                   std::shared_ptr<shared_memory::Conversation> conversation,
                                   Operations operations, std::vector<at::Tensor> outputs)
    : Work(-1, type),
      conversation_(std::move(conversation)),
      operations_(std::move(operations)),
      outputs_(std::move(outputs)),
      number_(conversation_->calls()) {}

bool SharedMemoryWork::isCompleted() {
  return std::ranges::all_of(
      operations_, [this](const OperationPtr& one) { return conversation_->has_ended(one); });
}

bool SharedMemoryWork::isSuccess() const {
  return std::ranges::all_of(
             operations_,
             [this](const OperationPtr& one) { return conversation_->has_ended(one); }) &&
         !first_error(operations_);
}

std::exception_ptr SharedMemoryWork::exception() const {
  return first_error(operations_);
}

c10::intrusive_ptr<Future> SharedMemoryWork::getFuture() {
  if (future_) return future_;
  const auto tensors = c10::ListType::create(c10::TensorType::get());
  future_ = c10::make_intrusive<Future>(tensors);
  const auto left = std::make_shared<std::atomic<std::size_t>>(operations_.size());
  for (const OperationPtr& one : operations_) {
    conversation_->when_ended(
        one, [left, future = future_, operations = operations_, outputs = outputs_] {
          if (--*left > 0) return;
          if (const auto error = first_error(operations)) {
            future->setError(error);
          } else {
            future->markCompleted(c10::IValue(outputs));
          }
        });
  }
  return future_;
}

void SharedMemoryWork::abort() {
  conversation_->abort("this rank has given the operation up");
}

bool SharedMemoryWork::wait(std::chrono::milliseconds limit) {
  try {
    for (const OperationPtr& one : operations_) conversation_->wait(one, limit);
  } catch (const Failure&) {
    std::rethrow_exception(error_for_torch(std::current_exception()));
  }
  return true;
}

}  // namespace tune
