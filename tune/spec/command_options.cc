#include "tune/spec/command_options.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/agent/worker_command.h"
#include "core/command_words.h"
#include "core/error.h"
#include "core/json.h"
#include "core/key_path.h"
#include "core/line_pattern.h"
#include "core/strings.h"
#include "tune/spec/python_options.h"
#include "tune/spec/trainable_check.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

std::string word_path(std::size_t word) {
  return fmt::format("command/{}", word);
}

void read_words(OptionReader& reader, std::vector<std::string>& words) {
  const Value* found = reader.take("command");
  if (found == nullptr) return;
  if (!found->is_list() || found->list().empty()) {
    return reader.complain(
        "command", fmt::format("expected a list of words, as in [./train, --lr, \"${{lr}}\"], found "
                               "{}: no shell reads it; for a shell's line write [sh, -c, '...']",
                               describe_value(*found)));
  }
  for (std::size_t i = 0; i < found->list().size(); ++i) {
    const Value& word = found->list()[i];
    if (word.is_string()) {
      words.push_back(word.string());
    } else {
      reader.complain(word_path(i), fmt::format("expected a word, found {}: put it between quotes",
                                                describe_value(word)));
    }
  }
}

// ---- Programs -----------------------------------------------------------------------------------

bool is_executable(const std::string& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && access(file.c_str(), X_OK) == 0;
}

bool is_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  while (true) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string folder(end == 0 ? "." : rest.substr(0, end));
    if (is_executable(folder + "/" + name)) return true;
    if (end == rest.size()) return false;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

std::string why_no_program(const std::string& word) {
  if (word.empty()) return "is empty: name the program";
  if (word.find("${") != std::string::npos) return {};
  if (word.find('/') == std::string::npos) {
    if (is_in_path(word)) return {};
    std::string hint = is_executable(word) ? fmt::format("; the one here is ./{}", word) : "";
    if (word == "python" && is_in_path("python3")) hint = "; there is python3";
    return fmt::format("there is no program '{}' in PATH{}", word, hint);
  }
  if (is_executable(word)) return {};
  std::error_code ignored;
  if (fs::exists(word, ignored)) {
    return fmt::format("{} cannot be executed: give it the right (chmod +x {}), or name its "
                       "interpreter first",
                       word, word);
  }
  return fmt::format("there is no program {} (the working directory is {})", word,
                     fs::current_path(ignored).string());
}

namespace {

void check_programs(const CommandSpec& command, std::vector<Complaint>& complaints) {
  // env executes the word after it.
  const bool is_env = command.words[0] == "${env}" || command.words[0] == "/usr/bin/env";
  const std::size_t named = is_env && command.words.size() > 1 ? 1 : 0;
  const std::string& word = command.words[named];
  if (named > 0 && (word.starts_with("-") || word.find('=') != std::string::npos)) return;
  std::string why = why_no_program(word);
  if (!why.empty()) complaints.push_back({.path = word_path(named), .message = std::move(why)});
}

// ---- What a scheduler asks of the program -------------------------------------------------------

constexpr const char* kWays =
    "write restart: from_checkpoint for a program that saves (trainables/command/README.md)";

void check_restart(const CommandSpec& command, const RunOptions& options,
                   std::vector<Complaint>& complaints) {
  const WantedTrainable wanted = wanted_trainable(options, "");
  const auto complain = [&](const char* path, std::string message) {
    complaints.push_back({.path = path, .message = std::move(message)});
  };
  const bool saves = command.restart == CommandRestart::kFromCheckpoint;
  if (wanted.checkpoint_frequency > 0 && !saves) {
    complain("checkpoint/frequency",
             fmt::format("is {}, but the program is not known to save: {}, or set it to 0",
                         wanted.checkpoint_frequency, kWays));
  }
  if (wanted.scheduler_replaces && !saves) {
    complain("scheduler", fmt::format("it lets trials go on from the checkpoints of others, but the "
                                      "program is not known to save: {}, or choose another",
                                      kWays));
  } else if (wanted.scheduler_pauses && command.restart == CommandRestart::kNever) {
    complain("scheduler",
             fmt::format("it pauses trials, and the program is not known to go on where it stood: "
                         "{}, or restart: from_scratch (it then begins anew each time), or choose "
                         "another",
                         kWays));
  }
  if (saves && !command.reads_descriptor()) {
    complain("restart",
             "from_checkpoint needs TUNE_FD, on which the program is told to save: use report: "
             "auto or fd");
  }
}

std::vector<std::string> parameters_of(const RunOptions& options) {
  return options.config.is_map() ? options.config.value_paths() : std::vector<std::string>();
}

// ---- Parameters that only some options have -----------------------------------------------------

struct LackingOption {
  std::string choice;
  SearchSpace option;
};

// An option whose configurations lack the key path, which others have.
std::optional<LackingOption> option_without(const SearchSpace& space, std::string_view path,
                                            const std::string& at) {
  if (path.empty()) return std::nullopt;
  if (space.is_map()) {
    const std::size_t slash = path.find('/');
    const std::string key(path.substr(0, slash));
    const std::string_view rest = slash == path.npos ? "" : path.substr(slash + 1);
    const SearchSpace* below = space.find(key);
    return below != nullptr ? option_without(*below, rest, join_path(at, key)) : std::nullopt;
  }
  const Domain::Choice* choice = space.is_domain() ? space.domain().conditional() : nullptr;
  for (std::size_t i = 0; choice != nullptr && i < choice->values.size(); ++i) {
    const auto& held = choice->spaces[i];
    const SearchSpace option = held ? *held : SearchSpace(choice->values[i]);
    if (option.nodes_at(path).empty()) return LackingOption{at, option};
    if (auto found = option_without(option, path, at)) return found;
  }
  return std::nullopt;
}

void check_conditions(const CommandSpec& command, const RunOptions& options,
                      const std::vector<std::string>& parameters,
                      std::vector<Complaint>& complaints) {
  for (const auto& [word, name] : parameters_in(command.words, parameters)) {
    const auto lacking = option_without(options.config, name, "");
    if (!lacking) continue;
    std::string message = fmt::format(
        "${{{}}} is not in every configuration: the option {} of '{}' lacks it; give it to each "
        "option, or let the program read ${{args}} or ${{config_file}}",
        name, to_json(lacking->option.describe()), lacking->choice);
    complaints.push_back({.path = word_path(word), .message = std::move(message)});
  }
}

// ---- Parameters with one variable ---------------------------------------------------------------

// The key paths of all values, also those in maps among the values of a choice or grid.
std::set<std::string> leaf_paths(const SearchSpace& config) {
  std::set<std::string> paths;
  for (const std::string& path : config.value_paths()) {
    paths.insert(path);
    for (const SearchSpace& node : config.nodes_at(path)) {
      if (!node.is_domain()) continue;
      if (node.domain().conditional() != nullptr) continue;  // its options are walked already
      const auto* choice = std::get_if<Domain::Choice>(&node.domain().kind());
      const auto* grid = std::get_if<Domain::Grid>(&node.domain().kind());
      if (choice == nullptr && grid == nullptr) continue;
      for (const Value& value : choice != nullptr ? choice->values : grid->values) {
        if (!value.is_map()) continue;
        for (const auto& [below, leaf] : value.leaves()) paths.insert(join_path(path, below));
      }
    }
  }
  return paths;
}

std::vector<std::string> shared_variables(const SearchSpace& config) {
  std::map<std::string, std::vector<std::string>> quoted;
  for (const std::string& path : leaf_paths(config)) {
    quoted[parameter_variable(path)].push_back(fmt::format("'{}'", path));
  }
  std::vector<std::string> remarks;
  for (const auto& [variable, paths] : quoted) {
    if (paths.size() < 2) continue;
    remarks.push_back(
        fmt::format("command: the variable {} stands for {}, and holds one of them: a program that "
                    "reads it needs keys of other names, or reads ${{args}} or ${{config_file}}",
                    variable, join(paths, " and ")));
  }
  return remarks;
}

}  // namespace

void read_command(OptionReader& reader, CommandSpec& command) {
  read_words(reader, command.words);
  reader.read("program", command.program);
  if (command.words.empty() && !command.program.empty()) {
    command.words = {"${env}", "${interpreter}", "${program}", "${args}"};
  }
  const Value* report = reader.take("report");
  const Value* restart = reader.take("restart");
  if ((report != nullptr || restart != nullptr) && !command.is_given()) {
    reader.complain(report != nullptr ? "report" : "restart",
                    "belongs to a command, and none is given: write command: [./train, ...]");
  }
  try {
    if (report != nullptr) read_report(*report, command);
  } catch (const Error& error) {
    reader.complain("report", error.what());
  }
  if (restart == nullptr) return;
  if (!restart->is_string() || !read_restart(restart->string(), command)) {
    const std::string hint =
        restart->is_string()
            ? did_you_mean(restart->string(), {"from_scratch", "from_checkpoint"})
            : "";
    reader.complain("restart", fmt::format("expected from_scratch or from_checkpoint, found {}{}",
                                           describe_value(*restart), hint));
  }
}

std::vector<Complaint> complaints_about(const CommandSpec& command, const RunOptions& options) {
  std::vector<Complaint> complaints;
  check_programs(command, complaints);
  const auto parameters = parameters_of(options);
  for (WordComplaint& one : check_words(command.words, parameters, !command.program.empty())) {
    complaints.push_back({.path = word_path(one.word), .message = std::move(one.message)});
  }
  check_conditions(command, options, parameters, complaints);
  if (command.report == ReportSource::kOutputPattern) {
    try {
      const LinePattern pattern(command.report_text);
    } catch (const Error& error) {
      complaints.push_back({.path = "report/stdout", .message = error.what()});
    }
  }
  check_restart(command, options, complaints);
  return complaints;
}

std::vector<std::string> remarks_on(const ExperimentSpec& spec) {
  std::vector<std::string> remarks;
  for (const WordComplaint& one : lookalikes(spec.command.words, parameters_of(spec.options))) {
    remarks.push_back(with_places(spec, fmt::format("{}: {}", word_path(one.word), one.message)));
  }
  const bool has_variables = spec.command.is_given() && spec.options.config.is_map();
  if (!has_variables) return remarks;
  for (const std::string& remark : shared_variables(spec.options.config)) {
    remarks.push_back(with_places(spec, remark));
  }
  return remarks;
}

std::vector<std::string> zygote_command(const ExperimentSpec& spec) {
  if (spec.python) return zygote_command(*spec.python);
  if (!spec.command.is_given()) return worker_command(spec.plugin);
  CommandSettings settings{spec.command, spec.trainable, spec.options.save_grace_s};
  for (const char* key : {"command", "report", "restart"}) {
    if (const auto place = spec.places.find(key); place != spec.places.end()) {
      settings.places.insert(*place);
    }
  }
  return worker_command(settings);
}

}  // namespace tune
