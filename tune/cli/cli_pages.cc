#include "tune/cli/cli_pages.h"

#include <cstdio>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "core/error.h"
#include "core/strings.h"

namespace tune {

namespace {

// ---- The manual page ----------------------------------------------------------------------------

// Text of a line of troff. A line must not begin with a dot or an apostrophe.
std::string troff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) {
      escaped += "\\&";
      escaped += c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string names_of(const CLI::Option* option) {
  std::vector<std::string> names;
  for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  for (const std::string& name : option->get_lnames()) {
    if (name.find('_') == std::string::npos) names.push_back("--" + name);
  }
  return join(names, ", ");
}

void append_option(std::string& page, const CLI::Option* option) {
  const std::string value = option->get_items_expected_max() > 0 && !option->get_positional()
                                ? fmt::format(" \\fI{}\\fP", troff(option->get_type_name()))
                                : "";
  const std::string name = option->get_positional()
                               ? fmt::format("\\fI{}\\fP", troff(option->get_name(true)))
                               : fmt::format("\\fB{}\\fP", troff(names_of(option)));
  page += fmt::format(".TP\n{}{}\n{}\n", name, value, troff(option->get_description()));
}

// "SWEEP [DIR]": the arguments that have a place.
std::string places_of(const CLI::App* command) {
  std::string places;
  for (const CLI::Option* option : command->get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = fmt::format("\\fI{}\\fP", troff(option->get_name(true)));
    places += option->get_required() ? " " + name : fmt::format(" [{}]", name);
  }
  if (command->get_prefix_command()) places += " \\fIPROGRAM\\fP [\\fIARGS\\fP...]";
  return places;
}

void append_example(std::string& page, const CLI::App* app) {
  constexpr std::string_view kHead = "Example:\n";
  const std::string footer = app->get_footer();
  if (!footer.starts_with(kHead)) return;
  std::istringstream lines(footer.substr(kHead.size()));
  page += ".PP\n.nf\n";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) page += fmt::format("{}\n", troff(line));
  }
  page += ".fi\n";
}

void append_command(std::string& page, const CLI::App* command) {
  page += fmt::format(".SS \"{}\"\n", troff(command->get_name()));
  page += fmt::format("\\fBtune {}\\fP [\\fIOPTIONS\\fP]{}\n.PP\n{}\n", troff(command->get_name()),
                      places_of(command), troff(command->get_description()));
  for (const CLI::Option* option : command->get_options()) {
    if (option != command->get_help_ptr()) append_option(page, option);
  }
  append_example(page, command);
}

constexpr const char* kTail = R"(.SH OUTPUT
Standard output carries data only; tables, messages and errors go to standard error. The last line that
\fBtune run\fP prints there is the best configuration as one JSON object.
.SH "EXIT STATUS"
.TP
0
all trials are fine
.TP
1
a trial is in error; of \fBreplay\fP: the journal leads elsewhere
.TP
2
bad input
.TP
3
the experiment could not go on; its state is kept
.TP
128 + signal
it was interrupted
.SH ENVIRONMENT
.TP
TUNE_REDIS_SERVER
the program redis\-server, when it is not in PATH
.TP
TUNE_PYTHON
the interpreter of Python trainables
.TP
TUNE_JOIN
the token by which \fBtune agent\fP joins a sweep
)";

// ---- Completion ---------------------------------------------------------------------------------

// Each asks the program, which knows its options and the experiments that are there, and offers
// files where it has no words.
constexpr const char* kBash = R"(# tune completion bash
_tune() {
  local word meaning
  COMPREPLY=()
  while IFS=$'\t' read -r word meaning; do
    printf -v word %q "$word"
    COMPREPLY+=("$word")
  done < <(tune complete "${COMP_WORDS[@]:0:COMP_CWORD + 1}" 2>/dev/null)
}
complete -o default -F _tune tune
)";
constexpr const char* kZsh = R"(#compdef tune
# tune completion zsh
_tune() {
  local line
  local -a found
  for line in "${(@f)$(tune complete "${(@)words[1,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then _describe tune found; else _files; fi
}
if [[ $funcstack[1] == _tune ]]; then _tune "$@"; else compdef _tune tune; fi
)";
constexpr const char* kFish = R"(# tune completion fish
function __tune_complete
  set -l found (tune complete (commandline -opc) (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c tune -f -a '(__tune_complete)'
)";

int print_completion(const std::string& shell) {
  for (const auto& [name, script] :
       {std::pair("bash", kBash), std::pair("zsh", kZsh), std::pair("fish", kFish)}) {
    if (shell != name) continue;
    fmt::print("{}", script);
    return 0;
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("completion: there is no script for '{}': bash, fish or zsh", shell));
}

// The first word is the program's name, which also keeps those behind it from being options of
// ours.
int print_completions(const CLI::App& app, std::vector<std::string> words) {
  if (!words.empty()) words.erase(words.begin());
  for (const Completion& one : completions(app, words)) {
    fmt::print("{}\t{}\n", one.word, one.meaning);
  }
  return 0;
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string page =
      fmt::format(".TH TUNE 1 \"\" \"{}\" \"User Commands\"\n", troff(app.version()));
  page += fmt::format(".SH NAME\ntune \\- {}\n", troff("search for the best configuration of a "
                                                       "training"));
  page += ".SH SYNOPSIS\n\\fBtune\\fP \\fICOMMAND\\fP [\\fIOPTIONS\\fP] [\\fIARGUMENTS\\fP]\n";
  page += fmt::format(".SH DESCRIPTION\n{}\n", troff(app.get_description()));
  append_example(page, &app);
  page += ".SH OPTIONS\n";
  for (const CLI::Option* option : app.get_options()) append_option(page, option);
  page += ".SH COMMANDS\nEvery command has \\fB\\-\\-help\\fP.\n";
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) append_command(page, command);
  }
  return page + kTail;
}

void add_pages(CLI::App& app, std::function<int()>& chosen) {
  CLI::App* completion =
      app.add_subcommand("completion", "a script by which a shell completes commands of tune");
  completion->footer("Example:\n  source <(tune completion bash)");
  const auto shell = std::make_shared<std::string>();
  completion->add_option("SHELL", *shell, "bash, fish or zsh")->required();
  completion->callback([&chosen, shell] { chosen = [shell] { return print_completion(*shell); }; });

  CLI::App* complete = app.add_subcommand("complete")->group("")->prefix_command();
  complete->callback([&app, &chosen, complete] {
    chosen = [&app, words = complete->remaining()] { return print_completions(app, words); };
  });

  CLI::App* man = app.add_subcommand("man-page")->group("");
  man->callback([&app, &chosen] {
    chosen = [&app] {
      fmt::print("{}", man_page(app));
      return 0;
    };
  });
}

}  // namespace tune
