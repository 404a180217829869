// The exception being handled, whatever it is. To be called in a catch block only.
#pragma once

#include <optional>
#include <string>

#include "core/error.h"

namespace tune {

std::string describe_current_exception();  // its message; its type when it is not a std::exception
std::optional<ErrorCode> code_of_current_exception();  // nothing: not an Error

}  // namespace tune
