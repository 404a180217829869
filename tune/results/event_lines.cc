#include "tune/results/event_lines.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"
#include "core/quick_json.h"
#include "tune/results/result_lines.h"

namespace tune {

namespace {

// Whether "event":"<one of these>" stands anywhere in the line.
bool may_be_one(std::string_view line, const std::vector<std::string_view>& events) {
  constexpr std::string_view kMark = "\"event\":\"";
  for (std::size_t at = line.find(kMark); at != line.npos; at = line.find(kMark, at)) {
    at += kMark.size();
    const std::string_view name = line.substr(at, line.find('"', at) - at);
    if (std::ranges::find(events, name) != events.end()) return true;
  }
  return false;
}

}  // namespace

// Most lines are not asked for: they are told by their text, and not parsed.
std::optional<Value> event_in_line(std::string_view line, const EventPlace& place,
                                   const std::vector<std::string_view>& events) {
  if (!events.empty() && !may_be_one(line, events)) return std::nullopt;
  auto quick = quick_json(line);  // without the words for an error
  Value event = quick ? std::move(*quick)
                      : parse_any_json(line, fmt::format("{}:{}", place.file.string(), place.line));
  const std::string name = event.get_or("event", "");
  const bool is_one = events.empty() || std::ranges::find(events, name) != events.end();
  if (!is_one) return std::nullopt;  // it stands within a text
  return event;
}

void for_each_event(const std::filesystem::path& experiment,
                    const std::vector<std::string_view>& events,
                    const std::function<void(Value&& event)>& visit) {
  const std::filesystem::path file = experiment / kEventsFile;
  for_each_line(file, [&](std::string_view line, std::size_t number) {
    if (auto event = event_in_line(line, {file, number}, events)) visit(std::move(*event));
  });
}

}  // namespace tune
