// tune-worker: the zygote of a plugin or of a command. Started by the agent; not for people.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <dlfcn.h>

#include <fmt/format.h>

#include "core/command_spec.h"
#include "core/error.h"
#include "core/worker_contract.h"
#include "trainables/command/command_worker.h"
#include "trainables/huge_heap.h"
#include "trainables/zygote.h"

namespace tune {
namespace {

struct Arguments {
  std::string plugin;
  std::string command;  // settings of a command, instead of a plugin
  int control = -1;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--plugin") {
      arguments.plugin = argv[i + 1];
    } else if (name == "--command") {
      arguments.command = argv[i + 1];
    } else if (name == "--control-fd") {
      arguments.control = std::atoi(argv[i + 1]);
    }
  }
  if (arguments.plugin.empty() == arguments.command.empty() || arguments.control < 3) {
    return std::nullopt;
  }
  return arguments;
}

ZygoteTrainables refusal(std::string why) {
  ZygoteTrainables trainables;
  trainables.error = std::move(why);
  return trainables;
}

ZygoteTrainables load(const std::string& path) {
  const HugeHeap heap;  // its workers are forked the sooner
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return refusal(fmt::format("loading the plugin: {}", ::dlerror()));
  }
  using PluginInfo = const tune_plugin_info* (*)();
  const auto plugin = reinterpret_cast<PluginInfo>(::dlsym(library, "tune_plugin"));
  if (plugin == nullptr) {
    return refusal(fmt::format(
        "loading the plugin: {} has no trainables; put TUNE_TRAINABLE(Class) into one of its "
        "sources ({})",
        path, ::dlerror()));
  }
  const tune_plugin_info* info = plugin();
  if (info->protocol_version != kWorkerContract) {
    return refusal(fmt::format(
        "loading the plugin: {} was built for version {} of the worker contract, this tune speaks "
        "version {}; build it again against this version",
        path, info->protocol_version, kWorkerContract));
  }
  ZygoteTrainables trainables;
  for (std::uint32_t i = 0; i < info->count; ++i) {
    const tune_plugin_trainable& one = info->trainables[i];
    trainables.infos.push_back({one.name, one.can_save != 0, one.is_function != 0});
  }
  trainables.run_worker = info->run_worker;
  if (void* prepare = ::dlsym(library, "tune_plugin_prepare")) {  // tune::torch's
    trainables.prepare_for_gpus = reinterpret_cast<const char* (*)()>(prepare);
  }
  return trainables;
}

ZygoteTrainables trainables_for(const Arguments& arguments) {
  if (arguments.command.empty()) return load(arguments.plugin);
  try {
    return command_trainables(settings_from_text(arguments.command));
  } catch (const Error& error) {
    return refusal(error.what());
  }
}

}  // namespace
}  // namespace tune

int main(int argc, char** argv) {
  const auto arguments = tune::parse(argc, argv);
  if (!arguments) {
    std::fprintf(
        stderr,
        "tune-worker runs the trainables of a plugin, or programs, for the tune agent, which "
        "starts it:\n"
        "  tune-worker --plugin build/examples/libmnist.so --control-fd 3\n");
    return argc == 2 && std::string_view(argv[1]) == "--help" ? 0 : 2;
  }
  tune::run_zygote(arguments->control, tune::trainables_for(*arguments));
}
