// The loggers that `loggers` may name.
#pragma once

#include <array>

namespace tune {

inline constexpr const char* kTensorBoardLogger = "tensorboard";
inline constexpr std::array kLoggerKinds = {kTensorBoardLogger};

}  // namespace tune
