// Sums of sparse tensors: each rank gives its coordinates and values to all, and all add them up in
// the order of the ranks.
#include <cstring>
#include <memory>
#include <utility>

#include "trainables/torch/shared_memory_backend.h"
#include "trainables/torch/shared_memory_tensors.h"

namespace tune {
namespace {

// The contribution of a rank, from its description on: the number of values, the sparse dimensions
// and the shape, which must be the same on all ranks.
struct SparsePart {
  std::vector<std::int64_t> description;
  at::Tensor indices, values;
};

struct SparseSum {
  at::Tensor given;
  std::vector<SparsePart> parts;  // by rank

  std::vector<std::int64_t> value_shape(std::int64_t count) const {
    std::vector<std::int64_t> shape{count};
    for (std::int64_t i = given.sparse_dim(); i < given.dim(); ++i) shape.push_back(given.size(i));
    return shape;
  }

  // All but the number of values.
  void expect_same_shape(std::size_t own) const {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      auto theirs = parts[rank].description;
      theirs[0] = parts[own].description[0];
      TORCH_CHECK(theirs == parts[own].description,
                  "a sum of sparse tensors whose shapes or sparse dimensions differ between ranks");
    }
  }

  void make_room(std::size_t own) {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      if (rank == own) continue;
      const std::int64_t count = parts[rank].description[0];
      parts[rank].indices = at::empty({given.sparse_dim(), count}, at::kLong);
      parts[rank].values = at::empty(value_shape(count), given.scalar_type());
    }
  }

  void finish() const {
    at::Tensor sum;
    for (const SparsePart& part : parts) {
      const at::Tensor one = at::sparse_coo_tensor(part.indices, part.values, given.sizes(),
                                                   part.values.options().layout(at::kSparse));
      sum = sum.defined() ? sum + one : one;
    }
    given.copy_(sum.coalesce());
  }
};

using shared_memory::Exchange;
using shared_memory::In;
using shared_memory::Out;

char* bytes_of(const at::Tensor& tensor) {
  return static_cast<char*>(tensor.mutable_data_ptr());
}

}  // namespace

SharedMemoryBackend::WorkPtr SharedMemoryBackend::allreduce_sparse(
    Tensors& tensors, const c10d::AllreduceOptions& how) {
  TORCH_CHECK(
      tensors.size() == 1 && tensors[0].layout() == at::kSparse && tensors[0].device().is_cpu(),
      "allreduce_sparse takes one sparse tensor on the CPU of each rank");
  TORCH_CHECK(how.reduceOp.op_ == c10d::ReduceOp::SUM, "sparse tensors can only be summed up");
  const auto sum = std::make_shared<SparseSum>();
  const at::NoGradGuard no_gradients;
  sum->given = tensors[0];  // an alias of a sparse tensor would get the sum alone
  sum->parts.resize(static_cast<std::size_t>(size_));
  const at::Tensor whole = sum->given.coalesce();
  SparsePart& own = sum->parts[static_cast<std::size_t>(rank_)];
  own.indices = whole.indices().contiguous();
  own.values = whole.values().contiguous();
  own.description = {whole._nnz(), whole.sparse_dim()};
  for (const std::int64_t size : whole.sizes()) own.description.push_back(size);
  for (SparsePart& part : sum->parts) part.description.resize(own.description.size());

  Collective one{shared_memory::CallKind::kSparse, shared_memory::own_timeout(how), how.asyncOp,
                 sum->given.scalar_type()};
  one.make = [&](shared_memory::RankMemory& memory, const shared_memory::Call& call) {
    // Every rank's message of one kind to all others.
    const auto exchange = [sum, &memory, call](auto where) {
      std::vector<Out> out;
      std::vector<In> in;
      const auto own = static_cast<std::size_t>(memory.rank());
      for (int rank = 0; rank < memory.size(); ++rank) {
        if (rank == memory.rank()) continue;
        const auto [from, from_size] = where(sum->parts[own]);
        const auto [to, to_size] = where(sum->parts[static_cast<std::size_t>(rank)]);
        out.push_back({rank, from, from_size});
        in.push_back({rank, to, to_size});
      }
      return std::make_unique<Exchange>(memory, call, std::move(out), std::move(in));
    };
    std::vector<shared_memory::Sequence::Make> steps;
    steps.push_back([exchange] {
      return exchange([](SparsePart& part) {
        return std::pair(reinterpret_cast<char*>(part.description.data()),
                         part.description.size() * sizeof(std::int64_t));
      });
    });
    steps.push_back([exchange, sum, own = static_cast<std::size_t>(rank_)] {
      sum->expect_same_shape(own);
      sum->make_room(own);
      return exchange([](SparsePart& part) {
        return std::pair(bytes_of(part.indices), part.indices.nbytes());
      });
    });
    steps.push_back([exchange] {
      return exchange(
          [](SparsePart& part) { return std::pair(bytes_of(part.values), part.values.nbytes()); });
    });
    return std::make_unique<shared_memory::Sequence>(std::move(steps));
  };
  one.finish = [sum] { sum->finish(); };
  return work(c10d::OpType::_ALLREDUCE_SPARSE, {start(std::move(one))}, tensors);
}

}  // namespace tune
