// A plugin as another version of tune would have built it.
#include <cstdint>

struct PluginInfo {
  std::uint32_t protocol_version;
};

extern "C" __attribute__((visibility("default"))) const PluginInfo* tune_plugin() {
  static const PluginInfo info{999};
  return &info;
}
