// Batches of more than data and target, and of samples that a function puts together.
#include <memory>
#include <string>
#include <vector>

#include "torch/torch_doctest.h"

namespace tune {
namespace {

using testing::refusal;

// Sentences of 1 to 3 words, a label, and how many words there are.
class Sentences : public Dataset {
 public:
  std::int64_t size() const override { return 6; }
  Batch get(std::int64_t index) const override {
    const std::int64_t words = index % 3 + 1;
    return {torch::full({words}, index, torch::kLong),
            torch::tensor(index),
            {torch::tensor(words), torch::tensor({words, index})}};
  }
};

// Of equal lengths, as the default wants them; `fewer` lacks a tensor.
class Pairs : public Dataset {
 public:
  explicit Pairs(std::int64_t fewer = -1) : fewer_(fewer) {}
  std::int64_t size() const override { return 4; }
  Batch get(std::int64_t index) const override {
    Batch sample{torch::tensor({index, index}), {}, {torch::tensor(index * 10)}};
    if (index == fewer_) sample.more.clear();
    return sample;
  }

 private:
  std::int64_t fewer_;
};

std::shared_ptr<Sampler> batches_in_order(std::int64_t size) {
  return std::make_shared<DistributedSampler>(size, DistributedSamplerOptions{.shuffle = false});
}

Batch padded(std::vector<Batch> samples) {
  std::vector<torch::Tensor> words, labels, lengths;
  for (const Batch& sample : samples) {
    words.push_back(torch::constant_pad_nd(sample.data, {0, 3 - sample.size()}, -1));
    labels.push_back(sample.target);
    lengths.push_back(sample.more[0]);
  }
  return {torch::stack(words), torch::stack(labels), {torch::stack(lengths)}};
}

TEST_CASE("a batch has all tensors of its samples") {
  DataLoader loader(std::make_shared<Pairs>(), batches_in_order(4), {.batch_size = 3});
  const Batch batch = *loader.next();
  CHECK(batch.data.sizes() == torch::IntArrayRef({3, 2}));
  CHECK_FALSE(batch.target.defined());
  REQUIRE(batch.more.size() == 1);
  CHECK(batch.more[0].equal(torch::tensor({0, 10, 20})));

  DataLoader broken(std::make_shared<Pairs>(2), batches_in_order(4), {.batch_size = 3});
  CHECK_HAS(refusal([&] { broken.next(); }), "samples 0 and 2 have 1 and 0 more tensors");
}

TEST_CASE("a function puts samples of different lengths together, also in workers") {
  const auto data = std::make_shared<Sentences>();
  DataLoader plain(data, batches_in_order(6), {.batch_size = 4});
  CHECK_HAS(refusal([&] { plain.next(); }), "samples 0 and 1 differ in shape");
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    DataLoader loader(data, batches_in_order(6),
                      {.batch_size = 4, .workers = workers, .collate = padded});
    const Batch first = *loader.next();
    CHECK(first.data[0].equal(torch::tensor({0, -1, -1})));
    CHECK(first.data[2].equal(torch::tensor({2, 2, 2})));
    CHECK(first.target.equal(torch::tensor({0, 1, 2, 3})));
    CHECK(first.more[0].equal(torch::tensor({1, 2, 3, 1})));
    CHECK(loader.next()->size() == 2);
  }
}

}  // namespace
}  // namespace tune
