// The loggers that `loggers` may name.
#pragma once

#include <array>

namespace tune {

inline constexpr const char* kTensorBoardLogger = "tensorboard";
inline constexpr const char* kMlflowLogger = "mlflow";
inline constexpr std::array kLoggerKinds = {kTensorBoardLogger, kMlflowLogger};

}  // namespace tune
