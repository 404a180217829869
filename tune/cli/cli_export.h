// `tune export`: an experiment in the form of another tool. Used by cli.cc and its tests.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace tune {

struct ExportArguments {
  std::string directory;
  bool tensorboard = false;
  std::string to;      // the folder for it; empty: tensorboard/ of the experiment
  std::string optuna;  // a file; empty: none
  bool mlflow = false;
  std::string registered_model;  // a name there; empty: none
  bool json = false;             // what was written is told as JSON, an object a tool
};
int export_command(const ExportArguments& arguments);

// Adds the command; it is put into `chosen` when the user gives it.
void add_export(CLI::App& app, std::function<int()>& chosen);

}  // namespace tune
