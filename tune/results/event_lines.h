// Reading events.jsonl. Its lines are described in tune/README.md, "Events".
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace tune {

inline constexpr const char* kEventsFile = "events.jsonl";  // in an experiment's folder

// Of a line, for errors.
struct EventPlace {
  const std::filesystem::path& file;
  std::size_t line;
};
// The event of a line when it is one of these; any, when none is named. Throws Error (kBadInput) as
// for_each_event does. Pure.
std::optional<Value> event_in_line(std::string_view line, const EventPlace& place,
                                   const std::vector<std::string_view>& events);

// Visits the lines of these events in order; all lines when none is named. A missing file has none.
// A last line without its end does not count. Throws Error (kIo) when the file cannot be read,
// Error (kBadInput) naming file and line when one of these lines is not a JSON object.
void for_each_event(const std::filesystem::path& experiment,
                    const std::vector<std::string_view>& events,
                    const std::function<void(Value&& event)>& visit);

}  // namespace tune
