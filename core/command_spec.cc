#include "core/command_spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"

namespace tune {
namespace {

constexpr const char* kFromScratch = "from_scratch";
constexpr const char* kFromCheckpoint = "from_checkpoint";

[[noreturn]] void refuse_report(const std::string& found) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("expected auto, fd, {{stdout: json}}, {{stdout: 'loss=(?P<loss>\\S+)'}} "
                          "or {{file: metrics.jsonl}}, found {}",
                          found));
}

// A file of the trial's own folder, never one that trials would share.
void check_report_file(const std::string& path) {
  const bool leaves = path.empty() || path.front() == '/' || path == ".." ||
                      path.starts_with("../") || path.find("/../") != std::string::npos ||
                      path.ends_with("/..") || path.find('\0') != std::string::npos;
  if (!leaves) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("'{}' is not a path within the trial's folder: name it relative to that "
                          "folder, which the program finds as ${{trial_dir}} and TUNE_TRIAL_DIR",
                          path));
}

std::string base_name(std::string_view word) {
  return std::string(word.substr(word.rfind('/') + 1));
}

// Whether a program of this name runs the script that is its first argument.
bool is_interpreter(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {"env", "sh",   "bash",    "dash",
                                                       "zsh", "node", "Rscript", "julia",
                                                       "perl", "ruby", "uv",     "run"};
  return name.starts_with("python") || std::ranges::find(kNames, name) != kNames.end();
}

// A word that can name a program: no option, no placeholder, no text of a shell.
bool is_plain(std::string_view word) {
  if (word.empty() || word.front() == '-' || word.find("${") != std::string_view::npos) {
    return false;
  }
  return std::ranges::none_of(word, [](char c) { return c == ' ' || c == '=' || c == '\n'; });
}

}  // namespace

bool CommandSpec::reads_output() const {
  return report == ReportSource::kAuto || report == ReportSource::kOutputJson ||
         report == ReportSource::kOutputPattern;
}

bool CommandSpec::reads_descriptor() const {
  return report == ReportSource::kAuto || report == ReportSource::kDescriptor;
}

// ---- Texts --------------------------------------------------------------------------------------

Value report_value(const CommandSpec& command) {
  switch (command.report) {
    case ReportSource::kAuto:
      return "auto";
    case ReportSource::kDescriptor:
      return "fd";
    case ReportSource::kOutputJson:
      return {{"stdout", "json"}};
    case ReportSource::kOutputPattern:
      return {{"stdout", command.report_text}};
    case ReportSource::kFile:
      return {{"file", command.report_text}};
  }
  return {};
}

void read_report(const Value& value, CommandSpec& command) {
  command.report_text.clear();
  if (value.is_string() && value.string() == "auto") {
    command.report = ReportSource::kAuto;
  } else if (value.is_string() && value.string() == "fd") {
    command.report = ReportSource::kDescriptor;
  } else if (!value.is_map() || value.map().size() != 1 || !value.map()[0].value.is_string()) {
    refuse_report(value.dump());
  } else if (const auto& [key, text] = value.map()[0]; key == "stdout") {
    const bool is_json = text.string() == "json";
    command.report = is_json ? ReportSource::kOutputJson : ReportSource::kOutputPattern;
    if (!is_json) command.report_text = text.string();
  } else if (key == "file") {
    check_report_file(text.string());
    command.report = ReportSource::kFile;
    command.report_text = text.string();
  } else {
    refuse_report(value.dump());
  }
}

bool read_restart(const std::string& word, CommandSpec& command) {
  if (word == kFromScratch) {
    command.restart = CommandRestart::kFromScratch;
  } else if (word == kFromCheckpoint) {
    command.restart = CommandRestart::kFromCheckpoint;
  } else {
    return false;
  }
  return true;
}

Value to_value(const CommandSpec& command) {
  Value value{{"command", command.words}, {"report", report_value(command)}};
  if (!command.program.empty()) value.set("program", command.program);
  if (command.restart != CommandRestart::kNever) {
    const bool scratch = command.restart == CommandRestart::kFromScratch;
    value.set("restart", scratch ? kFromScratch : kFromCheckpoint);
  }
  return value;
}

CommandSpec command_from_value(const Value& value) {
  CommandSpec command;
  command.words = value.get<std::vector<std::string>>("command");
  command.program = value.get_or("program", "");
  read_report(value.at("report"), command);
  const Value* restart = value.find("restart");
  if (restart != nullptr && !read_restart(restart->as<std::string>(), command)) {
    throw Error(ErrorCode::kBadInput, fmt::format("restart: unknown word {}", restart->dump()));
  }
  return command;
}

// ---- Name ---------------------------------------------------------------------------------------

std::string command_name(const CommandSpec& command) {
  std::string name;
  for (const std::string& word : command.words) {
    const std::string shown = word == "${program}" ? command.program : word;
    if (!is_plain(shown)) continue;
    if (is_interpreter(base_name(shown))) continue;
    name = base_name(shown);
    break;
  }
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) {
    name.resize(dot);
  }
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name.empty() ? "command" : name;
}

// ---- Settings -----------------------------------------------------------------------------------

std::string to_text(const CommandSettings& settings) {
  Value value = to_value(settings.command);
  value.set("name", settings.name);
  value.set("grace_s", settings.grace_s);
  for (const auto& [key, place] : settings.places) value.set("places/" + key, place);
  // An agent puts a number in the place of this mark, wherever it stands.
  constexpr std::string_view kMark = "{control}";
  std::string text = to_json(value);
  for (std::size_t at = 0; (at = text.find(kMark, at)) != std::string::npos;) {
    text.replace(at, kMark.size(), "{\\u0063ontrol}");
  }
  return text;
}

CommandSettings settings_from_text(const std::string& text) {
  const Value value = parse_json(text, "the settings of a command");
  CommandSettings settings;
  settings.command = command_from_value(value);
  settings.name = value.get<std::string>("name");
  settings.grace_s = value.get<double>("grace_s");
  if (const Value* places = value.find("places")) {
    for (const Member& place : places->map()) {
      settings.places[place.key] = place.value.as<std::string>();
    }
  }
  return settings;
}

}  // namespace tune
