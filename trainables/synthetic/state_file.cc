#include "trainables/synthetic/state_file.h"

#include <fstream>
#include <iterator>

#include "core/error.h"
#include "core/json.h"

namespace tune::synthetic {

void write_state(const std::filesystem::path& directory, const Value& state) {
  const auto path = directory / "state.json";
  std::ofstream file(path);
  file << to_json(state) << '\n';
  file.close();
  if (!file) throw Error(ErrorCode::kIo, "cannot write " + path.string());
}

Value read_state(const std::filesystem::path& directory) {
  const auto path = directory / "state.json";
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::kIo, "cannot read " + path.string());
  return parse_json(std::string(std::istreambuf_iterator<char>(file), {}), path.string());
}

}  // namespace tune::synthetic
