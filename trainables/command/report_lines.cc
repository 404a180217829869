#include "trainables/command/report_lines.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"

namespace tune {
namespace {

constexpr std::string_view kPrefix = "tune:";
constexpr std::size_t kMaxShownBytes = 80;

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// The beginning of a line for a message, as text of JSON: it may hold any bytes.
std::string shown(std::string_view text) {
  std::string quoted;
  append_json_text(quoted, text.substr(0, kMaxShownBytes));
  return text.size() > kMaxShownBytes ? quoted + "..." : quoted;
}

[[noreturn]] void refuse(const std::string& place, std::string_view text, const std::string& why) {
  throw Error(ErrorCode::kBadInput, fmt::format("{}: {}: {}", place, why, shown(text)));
}

Result parsed(const Line& line, std::string_view json, const std::string& place) {
  if (line.is_cut) {
    refuse(place, line.text,
           fmt::format("a report has at most {} bytes", LineBuffer::kMaxLineBytes));
  }
  try {
    return parse_report_json(json, "a report");
  } catch (const Error& error) {
    refuse(place, line.text, error.what());
  }
}

std::string nth(const char* what, std::size_t number) {
  return fmt::format("line {} of {}", number, what);
}

// A number where the text is one, as in C and Python: "3", "1e-3", "nan", "-inf".
Value value_of(std::string_view text) {
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (const auto done = std::from_chars(text.data(), end, whole);
      done.ec == std::errc() && done.ptr == end) {
    return whole;
  }
  const bool is_signed = text.starts_with('+');
  double number = 0;
  if (const auto done = std::from_chars(text.data() + (is_signed ? 1 : 0), end, number);
      done.ptr == end && !text.empty() && done.ec != std::errc::invalid_argument) {
    const bool is_out = done.ec == std::errc::result_out_of_range;
    return is_out ? std::strtod(std::string(text).c_str(), nullptr) : number;
  }
  return text;
}

}  // namespace

ReportLines::ReportLines(const CommandSpec& command)
    : source_(command.report), text_(command.report_text) {
  if (source_ == ReportSource::kOutputPattern) pattern_.emplace(text_);
}

std::optional<Result> ReportLines::of_output(const Line& line, std::size_t number) const {
  const std::string_view text = trimmed(line.text);
  switch (source_) {
    case ReportSource::kAuto: {
      if (!text.starts_with(kPrefix)) return std::nullopt;
      const std::string_view json = trimmed(text.substr(kPrefix.size()));
      if (!json.starts_with('{')) return std::nullopt;  // "tune: warming up"
      return parsed(line, json, nth("standard output", number));
    }
    case ReportSource::kOutputJson:
      if (!text.starts_with('{')) return std::nullopt;
      return parsed(line, text, nth("standard output", number));
    case ReportSource::kOutputPattern:
      return matched(line);
    default:
      return std::nullopt;
  }
}

void ReportLines::refuse_too_long(const Line& line, std::size_t number) const {
  if (source_ != ReportSource::kOutputPattern) of_output(line, number);
}

// A bar of progress overwrites its line: what stands there last counts.
std::optional<Result> ReportLines::matched(const Line& line) const {
  std::string_view text = line.text;
  if (const std::size_t back = text.rfind('\r'); back != std::string_view::npos) {
    text.remove_prefix(back + 1);
  }
  LinePattern::Found found;
  if (!pattern_->find(text, found)) return std::nullopt;
  Result result;
  for (const auto& [name, value] : found) result.set(name, value_of(trimmed(value)));
  return result;
}

ProgramWord ReportLines::of_descriptor(const Line& line, std::size_t number) const {
  const std::string place = nth("TUNE_FD", number);
  const std::string_view text = trimmed(line.text);
  if (text.starts_with('{')) return parsed(line, text, place);
  if (text == "saved") return Saved{};
  if (text == "failed") return SaveFailed{"the program could not save"};
  if (text.starts_with("failed ")) return SaveFailed{std::string(text.substr(7))};
  if (text.starts_with("hello ")) {
    const std::string_view rest = text.substr(6);
    const std::string own = std::to_string(kCommandContract);
    if (rest == own) return Hello{false};
    if (rest == own + " save") return Hello{true};
    refuse(place, text,
           fmt::format("expected 'hello {0}' or 'hello {0} save', as this tune speaks version {0} "
                       "of the contract with programs",
                       kCommandContract));
  }
  refuse(place, text,
         "neither a report ({\"loss\": 0.5}) nor hello, saved or failed of the contract with "
         "programs");
}

std::optional<Result> ReportLines::of_file(const Line& line, std::size_t number) const {
  const std::string_view text = trimmed(line.text);
  if (text.empty()) return std::nullopt;
  return parsed(line, text, nth(text_.c_str(), number));
}

std::string ReportLines::how_to_report() const {
  switch (source_) {
    case ReportSource::kAuto:
      return "print lines like tune: {\"loss\": 0.5}, or write {\"loss\": 0.5} to the descriptor "
             "that TUNE_FD names";
    case ReportSource::kDescriptor:
      return "write lines like {\"loss\": 0.5} to the descriptor that TUNE_FD names";
    case ReportSource::kOutputJson:
      return "print lines like {\"loss\": 0.5}";
    case ReportSource::kOutputPattern:
      return fmt::format("no line of its standard output has '{}'", text_);
    case ReportSource::kFile:
      return fmt::format("write lines like {{\"loss\": 0.5}} to {} in the trial's folder, which is "
                         "${{trial_dir}} and TUNE_TRIAL_DIR",
                         text_);
  }
  return {};
}

}  // namespace tune
