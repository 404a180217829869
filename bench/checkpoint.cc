// The time for which a training stands still for a checkpoint of 500 MB, a model and its Adam, that
// is written beside it, next to the time of the whole write.
#include <ATen/Parallel.h>
#include <tune/torch.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "bench/harness.h"
#include "core/platform/files.h"

namespace tune::bench {
namespace {

constexpr const char* kHelp =
    "Times a checkpoint of 500 MB, of a model and its Adam: written and flushed while the\n"
    "training waits, and copied, to be written by another thread. The first copy, which gets its\n"
    "memory, is not counted.\n\n"
    "bench_checkpoint [--tiny] [--runs N]";

void measure(const Setting& setting) {
  at::set_num_threads(1);
  const std::int64_t width = setting.tiny ? 64 : 2048;
  torch::nn::Sequential model;
  for (int i = 0; i < 10; ++i) model->push_back(torch::nn::Linear(width, width));  // 16.8 MB each
  FusedAdam optimizer(model->parameters(), torch::optim::AdamOptions(1e-3));
  for (const torch::Tensor& parameter : model->parameters()) {
    parameter.mutable_grad() = torch::randn_like(parameter);
  }
  const auto train = [&] { optimizer.step(); };
  train();
  const Workplace workplace(setting);
  // Removed at once: 500 MB a run.
  const auto with_folder = [&](const auto& call) {
    const auto folder = workplace.fresh("checkpoint");
    std::filesystem::create_directories(folder);
    const double time = call(folder);
    std::filesystem::remove_all(folder);
    return time;
  };

  CheckpointCopies copies;
  const auto whole = [&](const std::filesystem::path& folder) {
    return time_call([&] {
      save_checkpoint(folder, *model, optimizer);
      flush_folder(folder);
    });
  };
  const auto beside = [&](const std::filesystem::path& folder) {
    std::thread writing;
    const double still = time_call([&] {
      writing =
          std::thread([folder, write = checkpoint_writer(folder, *model, optimizer, &copies)] {
            write();
            flush_folder(folder);
          });
    });
    train();
    writing.join();
    return still;
  };
  with_folder(beside);
  const std::vector<double> times = medians(
      setting.runs, {[&] { return with_folder(whole); }, [&] { return with_folder(beside); }});
  std::printf("written while the training waits  %8.1f ms\n", 1e3 * times[0]);
  std::printf("copied, and written beside it     %8.1f ms   %.3f of it\n", 1e3 * times[1],
              times[1] / times[0]);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 5);
  return guarded([&] { measure(setting); });
}
