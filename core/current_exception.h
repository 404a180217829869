// The exception being handled, whatever it is. To be called in a catch block only.
#pragma once

#include <optional>
#include <string>

#include "core/error.h"

namespace tune {

std::string describe_current_exception();  // its message; for what is no std::exception, its type
std::optional<ErrorCode> code_of_current_exception();  // nothing: it is no Error

}  // namespace tune
