// The quickstart's trainable, stepped by hand as a worker would.
#include "fashion_mnist.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/refusal.h"
#include "trainables/access.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

struct Worker {
  Worker(const Config& config, std::uint64_t seed)
      : context(ContextBuilder::for_restore("t", ".", seed, 0)) {
    TrainableAccess::set_context(trainable, context);
    trainable.setup(config);
  }
  Context context;
  FashionMnist trainable;
};

double accuracy(const Result& result) {
  return result.get<double>("mean_accuracy");
}

TEST_CASE("the network learns to tell clothes apart within a few steps") {
  Worker worker({{"lr", 0.03}, {"momentum", 0.9}, {"samples_per_step", 2048}}, 1);
  CHECK(accuracy(worker.trainable.evaluate()) < 0.3);
  Result result;
  for (int i = 0; i < 3; ++i) result = worker.trainable.step();
  CHECK(accuracy(result) > 0.6);
  CHECK(result.get<double>("mean_loss") < 1.2);
}

TEST_CASE("a restored trial goes on exactly as the one that was saved, past the end of an epoch") {
  // 1,000 images to learn, 600 a step: the second epoch begins in step 2, the third in step 4.
  const Config config = {{"lr", 0.05},
                         {"momentum", 0.9},
                         {"samples_per_step", 600},
                         {"held_out", 59000},
                         {"test_samples", 500}};
  const testing::TemporaryFolder folder;
  Worker saved(config, 7);
  saved.trainable.step();
  const Result at_save = saved.trainable.step();
  saved.trainable.save(folder.path());
  // One after the other: trials have a process each, here they share LibTorch's generator.
  std::vector<Result> results;
  for (int i = 0; i < 3; ++i) results.push_back(saved.trainable.step());

  Worker restored(config, 7);
  restored.trainable.load(folder.path());
  CHECK(restored.trainable.evaluate().dump() == at_save.dump());
  for (const Result& result : results) {
    CHECK(restored.trainable.step().dump() == result.dump());
  }
}

TEST_CASE("the seed alone decides how a training goes") {
  const Config config = {
      {"lr", 0.05}, {"samples_per_step", 256}, {"held_out", 59000}, {"test_samples", 500}};
  const Result first = Worker(config, 7).trainable.step();
  CHECK(Worker(config, 7).trainable.step() == first);
  CHECK(Worker(config, 8).trainable.step() != first);
}

TEST_CASE("settings that make no sense are refused by name") {
  const auto refusal = [](const Config& config) {
    return testing::refusal([&] { Worker worker(config, 1); });
  };
  CHECK(refusal({{"lr", 0.1}, {"batch_size", 0}}) == "batch_size is 0, at least 1 is wanted");
  CHECK(refusal({{"lr", 0.1}, {"held_out", 60000}}) ==
        "held_out is 60000 of 60000 images, which leaves none to learn");
  CHECK_HAS(refusal({{"momentum", 0.1}}), "lr");
}

}  // namespace
}  // namespace tune
