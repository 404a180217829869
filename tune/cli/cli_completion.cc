// The words that a shell offers for a command line of tune.
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>

#include "tune/cli/cli_pages.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualStorage = "results";
constexpr const char* kExperimentFile = "experiment.json";

// The command that the words have begun, and what they have given it.
struct Begun {
  const CLI::App* command = nullptr;
  std::vector<std::string> positionals;
  const CLI::Option* open = nullptr;  // an option whose value comes next
};

bool takes_value(const CLI::Option* option) {
  return option->get_items_expected_max() > 0;
}

bool is_open(const CLI::App* command) {  // a program and its own arguments follow
  return command->get_prefix_command();
}

const CLI::Option* find_option(const CLI::App* command, const std::string& word) {
  for (const CLI::Option* option : command->get_options()) {
    if (option->nonpositional() && option->check_name(word)) return option;
  }
  return nullptr;
}

// Nothing when no command is known yet.
Begun begun(const CLI::App& app, const std::vector<std::string>& words) {
  Begun so_far;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (words.size() > 1 && command->get_name() == words[0]) so_far.command = command;
  }
  if (so_far.command == nullptr) return so_far;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (so_far.open != nullptr) {
      so_far.open = nullptr;
    } else if (word.starts_with('-') && word.size() > 1) {
      const CLI::Option* option = find_option(so_far.command, word);
      if (option != nullptr && takes_value(option)) so_far.open = option;
    } else {
      so_far.positionals.push_back(word);
    }
  }
  return so_far;
}

// The folders in `storage` that are experiments, newest names last.
std::vector<Completion> experiments(const fs::path& storage) {
  std::vector<Completion> found;
  std::error_code error;
  for (fs::directory_iterator entry(storage, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code none;
    if (fs::exists(entry->path() / kExperimentFile, none)) {
      found.push_back({entry->path().string(), "an experiment"});
    }
  }
  std::ranges::sort(found, {}, &Completion::word);
  return found;
}

// The trials of an experiment: the folders in it that hold results or what a trial was given.
std::vector<Completion> trials(const fs::path& directory) {
  std::vector<Completion> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code none;
    if (fs::exists(entry->path() / "params.json", none)) {
      found.push_back({entry->path().filename().string(), "a trial"});
    }
  }
  std::ranges::sort(found, {}, &Completion::word);
  return found;
}

std::vector<Completion> commands(const CLI::App& app) {
  std::vector<Completion> found;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;
    found.push_back({command->get_name(), command->get_description()});
  }
  return found;
}

std::vector<Completion> options(const CLI::App* command) {
  std::vector<Completion> found;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name.find('_') != std::string::npos) continue;  // torchrun's spelling of the same
      found.push_back({"--" + name, option->get_description()});
    }
  }
  return found;
}

std::vector<Completion> positionals(const Begun& so_far) {
  std::size_t left = so_far.positionals.size();
  for (const CLI::Option* option : so_far.command->get_options()) {
    if (!option->get_positional()) continue;
    const bool takes_all = option->get_items_expected_max() > 1;
    if (!takes_all && left-- > 0) continue;
    const std::string name = option->get_name(true);
    if (name == "DIR") return experiments(kUsualStorage);
    if (name == "TRIAL") return trials(so_far.positionals.front());
    if (name == "SHELL") return {{"bash", ""}, {"fish", ""}, {"zsh", ""}};
    break;
  }
  return {};
}

}  // namespace

std::vector<Completion> completions(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return commands(app);
  const Begun so_far = begun(app, words);
  std::vector<Completion> all;
  if (so_far.command == nullptr) {
    all = words.size() > 1 ? std::vector<Completion>() : commands(app);
    if (words.back().starts_with('-')) all = options(&app);
  } else if (so_far.open != nullptr || (is_open(so_far.command) && !so_far.positionals.empty())) {
    return {};
  } else if (words.back().starts_with('-')) {
    all = options(so_far.command);
  } else {
    all = positionals(so_far);
  }
  std::erase_if(all, [&](const Completion& one) { return !one.word.starts_with(words.back()); });
  return all;
}

}  // namespace tune
