#include "tune/results/event_lines.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/json.h"
#include "tune/results/result_lines.h"

namespace tune {

// Most lines are not asked for: they are told by their text, and not parsed.
void for_each_event(const std::filesystem::path& experiment,
                    const std::vector<std::string_view>& events,
                    const std::function<void(const Value& event)>& visit) {
  const std::filesystem::path file = experiment / "events.jsonl";
  const auto may_be = [](std::string_view line, std::string_view event) {
    return line.find(fmt::format("\"event\":\"{}\"", event)) != line.npos;
  };
  for_each_line(file, [&](std::string_view line, std::size_t number) {
    const bool is_asked_for =
        events.empty() ||
        std::ranges::any_of(events, [&](std::string_view event) { return may_be(line, event); });
    if (!is_asked_for) return;
    const Value event = parse_json(line, fmt::format("{}:{}", file.string(), number));
    const std::string name = event.get_or("event", "");
    const bool is_one = events.empty() || std::ranges::find(events, name) != events.end();
    if (is_one) visit(event);  // else it stands within a text
  });
}

}  // namespace tune
