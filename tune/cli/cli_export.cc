#include "tune/cli/cli_export.h"

#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"
#include "tune/export/mlflow.h"
#include "tune/export/optuna.h"
#include "tune/export/tensorboard.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

// Of one tool: what was left out, and what was made, as JSON or in words.
void tell(const ExportArguments& arguments, const std::vector<std::string>& problems, Value told,
          const std::string& words) {
  if (arguments.json) {
    Value::List warnings;
    for (const std::string& problem : problems) warnings.emplace_back(problem);
    told.set("warnings", std::move(warnings));
    fmt::print("{}\n", to_json(told));
    return;
  }
  for (const std::string& problem : problems) fmt::print(stderr, "warning: {}\n", problem);
  fmt::print(stderr, "{}\n", words);
}

void write_tensorboard(const ExportArguments& arguments) {
  fs::path target = arguments.to;
  if (target.empty()) target = fs::path(arguments.directory) / kTensorBoardFolder;
  TensorBoardExport out(arguments.directory, target);
  out.write_news([] { return false; });
  out.finish();
  tell(arguments, out.take_problems(), {{"tool", "tensorboard"}, {"folder", target.string()}},
       "look at it with: tensorboard --logdir " + shell_word(target.string()));
}

void write_optuna(const ExportArguments& arguments) {
  const OptunaExported exported = export_to_optuna(arguments.directory, arguments.optuna);
  tell(arguments, exported.problems,
       {{"tool", "optuna"}, {"file", arguments.optuna}, {"trials", exported.trials}},
       fmt::format("{} trials; look at them with: optuna-dashboard {}", exported.trials,
                   shell_word(arguments.optuna)));
}

void tell_mlflow(const ExportArguments& arguments) {
  MlflowExport out(arguments.directory, MlflowServer(MlflowAddress::of_environment()),
                   {.registered_model = arguments.registered_model});
  out.write_news([] { return false; });
  out.finish();
  tell(arguments, out.take_problems(),
       {{"tool", "mlflow"}, {"run", out.parent_run()}, {"experiment", out.mlflow_experiment()}},
       fmt::format("it is the run {} of the experiment {} there", out.parent_run(),
                   out.mlflow_experiment()));
}

}  // namespace

int export_command(const ExportArguments& arguments) {
  if (!arguments.tensorboard && !arguments.mlflow && arguments.optuna.empty()) {
    throw Error(ErrorCode::kBadInput,
                "export: name the tool: --tensorboard, --mlflow or --optuna FILE");
  }
  if (arguments.tensorboard) write_tensorboard(arguments);
  if (!arguments.optuna.empty()) write_optuna(arguments);
  if (arguments.mlflow) tell_mlflow(arguments);
  return 0;
}

void add_export(CLI::App& app, std::function<int()>& chosen) {
  CLI::App* command =
      app.add_subcommand("export", "an experiment, running or ended, for another tool");
  command->footer("Example:\n  tune export --tensorboard results/latest");
  const auto arguments = std::make_shared<ExportArguments>();
  command->add_option("DIR", arguments->directory, "folder of the experiment, as in results/latest")
      ->required();
  CLI::Option* tensorboard = command->add_flag("--tensorboard", arguments->tensorboard,
                                               "event files for TensorBoard, with HParams");
  command->add_option("--to", arguments->to, "their folder (tensorboard/ of the experiment)")
      ->type_name("FOLDER")
      ->needs(tensorboard);
  command->add_option("--optuna", arguments->optuna, "a study in a journal file for Optuna")
      ->type_name("FILE");
  CLI::Option* mlflow = command->add_flag("--mlflow", arguments->mlflow,
                                          "to the MLflow server that MLFLOW_TRACKING_URI names");
  command
      ->add_option("--register", arguments->registered_model,
                   "the best trial's files as a version of this registered model there")
      ->type_name("MODEL")
      ->needs(mlflow);
  command->add_flag("--json", arguments->json, "one JSON object a tool");
  command->callback(
      [&chosen, arguments] { chosen = [arguments] { return export_command(*arguments); }; });
}

}  // namespace tune
