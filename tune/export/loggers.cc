#include "tune/export/loggers.h"

#include <memory>
#include <string>

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
