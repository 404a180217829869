#include "tune/cli/cli_insight.h"

#include <memory>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace tune {

namespace {

// A command and its arguments, which live as long as the app.
template <class Arguments>
struct InsightCommand {
  CLI::App* app = nullptr;
  std::shared_ptr<Arguments> arguments = std::make_shared<Arguments>();
};

template <class Arguments>
InsightCommand<Arguments> add(CLI::App& app, const char* name, const char* what,
                              const char* example) {
  InsightCommand<Arguments> command{app.add_subcommand(name, what)};
  command.app->footer(fmt::format("Example:\n  {}", example));
  command.app
      ->add_option("DIR", command.arguments->directory,
                   "folder of the experiment, as in results/latest")
      ->required();
  return command;
}

template <class Arguments>
void choose(const InsightCommand<Arguments>& command, std::function<int()>& chosen,
            int (*run)(const Arguments&)) {
  command.app->callback([&chosen, run, arguments = command.arguments] {
    chosen = [run, arguments] { return run(*arguments); };
  });
}

void add_importance(CLI::App& app, std::function<int()>& chosen) {
  const auto command =
      add<ImportanceArguments>(app, "importance", "which parameters set the best trials apart",
                               "tune importance results/latest");
  command.app->add_option("--metric", command.arguments->metric, "instead of the experiment's")
      ->type_name("M");
  command.app->add_option("--mode", command.arguments->mode, "max or min (the experiment's)")
      ->check(CLI::IsMember({"max", "min"}));
  command.app->add_flag("--json", command.arguments->json, "one JSON object");
  choose(command, chosen, importance_command);
}

void add_explain(CLI::App& app, std::function<int()>& chosen) {
  const auto command = add<ExplainArguments>(
      app, "explain", "why a trial was tried, how it stood at each rung, why it ended",
      "tune explain results/latest 12");
  command.app
      ->add_option("TRIAL", command.arguments->trial, "its id, its number or the end of its id")
      ->required();
  command.app->add_flag("--json", command.arguments->json, "one JSON object");
  choose(command, chosen, explain_command);
}

void add_replay(CLI::App& app, std::function<int()>& chosen) {
  const auto command = add<ReplayArguments>(
      app, "replay", "makes all decisions of a sweep again and compares them with its journal",
      "tune replay results/latest");
  command.app->add_flag("--json", command.arguments->json, "one JSON object");
  choose(command, chosen, replay_command);
}

}  // namespace

void add_insight(CLI::App& app, std::function<int()>& chosen) {
  add_explain(app, chosen);
  add_importance(app, chosen);
  add_replay(app, chosen);
}

}  // namespace tune
