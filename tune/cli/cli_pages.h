// Texts made of the command line's own description: the manual page, and the words that a shell
// offers. All of it comes from the same tree as --help.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tune {

// tune.1, for man; without a date, so that a build is repeatable.
std::string man_page(const CLI::App& app);

struct Completion {
  std::string word;
  std::string meaning;  // one line, may be empty
};

// The words that can stand at the end of a command line. `words` begins behind the program's name,
// and its last one, perhaps empty, is the one that is being written. None: a path, or anything.
// Reads the folders that the words before name.
std::vector<Completion> completions(const CLI::App& app, const std::vector<std::string>& words);

// Adds `tune completion SHELL`, and what the shells' scripts and the installation call.
void add_pages(CLI::App& app, std::function<int()>& chosen);

}  // namespace tune
