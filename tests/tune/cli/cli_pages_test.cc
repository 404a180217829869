// The manual page and the words that shells offer, which come from the same tree as --help.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "core/refusal.h"
#include "tune/cli/shell.h"

namespace tune {
namespace {

// The words without their meanings.
std::vector<std::string> offered(const Shell& shell, std::vector<const char*> words) {
  words.insert(words.begin(), {"complete", "tune"});
  const Ended ended = shell.tune(words);
  INFO(ended.err);
  CHECK(ended.code == 0);
  std::vector<std::string> found;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);)
    found.push_back(line.substr(0, line.find('\t')));
  return found;
}

using Words = std::vector<std::string>;

TEST_CASE("commands and options are completed from what has been written of them") {
  const Shell shell;
  CHECK(offered(shell, {"re"}) == Words{"resume", "results", "retry", "replay"});
  CHECK(offered(shell, {"run", "--na"}) == Words{"--name"});
  CHECK(offered(shell, {"best", "--"}) ==
        Words{"--help", "--metric", "--mode", "--scope", "--json", "--checkpoint"});
  CHECK(offered(shell, {"--v"}) == Words{"--version"});
  CHECK(offered(shell, {"completion", ""}) == Words{"bash", "fish", "zsh"});
  const Words commands = offered(shell, {""});
  CHECK(commands.size() > 20);
  for (const std::string& command : commands) CHECK(command != "complete");  // not for people
  CHECK(offered(shell, {"launch", "--node-r"}) == Words{"--node-rank"});     // one of two spellings
}

TEST_CASE("experiments and their trials are completed by name") {
  const Shell shell;
  shell.write("results/lenet/experiment.json", "{}");
  shell.write("results/lenet/0a1b2_00000/params.json", "{}");
  shell.write("results/lenet/0a1b2_00001/params.json", "{}");
  shell.write("results/lenet/zygote.log", "");
  shell.write("results/other/experiment.json", "{}");
  shell.write("results/notes/text", "");
  CHECK(offered(shell, {"best", ""}) == Words{"results/lenet", "results/other"});
  CHECK(offered(shell, {"best", "--json", "results/l"}) == Words{"results/lenet"});
  CHECK(offered(shell, {"logs", "-f", "--rank", "1", "results/lenet", ""}) ==
        Words{"0a1b2_00000", "0a1b2_00001"});
  CHECK(offered(shell, {"logs", "results/lenet", "0a1b2_00001"}) == Words{"0a1b2_00001"});
  CHECK(offered(shell, {"stop", "results/lenet", "0a1b2_00000", ""}) ==
        Words{"0a1b2_00000", "0a1b2_00001"});
  CHECK(offered(shell, {"note", "results/lenet", "0a1b2_00000", ""}).empty());
}

TEST_CASE("where anything may stand no word is offered, so that shells offer files") {
  const Shell shell;
  shell.write("results/lenet/experiment.json", "{}");
  CHECK(offered(shell, {"run", ""}).empty());
  CHECK(offered(shell, {"run", "--storage", ""}).empty());
  CHECK(offered(shell, {"best", "elsewhere/"}).empty());
  CHECK(offered(shell, {"logs", "nowhere", ""}).empty());
  CHECK(offered(shell, {"best", "results/lenet", ""}).empty());
  CHECK(offered(shell, {"launch", "train", "--"}).empty());  // the program's own
  CHECK(offered(shell, {"nothing", ""}).empty());
}

TEST_CASE("completion prints a script for each shell and refuses others") {
  const Shell shell;
  CHECK_HAS(shell.tune({"completion", "bash"}).out, "complete -o default -F _tune tune");
  CHECK_HAS(shell.tune({"completion", "zsh"}).out, "#compdef tune");
  CHECK_HAS(shell.tune({"completion", "fish"}).out, "complete -c tune");
  const Ended other = shell.tune({"completion", "tcsh"});
  CHECK(other.code == 2);
  CHECK_HAS(other.err, "completion: there is no script for 'tcsh': bash, fish or zsh");
}

TEST_CASE("the manual page has every command with every option of its help") {
  const Shell shell;
  const std::string page = shell.tune({"man-page"}).out;
  CHECK_HAS(page, ".TH TUNE 1 \"\" \"tune ");
  for (const std::string& command : offered(shell, {""})) {
    CAPTURE(command);
    std::string heading;
    for (const char c : command) heading += c == '-' ? "\\-" : std::string(1, c);
    const std::size_t at = page.find(".SS \"" + heading + "\"\n");
    REQUIRE(at != std::string::npos);
    const std::string section = page.substr(at, page.find(".S", at + 1) - at);
    for (std::string option : offered(shell, {command.c_str(), "--"})) {
      if (option == "--help") continue;
      for (std::size_t dash = 0; (dash = option.find('-', dash)) != std::string::npos; dash += 2) {
        option.insert(dash, "\\");
      }
      CHECK_HAS(section, option);
    }
  }
  // No line of text begins as a request to troff does.
  const std::string requests[] = {".TH ", ".SH ", ".SS ", ".PP", ".TP", ".nf", ".fi"};
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    const auto is_begin = [&](const std::string& request) { return line.starts_with(request); };
    CHECK((!line.starts_with('.') || std::ranges::any_of(requests, is_begin)));
    CHECK_FALSE(line.starts_with('\''));
  }
}

}  // namespace
}  // namespace tune
