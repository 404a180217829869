// The commands that tell why: importance, explain and replay. Used by cli.cc and its tests.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace tune {

struct ImportanceArguments {
  std::string directory;
  std::string metric;  // empty: the experiment's
  std::string mode;    // "max", "min"; empty: the experiment's
  bool json = false;
};
int importance_command(const ImportanceArguments& arguments);

struct ExplainArguments {
  std::string directory;
  std::string trial;
  bool json = false;
};
int explain_command(const ExplainArguments& arguments);

struct ReplayArguments {
  std::string directory;
  bool json = false;
};
// 0: the journal leads to the same decisions; 1: it does not.
int replay_command(const ReplayArguments& arguments);

// Adds these commands; the one that the user gives is put into `chosen`.
void add_insight(CLI::App& app, std::function<int()>& chosen);

}  // namespace tune
