// Samplers, which say what comes in which order, and the loaders that make batches of it.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "torch/torch_doctest.h"

namespace tune {
namespace {

using testing::refusal;
using Indices = std::vector<std::int64_t>;

Indices to_vector(const torch::Tensor& tensor) {
  return {tensor.data_ptr<std::int64_t>(), tensor.data_ptr<std::int64_t>() + tensor.numel()};
}

Indices numbers(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::int64_t>(in), {}};
}

TEST_CASE("the distributed sampler gives the indices that Python's gives") {
  std::ifstream in(TUNE_SOURCE_DIR "/tests/torch/data/distributed_sampler.txt");
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    CAPTURE(line);
    const auto colon = line.find(':');
    REQUIRE(colon != std::string::npos);
    const Indices head = numbers(line.substr(0, colon));
    REQUIRE(head.size() == 6);
    std::istringstream ranks(line.substr(colon + 1));
    std::string expected;
    for (std::int64_t rank = 0; rank < head[1]; ++rank) {
      REQUIRE(std::getline(ranks, expected, '|'));
      DistributedSampler sampler(head[0], {.rank = rank,
                                           .world_size = head[1],
                                           .shuffle = head[2] == 1,
                                           .drop_last = head[3] == 1,
                                           .seed = static_cast<std::uint64_t>(head[5])});
      sampler.set_epoch(head[4]);
      CHECK(to_vector(sampler.indices()) == numbers(expected));
      CHECK(sampler.size() == sampler.indices().size(0));
    }
  }
  CHECK(lines == 451);
}

TEST_CASE("without padding each sample counts once on any number of ranks") {
  for (const std::int64_t size : {1, 2, 5, 12, 13}) {
    for (std::int64_t world = 1; world <= 14; ++world) {
      for (const bool shuffle : {false, true}) {
        CAPTURE(size);
        CAPTURE(world);
        Indices all;
        for (std::int64_t rank = 0; rank < world; ++rank) {
          DistributedSampler sampler(
              size, {.rank = rank, .world_size = world, .shuffle = shuffle, .pad = false});
          const Indices own = to_vector(sampler.indices());
          CHECK(static_cast<std::int64_t>(own.size()) == sampler.size());
          // The shares differ by at most one: floor or ceil of size / world.
          CHECK(sampler.size() >= size / world);
          CHECK(sampler.size() <= (size + world - 1) / world);
          all.insert(all.end(), own.begin(), own.end());
        }
        std::sort(all.begin(), all.end());
        CHECK(all == to_vector(torch::arange(size)));
      }
    }
  }
}

TEST_CASE("a restored sampler goes on where the saved one stood") {
  DistributedSampler saved(10, {.rank = 1, .world_size = 2, .seed = 3});
  saved.set_epoch(4);
  saved.next(2);
  const Value state = saved.state();
  const Indices rest = to_vector(saved.next(100));
  CHECK(rest.size() == 3);
  CHECK(saved.next(1).numel() == 0);

  DistributedSampler restored(10, {.rank = 1, .world_size = 2, .seed = 3});
  restored.load_state(state);
  CHECK(restored.epoch() == 4);
  CHECK(restored.position() == 2);
  CHECK(to_vector(restored.next(100)) == rest);

  DistributedSampler smaller(10, {.world_size = 10});
  CHECK(refusal([&] { smaller.load_state(state); }) ==
        "loading a sampler: position 2 is not within its 1 samples: the state is of other data or "
        "another world size");
  CHECK_HAS(refusal([&] { smaller.load_state({{"epoch", 1}}); }), "position");
  CHECK(refusal([&] { smaller.set_epoch(-1); }) == "epoch -1 of a sampler is below 0");
}

TEST_CASE("the subset sampler shuffles what it is given by seed and epoch") {
  const Indices subset = {40, 10, 30, 20, 99};
  SubsetRandomSampler sampler(subset, 1);
  const Indices first = to_vector(sampler.indices());
  // torch.randperm(5, generator=torch.Generator().manual_seed(seed)) of Python gives
  // 0 4 2 3 1 for seed 1 and 3 4 1 0 2 for seed 2 = seed 1 + epoch 1.
  CHECK(first == (Indices{40, 99, 30, 20, 10}));
  sampler.set_epoch(1);
  CHECK(to_vector(sampler.indices()) == (Indices{20, 99, 10, 40, 30}));
  SubsetRandomSampler other(subset, 2);
  CHECK(to_vector(other.indices()) == to_vector(sampler.indices()));
  CHECK(refusal([] { SubsetRandomSampler({}); }) == "a sampler needs samples, the subset has none");
}

TEST_CASE("samplers refuse what leaves a rank without samples") {
  const auto distributed = [](std::int64_t size, const DistributedSamplerOptions& options) {
    return refusal([&] { DistributedSampler(size, options); });
  };
  CHECK(distributed(0, {}) == "a sampler needs samples, there are 0");
  CHECK(distributed(9, {.rank = 2, .world_size = 2}) == "rank 2 is not in a world of 2");
  CHECK(distributed(9, {.rank = -1, .world_size = 2}) == "rank -1 is not in a world of 2");
  CHECK(distributed(9, {.world_size = 0}) == "rank 0 is not in a world of 0");
  CHECK(distributed(3, {.world_size = 4, .drop_last = true}) ==
        "drop_last leaves none of 3 samples to 4 ranks");
  CHECK(distributed(3, {.drop_last = true, .pad = false}) ==
        "drop_last leaves samples out, pad = false wants each once: choose one");
  CHECK(batch_of_rank(12, 4) == 3);
  CHECK(refusal([] { batch_of_rank(3, 4); }) ==
        "a batch of 3 cannot be shared evenly by 4 ranks: make batch_size a multiple, 4 say");
  CHECK(refusal([] { batch_of_rank(10, 4); }) ==
        "a batch of 10 cannot be shared evenly by 4 ranks: make batch_size a multiple, 8 say");
}

// Sample i of epoch e is {i, e}; one index may be broken. Counts what was asked for.
class Counted : public Dataset {
 public:
  explicit Counted(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  Batch get(std::int64_t index) const override {
    ++asked;
    // Later samples are made sooner, were they not put in order again.
    for (std::int64_t i = index; i < size_; ++i) std::this_thread::yield();
    if (index == broken) throw std::runtime_error("sample 5 is broken");
    return {torch::tensor({index, epoch_}), torch::tensor(index)};
  }
  void set_epoch(std::int64_t epoch) override { epoch_ = epoch; }

  std::atomic<std::int64_t> broken = -1;
  mutable std::atomic<int> asked = 0;

 private:
  std::int64_t size_;
  std::int64_t epoch_ = -1;
};

std::shared_ptr<Sampler> in_order(std::int64_t size) {
  return std::make_shared<DistributedSampler>(size, DistributedSamplerOptions{.shuffle = false});
}

std::vector<Indices> targets_of_epoch(DataLoader& loader) {
  std::vector<Indices> targets;
  for (const Batch& batch : loader) targets.push_back(to_vector(batch.target));
  return targets;
}

TEST_CASE("a loader gives each epoch's samples in the sampler's order, whatever makes them") {
  for (const int workers : {0, 1, 3}) {
    CAPTURE(workers);
    const auto data = std::make_shared<Counted>(7);
    const auto sampler = std::make_shared<DistributedSampler>(7, DistributedSamplerOptions{});
    DataLoader loader(data, sampler, {.batch_size = 3, .workers = workers});
    CHECK(loader.batches() == 3);
    std::vector<Indices> seen;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      CHECK(loader.epoch() == epoch);
      DistributedSampler expected(7, {});
      expected.set_epoch(epoch);
      Indices all;
      std::vector<std::int64_t> sizes;
      for (const Batch& batch : loader) {
        sizes.push_back(batch.size());
        const Indices own = to_vector(batch.target);
        all.insert(all.end(), own.begin(), own.end());
        CHECK(to_vector(batch.data.select(1, 0).contiguous()) == own);
        CHECK(batch.data.select(1, 1).eq(epoch).all().item<bool>());
      }
      CHECK(sizes == std::vector<std::int64_t>{3, 3, 1});
      CHECK(all == to_vector(expected.indices()));
      seen.push_back(all);
    }
    CHECK(seen[0] != seen[1]);
  }
}

TEST_CASE("a loader leaves out the last batch when it is told to") {
  const auto data = std::make_shared<Counted>(7);
  DataLoader loader(data, in_order(7), {.batch_size = 3, .drop_last = true, .workers = 2});
  CHECK(targets_of_epoch(loader) == std::vector<Indices>{{0, 1, 2}, {3, 4, 5}});
  CHECK(targets_of_epoch(loader).size() == 2);
  CHECK(loader.epoch() == 2);
  CHECK(data->asked == 12);
}

TEST_CASE("a batch of tensors in memory is one selection of rows") {
  const torch::Tensor rows = torch::arange(12).reshape({6, 2}).to(torch::kFloat32);
  const auto data = std::make_shared<TensorDataset>(rows, torch::arange(6));
  DataLoader loader(data, in_order(6), {.batch_size = 4, .pin_memory = true});
  const auto batch = loader.next();
  REQUIRE(batch.has_value());
  CHECK(batch->data.equal(rows.slice(0, 0, 4)));
  CHECK(batch->target.equal(torch::arange(4)));
  CHECK(data->get(5).data.equal(rows[5]));
  const TensorDataset alone(rows);
  CHECK_FALSE(alone.get(0).target.defined());
  CHECK_FALSE(alone.get_batch(torch::tensor({1})).target.defined());
}

TEST_CASE("what a data set throws comes out at its batch, which may be tried again") {
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    const auto data = std::make_shared<Counted>(8);
    data->broken = 5;
    DataLoader loader(data, in_order(8), {.batch_size = 2, .workers = workers});
    CHECK(to_vector(loader.next()->target) == Indices{0, 1});
    CHECK(to_vector(loader.next()->target) == Indices{2, 3});
    CHECK_THROWS_WITH(loader.next(), "sample 5 is broken");
    CHECK_THROWS_WITH(loader.next(), "sample 5 is broken");
    data->broken = -1;
    CHECK(targets_of_epoch(loader) == std::vector<Indices>{{4, 5}, {6, 7}});
  }
}

TEST_CASE("a restored loader goes on after what the loop was given, not what was made ahead") {
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    const auto data = std::make_shared<Counted>(9);
    const auto loader = [&] {
      return DataLoader(data, std::make_shared<SubsetRandomSampler>(Indices{8, 7, 6, 5, 4, 3}, 1),
                        {.batch_size = 2, .workers = workers});
    };
    DataLoader saved = loader();
    saved.set_epoch(3);
    saved.next();
    const Value state = saved.state();
    const auto rest = targets_of_epoch(saved);
    const auto epoch_after = targets_of_epoch(saved);
    CHECK(rest.size() == 2);

    DataLoader restored = loader();
    restored.next();
    restored.load_state(state);
    CHECK(targets_of_epoch(restored) == rest);
    CHECK(targets_of_epoch(restored) == epoch_after);
    restored.set_epoch(4);
    CHECK(targets_of_epoch(restored) == epoch_after);
  }
}

TEST_CASE("a loader ends in the middle of an epoch, and leaves the number of threads as it was") {
  const int threads = torch::get_num_threads();
  torch::set_num_threads(2);
  const auto data = std::make_shared<Counted>(1000);
  for (int i = 0; i < 20; ++i) {
    DataLoader loader(data, in_order(1000), {.batch_size = 1, .workers = 3, .prefetch = 4});
    for (int batch = 0; batch < i % 3; ++batch) loader.next();
  }
  // 3 workers make 4 batches each ahead, beyond the at most 2 that the loop was given.
  CHECK(data->asked <= 20 * (2 + 3 * 4));
  CHECK(torch::get_num_threads() == 2);
  int new_thread = 0;
  std::thread([&] { new_thread = torch::get_num_threads(); }).join();
  CHECK(new_thread == 2);
  torch::set_num_threads(threads);
}

// Notes on how many threads a thread that makes samples computes.
class Computed : public Dataset {
 public:
  std::int64_t size() const override { return 8; }
  Batch get(std::int64_t) const override {
    const torch::Tensor all = torch::ones({1 << 17}).exp();  // LibTorch divides it between threads
    int most = torch::get_num_threads();
    at::parallel_for(0, 1, 1, [](std::int64_t, std::int64_t) {});  // as a user's file compiles it
    most = std::max(most, torch::get_num_threads());
    if (most > threads) threads = most;
    return {all, torch::ones({1})};
  }
  mutable std::atomic<int> threads = 0;
};

TEST_CASE("a loader's threads each compute on one thread, also after their first operation") {
  const int threads = torch::get_num_threads();
  torch::set_num_threads(3);
  const auto data = std::make_shared<Computed>();
  DataLoader loader(data, in_order(8), {.batch_size = 1, .workers = 2});
  while (loader.next()) {
  }
  CHECK(data->threads == 1);
  CHECK(torch::get_num_threads() == 3);
  torch::set_num_threads(threads);
}

TEST_CASE("loaders and data sets refuse numbers that make no sense") {
  const auto data = std::make_shared<Counted>(4);
  const auto loader = [&](const DataLoaderOptions& options) {
    return refusal([&] { DataLoader(data, in_order(4), options); });
  };
  CHECK(loader({.batch_size = 0}) == "batch_size of a loader is 0, at least 1 is wanted");
  CHECK(loader({.workers = -1}) == "workers of a loader is -1, at least 0 is wanted");
  CHECK(loader({.prefetch = 0}) == "prefetch of a loader is 0, at least 1 is wanted");
  CHECK(loader({.batch_size = 5, .drop_last = true}) ==
        "drop_last leaves no batch: batch_size is 5, this rank has 4 samples");
  CHECK(refusal([] {
          TensorDataset(torch::zeros({3, 2}), torch::zeros({2}));
        }) == "a data set of 3 samples has 2 targets");
  CHECK(refusal([] {
          TensorDataset(torch::zeros({0, 2}));
        }) == "a data set needs samples, its tensor has none");
}

}  // namespace
}  // namespace tune
