// The work of ranks through shared memory, beside the same by Gloo.
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <csignal>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranks.h"
#include "torch/torch_doctest.h"
#include "trainables/torch/group_backends.h"
#include "trainables/torch/shared_memory_backend.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using at::Tensor;
using c10d::ReduceOp;
using testing::doubles;
using testing::RankEnd;
using testing::run_group;
using testing::run_ranks;
using testing::values_of;
using Group = c10d::ProcessGroup;
using Tensors = std::vector<Tensor>;

GroupOptions through_memory() {
  GroupOptions options{.timeout = 20s};
  options.gloo_for_cpu = false;
  return options;
}

c10::intrusive_ptr<Group> gloo_beside(const ProcessGroup& group) {
  Rendezvous place;
  place.rank = group.rank();
  place.size = group.size();
  const GroupTimes times{20s, 20s, std::make_shared<GroupWatch>([] { return false; }, 20s)};
  return make_gloo_group(c10::make_intrusive<c10d::PrefixStore>("beside", group.c10d()->getStore()),
                         place, times);
}

// Small whole numbers, so that sums are exact in any order and type; each rank's its own.
Tensor values(const Group& group, at::ScalarType type, std::int64_t count, int what = 0) {
  const Tensor numbers = at::arange(count, at::kLong) * 7 + 3 * group.getRank() + what;
  return (type == at::kBool ? numbers % 2 : numbers % 5 + 1).to(type);
}

struct Case {
  at::ScalarType type;
  std::int64_t count;
  ReduceOp::RedOpType reduction = ReduceOp::SUM;
};
using Call = std::function<Tensors(Group&, const Case&)>;

Tensors each(const Group& group, const Case& one) {
  Tensors list;
  for (int rank = 0; rank < group.getSize(); ++rank) {
    list.push_back(at::zeros({one.count}, one.type));
  }
  return list;
}

Tensors given_to_each(const Group& group, const Case& one) {
  Tensors list;
  for (int rank = 0; rank < group.getSize(); ++rank) {
    list.push_back(values(group, one.type, one.count, rank));
  }
  return list;
}

Tensors all_reduced(Group& group, const Case& one) {
  Tensors tensors{values(group, one.type, one.count)};
  group.allreduce(tensors, {.reduceOp = one.reduction})->wait();
  return tensors;
}

Tensors all_reduced_together(Group& group, const Case& one) {
  Tensors tensors{values(group, one.type, one.count), values(group, one.type, 3, 1)};
  c10d::AllreduceCoalescedOptions how;
  how.reduceOp = one.reduction;
  group.allreduce_coalesced(tensors, how)->wait();
  return tensors;
}

Tensors reduced(Group& group, const Case& one) {
  Tensors tensors{values(group, one.type, one.count)};
  const int root = group.getSize() - 1;
  group.reduce(tensors, {.reduceOp = one.reduction, .rootRank = root})->wait();
  return group.getRank() == root ? tensors : Tensors{};
}

Tensors gathered_by_all(Group& group, const Case& one) {
  std::vector<Tensors> outputs{each(group, one)};
  Tensors inputs{values(group, one.type, one.count)};
  group.allgather(outputs, inputs)->wait();
  return outputs[0];
}

Tensors gathered_into_one(Group& group, const Case& one) {
  Tensor output = at::zeros({group.getSize() * one.count}, one.type);
  Tensor input = values(group, one.type, one.count);
  group._allgather_base(output, input)->wait();
  return {output};
}

Tensors broadcast_of_one(Group& group, const Case& one) {
  Tensors tensors{values(group, one.type, one.count)};
  group.broadcast(tensors, {.rootRank = 1})->wait();
  return tensors;
}

Tensors gathered_at_one(Group& group, const Case& one) {
  std::vector<Tensors> outputs;
  if (group.getRank() == 1) outputs.push_back(each(group, one));
  Tensors inputs{values(group, one.type, one.count)};
  group.gather(outputs, inputs, {.rootRank = 1})->wait();
  return outputs.empty() ? Tensors{} : outputs[0];
}

Tensors scattered(Group& group, const Case& one) {
  std::vector<Tensors> inputs;
  if (group.getRank() == 0) inputs.push_back(given_to_each(group, one));
  Tensors outputs{at::zeros({one.count}, one.type)};
  group.scatter(outputs, inputs, {.rootRank = 0})->wait();
  return outputs;
}

Tensors given_by_rows(Group& group, const Case& one) {
  // To rank r go r rows more than one.
  const int size = group.getSize(), rank = group.getRank();
  std::vector<std::int64_t> in_sizes, out_sizes;
  std::int64_t in_rows = 0, out_rows = 0;
  for (int other = 0; other < size; ++other) {
    in_sizes.push_back(1 + other);
    out_sizes.push_back(1 + rank);
    in_rows += 1 + other;
    out_rows += 1 + rank;
  }
  Tensor input = values(group, one.type, in_rows * 3).view({in_rows, 3});
  Tensor output = at::zeros({out_rows, 3}, one.type);
  group.alltoall_base(output, input, out_sizes, in_sizes)->wait();
  return {output};
}

Tensors sent_round(Group& group, const Case& one) {
  const int size = group.getSize(), rank = group.getRank();
  Tensors mine{values(group, one.type, one.count)}, theirs{at::zeros({one.count}, one.type)};
  const auto sent = group.send(mine, (rank + 1) % size, 4);
  group.recv(theirs, (rank + size - 1) % size, 4)->wait();
  sent->wait();
  return theirs;
}

const std::vector<at::ScalarType> kTypes = {at::kFloat, at::kDouble, at::kHalf, at::kInt,
                                            at::kLong,  at::kByte,   at::kChar};

// The names of calls whose results differ.
std::string differences(Group& memory, Group& gloo, const Case& one,
                        const std::map<std::string, Call>& calls) {
  std::string text;
  for (const auto& [name, call] : calls) {
    const Tensors here = call(memory, one);
    const Tensors there = call(gloo, one);
    bool is_same = here.size() == there.size();
    for (std::size_t i = 0; is_same && i < here.size(); ++i) {
      is_same = here[i].scalar_type() == there[i].scalar_type() && at::equal(here[i], there[i]);
    }
    if (!is_same) {
      text += name + " of " + std::to_string(one.count) + " " + c10::toString(one.type) +
              ", operator " + std::to_string(one.reduction) + "; ";
    }
  }
  return text;
}

void compare(int size, const std::map<std::string, Call>& calls, const std::vector<Case>& cases) {
  CAPTURE(size);
  const auto ends = run_ranks(size, [&](const Rendezvous& place) {
    ProcessGroup group(place, through_memory());
    if (group.c10d()->getBackend(at::kCPU)->getBackendName() != "shared_memory") {
      throw std::runtime_error("the group speaks Gloo");
    }
    const auto gloo = gloo_beside(group);
    std::string text;
    for (const Case& one : cases) text += differences(*group.c10d(), *gloo, one, calls);
    gloo->barrier()->wait();
    group.barrier();
    if (!text.empty()) throw std::runtime_error(text);
    return std::vector<double>{};
  });
  values_of(ends);
}

TEST_CASE("what is moved between ranks of one host arrives as by Gloo") {
  const std::map<std::string, Call> calls = {{"all_gather", gathered_by_all},
                                             {"all_gather into one", gathered_into_one},
                                             {"broadcast", broadcast_of_one},
                                             {"gather", gathered_at_one},
                                             {"scatter", scattered},
                                             {"all_to_all", given_by_rows},
                                             {"send", sent_round}};
  std::vector<Case> cases;
  for (const at::ScalarType type : kTypes) cases.push_back({type, 7});
  for (const std::int64_t count : {1, 16, 4099, 70'001}) cases.push_back({at::kFloat, count});
  for (const int size : {2, 3, 4, 5}) compare(size, calls, cases);
}

TEST_CASE("what is reduced between ranks of one host is as by Gloo, with every operator and type") {
  const std::map<std::string, Call> calls = {{"all_reduce", all_reduced},
                                             {"all_reduce of two", all_reduced_together},
                                             {"reduce", reduced}};
  std::vector<Case> cases;
  for (const at::ScalarType type : kTypes) {
    for (const auto reduction : {ReduceOp::SUM, ReduceOp::PRODUCT, ReduceOp::MIN, ReduceOp::MAX,
                                 ReduceOp::BAND, ReduceOp::BOR, ReduceOp::BXOR}) {
      const bool is_of_bits = reduction >= ReduceOp::BAND;
      if (is_of_bits && !at::isIntegralType(type, false)) continue;
      cases.push_back({type, 33, reduction});
    }
  }
  for (const std::int64_t count : {1, 16, 4095, 4099, 300'001})
    cases.push_back({at::kFloat, count});
  for (const int size : {2, 3, 4, 5}) compare(size, calls, cases);
}

// Checks of one rank, each with a name; the failed ones are the error.
class Checks {
 public:
  void expect(bool is_right, const std::string& name) {
    if (!is_right) failed_ += name + "; ";
  }
  std::vector<double> result() const {
    if (!failed_.empty()) throw std::runtime_error(failed_);
    return {};
  }

 private:
  std::string failed_;
};

std::vector<RankEnd> run_checks(int size, const std::function<void(Group&, Checks&)>& function) {
  return run_ranks(size, [&](const Rendezvous& place) {
    ProcessGroup group(place, through_memory());
    Checks checks;
    function(*group.c10d(), checks);
    group.barrier();
    return checks.result();
  });
}

Tensor full(const std::vector<std::int64_t>& shape, double value,
            at::ScalarType type = at::kFloat) {
  return at::full(shape, value, type);
}

TEST_CASE("shared memory also does what Gloo refuses") {
  const auto ends = run_checks(3, [](Group& group, Checks& checks) {
    const double own = group.getRank() + 1;
    const auto reduced_with = [&](const ReduceOp& how, const Tensor& tensor) {
      Tensors tensors{tensor};
      c10d::AllreduceOptions options;
      options.reduceOp = how;
      group.allreduce(tensors, options)->wait();
      return tensor;
    };
    checks.expect(at::equal(reduced_with(ReduceOp::AVG, full({5}, own)), full({5}, 2)), "mean");
    checks.expect(at::equal(reduced_with(ReduceOp::SUM, full({5}, own, at::kShort)),
                            full({5}, 6, at::kShort)),
                  "short");
    checks.expect(at::equal(reduced_with(ReduceOp::SUM, full({5}, own, at::kBFloat16)),
                            full({5}, 6, at::kBFloat16)),
                  "bfloat16");
    checks.expect(at::equal(reduced_with(ReduceOp::SUM, full({2}, own == 2, at::kBool)),
                            full({2}, 1, at::kBool)),
                  "any");
    checks.expect(at::equal(reduced_with(ReduceOp::PRODUCT, full({2}, own == 2, at::kBool)),
                            full({2}, 0, at::kBool)),
                  "all");
    checks.expect(at::equal(reduced_with(ReduceOp::SUM, full({4}, own, at::kComplexFloat)),
                            full({4}, 6, at::kComplexFloat)),
                  "complex");
    checks.expect(
        at::equal(reduced_with(c10d::makeNCCLPreMulSum(0.5), full({4}, own)), full({4}, 3)),
        "scaled");
    Tensor matrix = full({4, 6}, own);
    reduced_with(ReduceOp::SUM, matrix.t());
    checks.expect(at::equal(matrix, full({4, 6}, 6)), "transposed");
    matrix = full({4, 6}, own);
    reduced_with(ReduceOp::SUM, matrix.select(1, 2));
    checks.expect(matrix.select(1, 2)[0].item<double>() == 6 && matrix[0][1].item<double>() == own,
                  "a column alone");
    checks.expect(at::equal(reduced_with(ReduceOp::SUM, full({0, 3}, 1)), full({0, 3}, 1)), "none");
    for (const auto& refused : {std::pair(ReduceOp::AVG, at::kInt),
                                {ReduceOp::BAND, at::kFloat},
                                {ReduceOp::MIN, at::kComplexFloat}}) {
      bool is_refused = false;
      try {
        reduced_with(refused.first, full({1}, 1, refused.second));
      } catch (const c10::Error&) {
        is_refused = true;
      }
      checks.expect(is_refused, "a refusal");
    }
  });
  values_of(ends);
}

TEST_CASE("lists, parts and views go between the ranks as they lie") {
  const auto ends = run_checks(3, [](Group& group, Checks& checks) {
    const int rank = group.getRank(), size = group.getSize();
    Tensors inputs, outputs;
    for (int other = 0; other < size; ++other) {
      inputs.push_back(full({1 + other, 2}, 10 * rank + other));
      outputs.push_back(full({2, 1 + rank}, -1).t());  // lies by columns
    }
    group.alltoall(outputs, inputs)->wait();
    for (int other = 0; other < size; ++other) {
      checks.expect(at::equal(outputs[static_cast<std::size_t>(other)],
                              full({1 + rank, 2}, 10 * other + rank)),
                    "all_to_all");
    }
    Tensor whole = at::arange(6, at::kFloat) + rank;  // sums: 3 * i + 3
    Tensor part = at::zeros({2});
    group._reduce_scatter_base(part, whole)->wait();
    checks.expect(at::equal(part, at::arange(2 * rank, 2 * rank + 2, at::kFloat) * 3 + 3),
                  "reduce_scatter into a part");
    std::vector<Tensors> lists{{full({2}, 1), full({2}, 2), full({2}, 3)}};
    Tensors sums{at::zeros({2})};
    group.reduce_scatter(sums, lists)->wait();
    checks.expect(at::equal(sums[0], full({2}, 3.0 * (rank + 1))), "reduce_scatter of a list");
    Tensor table = at::zeros({2, 3}).t(), row = full({2}, rank);  // a row a rank
    group._allgather_base(table, row)->wait();
    for (int other = 0; other < size; ++other) {
      checks.expect(at::equal(table[other], full({2}, other)), "all_gather into columns");
    }
    std::vector<Tensors> by_rank;
    for (int other = 0; other < size; ++other) by_rank.push_back({at::zeros({2}), at::zeros({3})});
    Tensors both{full({2}, rank), full({3}, rank + 0.5)};
    group.allgather_coalesced(by_rank, both)->wait();
    checks.expect(at::equal(by_rank[2][1], full({3}, 2.5)), "all_gather of two");
  });
  values_of(ends);
}

SharedMemoryBackend& backend_of(Group& group) {
  return dynamic_cast<SharedMemoryBackend&>(*group.getDefaultBackend());
}

bool is_reached_by_all(Group& group, const Tensor& tensor) {
  const auto* data = static_cast<const char*>(tensor.const_data_ptr());
  return backend_of(group).memory().segment()->heap().place_of(data, tensor.nbytes()).block != 0;
}

TEST_CASE("a tensor of the group's memory is reduced as any other is, bit for bit") {
  const auto ends = run_checks(3, [](Group& group, Checks& checks) {
    const auto generator = torch::make_generator<at::CPUGeneratorImpl>(group.getRank());
    for (const ReduceOp& how : {ReduceOp(ReduceOp::SUM), ReduceOp(ReduceOp::AVG)}) {
      Tensors own{at::randn({70'001}, generator)};
      Tensors shared{backend_of(group).allocateTensor(70'001, at::kFloat).copy_(own[0])};
      checks.expect(is_reached_by_all(group, shared[0]) && !is_reached_by_all(group, own[0]),
                    "the place");
      group.allreduce(own, {.reduceOp = how})->wait();
      group.allreduce(shared, {.reduceOp = how})->wait();
      checks.expect(at::equal(own[0], shared[0]), "the sum");
      // Not as it lies: the copy that is summed lies elsewhere on all ranks.
      Tensors apart{shared[0].slice(0, 0, 70'000).view({700, 100}).t()};
      group.allreduce(apart)->wait();
      group.allreduce(own)->wait();
      checks.expect(at::equal(own[0].slice(0, 0, 70'000).view({700, 100}).t(), apart[0]), "a view");
    }
    bool is_refused = false;
    try {
      backend_of(group).allocateTensor(4, at::TensorOptions(at::kFloat).device(at::kMeta));
    } catch (const c10::Error&) {
      is_refused = true;
    }
    checks.expect(is_refused && !backend_of(group).supportsTensorAlloc(0), "another device");
  });
  values_of(ends);
}

TEST_CASE("gradients that are views of DDP's buckets lie where all ranks reach them") {
  const auto ends = run_group(2, [](ProcessGroup& group) {
    torch::manual_seed(1);
    torch::nn::Linear net(300, 200);
    DistributedDataParallel<torch::nn::LinearImpl> model(net, group,
                                                     {.gradient_as_bucket_view = true});
    std::vector<double> found;
    for (int step = 0; step < 3; ++step) {
      model.backward(model.forward(torch::full({4, 300}, 1.0 + group.rank())).sum());
      found.push_back(is_reached_by_all(*group.c10d(), net->weight.grad()));
      found.push_back(net->weight.grad()[7][7].item<double>());
      for (torch::Tensor& parameter : net->parameters()) parameter.mutable_grad().zero_();
    }
    return found;
  });
  CHECK(values_of(ends) == std::vector<double>{1, 6, 1, 6, 1, 6});  // 4 times the mean of 1 and 2
  CHECK(testing::are_equal(ends));
}

TEST_CASE(
    "sparse tensors are summed up, also where ranks have none or different numbers of values") {
  const auto ends = run_checks(3, [](Group& group, Checks& checks) {
    Tensor dense = at::zeros({6, 2});
    for (int row = 0; row < 2 * group.getRank(); ++row) dense[row + 1].fill_(group.getRank());
    Tensors tensors{dense.to_sparse(1)};
    group.allreduce(tensors)->wait();
    const Tensor sum = tensors[0].to_dense();
    // Rank 1 has rows 1 and 2, rank 2 rows 1 to 4.
    checks.expect(sum[0][0].item<double>() == 0 && sum[1][1].item<double>() == 3 &&
                      sum[2][0].item<double>() == 3 && sum[4][0].item<double>() == 2,
                  "the sum");
  });
  values_of(ends);
}

TEST_CASE("futures, and works that are asked whether they have ended, get there without a wait") {
  const auto ends = run_checks(2, [](Group& group, Checks& checks) {
    Tensors tensors{full({100'000}, group.getRank() + 1)};
    if (group.getRank() == 1) std::this_thread::sleep_for(50ms);
    const auto work = group.allreduce(tensors);
    const auto future = work->getFuture();
    future->wait();
    checks.expect(
        !future->hasError() && at::equal(future->value().toTensorVector()[0], full({100'000}, 3)),
        "the future");
    checks.expect(work->isCompleted() && work->isSuccess(), "ended");
    if (group.getRank() == 1) std::this_thread::sleep_for(20ms);
    const auto barrier = group.barrier();
    while (!barrier->isCompleted()) std::this_thread::yield();
    Tensors message{full({3}, group.getRank())};
    if (group.getRank() == 0) group.send(message, 1, 9)->wait();
    if (group.getRank() == 1) {
      const auto received = group.recvAnysource(message, 9);
      received->wait();
      checks.expect(received->sourceRank() == 0 && at::equal(message[0], full({3}, 0)), "source");
    }
  });
  values_of(ends);
}

TEST_CASE("a monitored barrier names the ranks that did not come") {
  const auto ends = run_ranks(3, [](const Rendezvous& place) {
    ProcessGroup group(place, through_memory());
    c10d::BarrierOptions how;
    how.timeout = 300ms;
    group.c10d()->monitoredBarrier(how, true);
    if (group.rank() == 2) {
      std::this_thread::sleep_for(1500ms);
    } else {
      group.c10d()->monitoredBarrier(how, true);
    }
    return std::vector<double>{};
  });
  CHECK(testing::has(ends[0].error, "rank 2") + testing::has(ends[1].error, "rank 2") >= 1);
  for (const RankEnd& end : {ends[0], ends[1]}) CHECK_FALSE(end.error.empty());
}

std::string way_of(const ProcessGroup& group) {
  return group.c10d()->getBackend(at::kCPU)->getBackendName();
}

TEST_CASE("all ranks speak Gloo when one wants it or has no memory") {
  for (const bool wants : {true, false}) {
    CAPTURE(wants);
    const auto ends = run_ranks(3, [wants](Rendezvous place) {
      GroupOptions options = through_memory();
      if (place.rank == 1) {
        options.gloo_for_cpu = wants;
        if (!wants) place.shared_memory.reset();
      }
      ProcessGroup group(place, options);
      Tensor one = at::ones({1});
      group.all_reduce(one);
      ProcessGroup other = group.duplicate();
      other.all_reduce(one);
      group.barrier();
      return std::vector<double>{way_of(group) == "gloo" ? 1.0 : 0.0,
                                 way_of(other) == "gloo" ? 1.0 : 0.0, one.item<double>()};
    });
    CHECK(values_of(ends) == std::vector<double>{1, 1, 9});
  }
}

TEST_CASE("groups come and go in the memory of the first, and after one that failed") {
  const auto ends = run_ranks(2, [](const Rendezvous& place) {
    ProcessGroup group(place, through_memory());
    Tensor one = at::ones({20'000});
    for (int round = 0; round < 5; ++round) {
      ProcessGroup other = group.duplicate();
      ProcessGroup third = other.duplicate();
      other.all_reduce(one, Reduce::kMean);
      third.all_reduce(one, Reduce::kMean);
      if (round == 2) third.c10d()->getBackend(at::kCPU)->abort();
    }
    if (way_of(group) != "shared_memory") throw std::runtime_error("Gloo");
    group.barrier();
    return doubles(one.slice(0, 0, 1));
  });
  CHECK(values_of(ends) == std::vector<double>{1});
}

}  // namespace
}  // namespace tune
