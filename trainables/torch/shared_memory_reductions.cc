// The reductions of SharedMemoryBackend.
#include <optional>
#include <utility>

#include "trainables/torch/shared_memory_backend.h"
#include "trainables/torch/shared_memory_tensors.h"

namespace tune {

using shared_memory::Call;
using shared_memory::CallKind;
using shared_memory::Dense;
using shared_memory::Exchange;
using shared_memory::expect_alike;
using shared_memory::expect_dense_on_cpu;
using shared_memory::In;
using shared_memory::Motion;
using shared_memory::one_a_rank;
using shared_memory::only;
using shared_memory::OperationPtr;
using shared_memory::Operator;
using shared_memory::Out;
using shared_memory::own_timeout;
using shared_memory::place;
using shared_memory::RankMemory;
using shared_memory::ReduceInto;
using shared_memory::split_by_rank;

namespace {

std::optional<shared_memory::Type> type_of(at::ScalarType type) {
  using shared_memory::Type;
  switch (type) {
    case at::kFloat:
      return Type::kFloat;
    case at::kDouble:
      return Type::kDouble;
    case at::kHalf:
      return Type::kHalf;
    case at::kBFloat16:
      return Type::kBFloat16;
    case at::kChar:
      return Type::kInt8;
    case at::kByte:
      return Type::kUint8;
    case at::kShort:
      return Type::kInt16;
    case at::kInt:
      return Type::kInt32;
    case at::kLong:
      return Type::kInt64;
    case at::kBool:
      return Type::kBool;
    default:
      return std::nullopt;
  }
}

std::optional<Operator> operator_of(const c10d::ReduceOp& reduction) {
  switch (reduction.op_) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::PREMUL_SUM:
      return Operator::kSum;
    case c10d::ReduceOp::AVG:
      return Operator::kMean;
    case c10d::ReduceOp::PRODUCT:
      return Operator::kProduct;
    case c10d::ReduceOp::MIN:
      return Operator::kMin;
    case c10d::ReduceOp::MAX:
      return Operator::kMax;
    case c10d::ReduceOp::BAND:
      return Operator::kAnd;
    case c10d::ReduceOp::BOR:
      return Operator::kOr;
    case c10d::ReduceOp::BXOR:
      return Operator::kXor;
    default:
      return std::nullopt;
  }
}

// Sums of complex numbers are sums of their parts.
at::Tensor as_real(const at::Tensor& tensor, const c10d::ReduceOp& reduction) {
  const bool is_sum = reduction.op_ == c10d::ReduceOp::SUM ||
                      reduction.op_ == c10d::ReduceOp::AVG ||
                      reduction.op_ == c10d::ReduceOp::PREMUL_SUM;
  if (!tensor.is_complex()) return tensor;
  TORCH_CHECK(is_sum, "of complex numbers there are sums and means only");
  return at::view_as_real(tensor.resolve_conj());
}

// The tensor that is reduced: the values themselves, or for a scaled sum a copy that is multiplied.
at::Tensor scaled(const at::Tensor& values, const c10d::ReduceOp& reduction) {
  if (reduction.op_ != c10d::ReduceOp::PREMUL_SUM) return values;
  const auto* factor =
      dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(reduction.supplement_.get());
  TORCH_CHECK(factor != nullptr, "a scaled sum without its factor");
  return factor->tensor_factor.defined()
             ? values.mul(factor->tensor_factor.to(values.scalar_type()))
             : values.mul(factor->double_factor);
}

struct Reduction {
  Operator reduction;
  shared_memory::Type type;
};
Reduction checked(const c10d::ReduceOp& reduction, at::ScalarType scalar) {
  const auto type = type_of(scalar);
  const auto how = operator_of(reduction);
  TORCH_CHECK(type && how && shared_memory::is_defined(*how, *type), "there is no reduction ",
              static_cast<int>(reduction.op_), " (c10d::ReduceOp) of values of type ", scalar);
  return {*how, *type};
}

}  // namespace

// ---- Reductions ---------------------------------------------------------------------------------

OperationPtr SharedMemoryBackend::start_all_reduce(const at::Tensor& given, Collective one,
                                                   const c10d::ReduceOp& reduction) {
  expect_dense_on_cpu(given, "all_reduce");
  const at::Tensor real = as_real(given, reduction);
  const auto [how, type] = checked(reduction, real.scalar_type());
  const Dense tensor(scaled(real, reduction));
  one.type = real.scalar_type();
  one.reduction = how;
  one.make = [&, how = how, type = type](RankMemory& memory, const Call& call) {
    return shared_memory::all_reduce(memory, call, how, type, tensor.bytes(), tensor.size());
  };
  if (tensor.values.const_data_ptr() != given.const_data_ptr()) {
    one.finish = [given, tensor] {
      given.copy_(given.is_complex() ? at::view_as_complex(tensor.values) : tensor.values);
    };
  } else {
    one.finish = [tensor] {};  // keeps it
  }
  return start(std::move(one));
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::allreduce(Tensors& tensors,
                                                            const c10d::AllreduceOptions& how) {
  if (tensors.size() == 1 && tensors[0].layout() == at::kSparse) {
    return allreduce_sparse(tensors, how);
  }
  const Collective one{CallKind::kAllReduce, own_timeout(how), how.asyncOp};
  return work(c10d::OpType::ALLREDUCE,
              {start_all_reduce(only(tensors, "all_reduce"), one, how.reduceOp)}, tensors);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& how) {
  std::vector<OperationPtr> operations;
  for (const at::Tensor& tensor : tensors) {
    const Collective one{CallKind::kAllReduce, own_timeout(how), how.asyncOp};
    operations.push_back(start_all_reduce(tensor, one, how.reduceOp));
  }
  return work(c10d::OpType::ALLREDUCE_COALESCED, std::move(operations), tensors);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::reduce(Tensors& tensors,
                                                         const c10d::ReduceOptions& how) {
  const at::Tensor& given = only(tensors, "reduce");
  const int root = static_cast<int>(how.rootRank);
  const at::Tensor real = as_real(given, how.reduceOp);
  const auto [reduction, type] = checked(how.reduceOp, real.scalar_type());
  const Dense tensor(scaled(real, how.reduceOp));
  Collective one{CallKind::kReduce, own_timeout(how), how.asyncOp, real.scalar_type(), root,
                 reduction};
  one.make = [&, reduction = reduction, type = type](RankMemory& memory,
                                                     const Call& call) -> std::unique_ptr<Motion> {
    if (root != rank_) {
      return std::make_unique<Exchange>(
          memory, call, std::vector<Out>{{root, tensor.bytes(), tensor.size()}}, std::vector<In>{});
    }
    const ReduceInto::Values values{reduction, type, tensor.bytes(), tensor.bytes(), tensor.size()};
    return std::make_unique<ReduceInto>(memory, call, values, std::vector<Out>{});
  };
  one.finish = [given, tensor, is_root = root == rank_] {
    if (!is_root || tensor.values.const_data_ptr() == given.const_data_ptr()) return;
    given.copy_(given.is_complex() ? at::view_as_complex(tensor.values) : tensor.values);
  };
  return work(c10d::OpType::REDUCE, {start(std::move(one))}, tensors);
}

OperationPtr SharedMemoryBackend::start_reduce_scatter(const at::Tensor& output,
                                                       const Tensors& inputs, Collective one,
                                                       const c10d::ReduceOp& reduction) {
  const auto [how, type] = checked(reduction, as_real(output, reduction).scalar_type());
  const Dense to(as_real(output, reduction));
  std::vector<Dense> from;
  for (const at::Tensor& input : inputs) {
    expect_alike(input, output, "reduce_scatter");
    from.emplace_back(scaled(as_real(input, reduction), reduction));
  }
  one.type = to.values.scalar_type();
  one.reduction = how;
  one.make = [&, how = how, type = type](RankMemory& memory, const Call& call) {
    std::vector<Out> out;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_) out.push_back({rank, from[place(rank)].bytes(), to.size()});
    }
    const ReduceInto::Values values{how, type, from[place(rank_)].bytes(), to.bytes(), to.size()};
    return std::make_unique<ReduceInto>(memory, call, values, std::move(out));
  };
  one.finish = [to, from] { to.give_back(); };
  return start(std::move(one));
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::reduce_scatter(
    Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ReduceScatterOptions& how) {
  const at::Tensor& output = only(outputs, "reduce_scatter");
  const Tensors& list = one_a_rank(inputs, size_, "reduce_scatter");
  const Collective one{CallKind::kReduceScatter, own_timeout(how), how.asyncOp};
  return work(c10d::OpType::REDUCE_SCATTER, {start_reduce_scatter(output, list, one, how.reduceOp)},
              outputs);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& how) {
  Tensors outputs{output}, inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, how);
}

SharedMemoryBackend::WorkPtr SharedMemoryBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& how) {
  TORCH_CHECK(outputs.size() == inputs.size(), "reduce_scatter: ", inputs.size(), " tensors into ",
              outputs.size());
  std::vector<OperationPtr> operations;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    expect_dense_on_cpu(inputs[i], "reduce_scatter");
    expect_dense_on_cpu(outputs[i], "reduce_scatter");
    TORCH_CHECK(inputs[i].numel() == size_ * outputs[i].numel(), "reduce_scatter of a tensor of ",
                "shape ", inputs[i].sizes(), " into ", size_, " of ", outputs[i].sizes());
    const Collective one{CallKind::kReduceScatter, own_timeout(how), how.asyncOp};
    operations.push_back(start_reduce_scatter(
        outputs[i], split_by_rank(inputs[i].contiguous(), size_), one, how.reduceOp));
  }
  return work(c10d::OpType::_REDUCE_SCATTER_BASE, std::move(operations), outputs);
}

}  // namespace tune
