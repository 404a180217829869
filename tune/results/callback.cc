#include "tune/results/callback.h"

#include "core/platform/files.h"
#include "tune/results/result_lines.h"

namespace tune {

Config CallbackTrial::config() const {
  const std::filesystem::path file = directory / "params.json";
  return config_from_json(read_file(file), file.string());
}

}  // namespace tune
