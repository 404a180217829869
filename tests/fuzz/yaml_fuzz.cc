// YAML sweeps: an accepted sweep is a spec that experiment.json gives back.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "core/json.h"
#include "fuzz/check.h"
#include "tune/spec/yaml_spec.h"

namespace {

using namespace tune;

// A file in memory, written anew each time.
std::string file_with(const std::uint8_t* data, std::size_t size) {
  static const int descriptor = memfd_create("sweep", 0);
  fuzz::require(ftruncate(descriptor, 0) == 0, "a file is emptied");
  const auto written = pwrite(descriptor, data, size, 0);
  fuzz::require(written == static_cast<ssize_t>(size), "a file is written");
  return "/proc/self/fd/" + std::to_string(descriptor);
}

}  // namespace

TUNE_FUZZ_TARGET(yaml)(const std::uint8_t* data, std::size_t size) {
  const std::string file = file_with(data, size);
  fuzz::refused_as(ErrorCode::kBadInput, [&] {
    const ExperimentSpec spec = spec_from_yaml_file(file);
    const std::string stored = to_json(to_value(spec));
    const ExperimentSpec back = spec_from_value(parse_json(stored, "experiment.json"));
    fuzz::require(to_json(to_value(back)) == stored, "a spec is stored and read back");
  });
  return 0;
}
