// The time that the tune program takes to start, and a sweep of one trial of one step to its exit.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/platform/redis_server.h"
#include "core/platform/runtime_directory.h"

namespace tune::bench {
namespace {

constexpr const char* kHelp =
    "Times tune --version and tune run of one trial of one step, to its exit. Bare limits: a "
    "program\n"
    "that does nothing; redis-server started, asked and ended; the plugin of the LibTorch example\n"
    "loaded in a fresh process (in builds with LibTorch).\n\n"
    "bench_start_up [--tiny] [--runs N]";

constexpr const char* kLoad = "--load";  // this program again, which only loads a library

std::string sweep(const std::string& plugin, const std::string& rest) {
  return fmt::format(
      "plugin: {}\nnum_samples: 1\nseed: 1\nmetric: mean_accuracy\n"
      "stop: {{training_iteration: 1}}\n{}",
      plugin, rest);
}

double run_sweep(const Workplace& work, const std::string& file,
                 const std::map<std::string, std::string>& environment = {}) {
  return time_program(
      {tune_program(), "run", file, "--quiet", "--name", "s", "--storage", work.fresh("results")},
      environment);
}

double redis_alone(const Workplace& work) {
  const RuntimeDirectory runtime;
  return time_call([&] {
    const RedisServer server(
        {.runtime_directory = runtime.path(), .data_directory = work.fresh("store")});
  });
}

// ---- The example with LibTorch ------------------------------------------------------------------

void append_count(std::string& out, std::uint32_t count) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(count >> shift & 0xff);
}

// Images of nothing in the files of Fashion-MNIST, so that reading the real ones is not timed.
void write_images(const Workplace& work, const std::string& name) {
  constexpr std::uint32_t kCount = 64;
  constexpr std::uint32_t kSide = 28;
  std::string images, labels;
  for (const std::uint32_t number : {0x803u, kCount, kSide, kSide}) append_count(images, number);
  for (const std::uint32_t number : {0x801u, kCount}) append_count(labels, number);
  images.append(kCount * kSide * kSide, '\0');
  labels.append(kCount, '\0');
  work.write(name + "-images-idx3-ubyte.gz", images);
  work.write(name + "-labels-idx1-ubyte.gz", labels);
}

void measure_torch(const Workplace& work, Table& table, const Setting& setting,
                   const std::string& self) {
  const std::string plugin = TUNE_TORCH_PLUGIN;
  if (plugin.empty()) return table.note("(built without LibTorch: its sweep is left out)");
  write_images(work, "train");
  write_images(work, "t10k");
  const std::string file = work.write(
      "torch.yaml", sweep(plugin,
                          "trainable: FashionMnist\n"
                          "config: {lr: 0.1, samples_per_step: 64, test_samples: 64}\n"));
  const std::vector<double> sweeps = medians(
      setting.runs, {[&] {
                       return run_sweep(work, file, {{"TUNE_FASHION_MNIST_DIR", work.path()}});
                     },
                     [&] {
                       return time_program({self, kLoad, plugin});
                     }});
  table.seconds("the same with the LibTorch example", sweeps[0], "loading the plugin", sweeps[1]);
}

void measure(const Setting& setting, const std::string& self) {
  const Workplace work(setting);
  Table table("start-up");
  const std::vector<double> starts = medians(
      10 * setting.runs, {[] {
                            return time_program({tune_program(), "--version"});
                          },
                          [] { return time_program({"/bin/true"}); },
                          [] { return time_program({TUNE_BINARY_DIR "/bin/bench_minimal"}); }});
  table.seconds("tune --version", starts[0], "/bin/true", starts[1]);
  table.seconds("", starts[0], "a static C++ program", starts[2]);

  const std::string torch_free =
      work.write("sweep.yaml", sweep(TUNE_SYNTHETIC_PLUGIN, "trainable: Curve\n"));
  const std::vector<double> sweeps =
      medians(setting.runs,
              {[&] { return run_sweep(work, torch_free); }, [&] { return redis_alone(work); }});
  table.seconds("tune run, one trial of one step", sweeps[0], "redis-server alone", sweeps[1]);
  measure_torch(work, table, setting, self);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  if (argc == 3 && std::string_view(argv[1]) == kLoad) {
    if (dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) != nullptr) _exit(0);
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const Setting setting = parse_setting(argc, argv, kHelp, 15);
  return guarded([&] { measure(setting, std::filesystem::read_symlink("/proc/self/exe")); });
}
