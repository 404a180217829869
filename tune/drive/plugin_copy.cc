#include "tune/drive/plugin_copy.h"

#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/fingerprint.h"
#include "core/relay_contract.h"

namespace tune {

namespace fs = std::filesystem;

void copy_plugin(const fs::path& experiment, JoinedSetup& setup) {
  if (setup.plugin.empty()) return;
  const fs::path plugin = setup.plugin;
  const std::string print = fingerprint(plugin);
  if (print.empty()) return;
  setup.plugin_fingerprint = print;
  setup.plugin_copy = kPluginCopies + print;
  const fs::path copy = experiment / setup.plugin_copy / plugin.filename();
  if (fingerprint(copy) == print) return;  // of an earlier driver
  std::error_code error;
  fs::remove_all(experiment / kPluginCopies, error);
  if (!error) fs::create_directories(copy.parent_path(), error);
  if (!error) fs::copy_file(plugin, copy, error);
  if (error) throw file_error("copying the plugin to", copy, error.value());
}

}  // namespace tune
