#include "tune/drive/replay_lines.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"
#include "core/value.h"
#include "tune/results/event_lines.h"

namespace tune {

namespace {

// Kinds of lines that older builds did not write.
constexpr std::array<std::string_view, 5> kYoung = {"rung", "proposed", "replaced", "allocation",
                                                    "pool"};

bool is_young(const std::string& event) {
  return std::ranges::find(kYoung, event) != kYoung.end();
}

std::string event_of(const Value& line) {
  return line.get_or("event", "");
}

// Of an older build: keys that it did not know may be missing in the file.
bool holds_all_of(const Value& journaled, const Value& replayed) {
  return std::ranges::all_of(journaled.map(), [&](const Member& member) {
    const Value* value = replayed.find(member.key);
    return value != nullptr && *value == member.value;
  });
}

std::string what_of(const Value& line) {
  const std::string trial = line.get_or("trial", "");
  return fmt::format("events.jsonl, {}{}", event_of(line),
                     trial.empty() ? "" : " of trial " + trial);
}

}  // namespace

ReplayLines::ReplayLines(std::filesystem::path file, bool is_over)
    : file_(std::move(file)), is_over_(is_over), in_(file_, std::ios::binary) {}

void ReplayLines::begin_at(std::uint64_t byte) {
  in_.clear();
  in_.seekg(static_cast<std::streamoff>(byte));
  ahead_.reset();
  is_at_end_ = false;
}

// A last line without its end is still being written, or was cut short.
bool ReplayLines::next(std::string& line) {
  if (ahead_) {
    line = std::move(*std::exchange(ahead_, std::nullopt));
    return true;
  }
  if (is_at_end_ || !std::getline(in_, line) || in_.eof()) is_at_end_ = true;
  return !is_at_end_;
}

std::optional<ReplayLines::Mismatch> ReplayLines::compare(std::string_view lines) {
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    if (auto mismatch = compare_line(std::string(lines.substr(begin, end - begin))))
      return mismatch;
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<ReplayLines::Mismatch> ReplayLines::compare_line(const std::string& line) {
  std::string journaled;
  const Value replayed = parse_json(line, "a replayed line");
  if (!next(journaled)) {
    if (!is_over_) return std::nullopt;  // written later, or lost with the driver
    return Mismatch{what_of(replayed), "the file ends before it", line};
  }
  if (journaled != line) {
    const Value found = parse_json(journaled, file_.string());
    const bool is_other = event_of(found) != event_of(replayed);
    if (is_other && is_young(event_of(replayed)) && !has_any(event_of(replayed))) {
      ahead_ = std::move(journaled);
      return std::nullopt;
    }
    if (is_other || !holds_all_of(found, replayed))
      return Mismatch{what_of(replayed), journaled, line};
  }
  ++compared_;
  ++events_[event_of(replayed)];
  return std::nullopt;
}

bool ReplayLines::has_any(const std::string& event) {
  const auto known = has_.find(event);
  if (known != has_.end()) return known->second;
  bool& has = has_[event];
  for_each_event(file_.parent_path(), {event}, [&](const Value&) { has = true; });
  return has;
}

std::optional<ReplayLines::Mismatch> ReplayLines::rest() {
  std::string journaled;
  if (!is_over_ || !next(journaled)) return std::nullopt;
  return Mismatch{"events.jsonl", journaled, "no further line"};
}

std::uint64_t ReplayLines::of(const std::string& event) const {
  const auto found = events_.find(event);
  return found == events_.end() ? 0 : found->second;
}

}  // namespace tune
