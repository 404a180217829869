#include "tune/export/loggers.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "tune/export/callback_export.h"
#include "tune/export/mlflow.h"
#include "tune/export/tensorboard.h"
#include "tune/spec/logger_kinds.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

std::unique_ptr<Exporter> make_exporter(const std::string& kind, const fs::path& experiment) {
  if (kind == kMlflowLogger) {
    return std::make_unique<MlflowExport>(experiment,
                                          MlflowServer(MlflowAddress::of_environment()));
  }
  TUNE_CHECK(kind == kTensorBoardLogger);  // others are refused before
  return std::make_unique<TensorBoardExport>(experiment, experiment / kTensorBoardFolder);
}

}  // namespace

void check_loggers(const ExperimentSpec& spec) {
  const std::vector<std::string>& kinds = spec.options.loggers;
  if (std::find(kinds.begin(), kinds.end(), kMlflowLogger) == kinds.end()) return;
  try {
    MlflowAddress::of_environment();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("loggers: mlflow: {}; or leave mlflow out, and send "
                                          "everything later with tune export --mlflow DIR",
                                          error.what()));
  }
}

void start_loggers(const ExperimentSpec& spec, const fs::path& experiment, const fs::path& shown,
                   LoggerThreads& threads) {
  for (const std::string& kind : spec.options.loggers) {
    threads.start({.name = kind,
                   .make = [kind, experiment] { return make_exporter(kind, experiment); },
                   .remedy = "tune export --" + kind + " " + shell_word(shown.string())});
  }
  for (std::size_t i = 0; i < spec.options.callbacks.size(); ++i) {
    const std::string name = "callback " + std::to_string(i + 1);
    const fs::path cursor = experiment / "callbacks" / (std::to_string(i + 1) + ".told");
    threads.start({.name = name,
                   .make =
                       [callback = spec.options.callbacks[i], experiment, cursor] {
                         return std::make_unique<CallbackExport>(callback, experiment, cursor);
                       },
                   .remedy = {}});
  }
}

}  // namespace tune
