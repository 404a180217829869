// Sweeps of other tools as sweeps of tune: W&B, Determined, NNI and Katib, and NNI's search spaces
// alone. A key that cannot be mapped without changing what the sweep means is refused, with its
// line and what to do; what is mapped with a difference is noted.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace tune {

struct ImportedSweep {
  std::string from;  // "W&B"
  Value sweep = Value::make_map();
  std::vector<std::string> notes = {};  // "line 7: method: ..."
};

// The text of a file that the sweep names, by its path there; nothing when it cannot be read.
using FileBeside = std::function<std::optional<std::string>(const std::string& file)>;

// `source` names the file in messages. Throws one Error (kBadInput) with everything that cannot be
// mapped.
ImportedSweep import_sweep(std::string_view text, const std::string& source,
                           const FileBeside& beside);

// The sweep as YAML, the notes before it as comments.
std::string sweep_text(const ImportedSweep& imported);

}  // namespace tune
