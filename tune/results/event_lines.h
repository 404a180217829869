// Reading events.jsonl. Its lines are described in tune/README.md, "Events".
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace tune {

// Visits the lines of these events in order; all lines when none is named. A missing file has none.
// A last line without its end does not count. Throws Error (kIo) when the file cannot be read,
// Error (kBadInput) naming file and line when one of these lines is not a JSON object.
void for_each_event(const std::filesystem::path& experiment,
                    const std::vector<std::string_view>& events,
                    const std::function<void(const Value& event)>& visit);

}  // namespace tune
