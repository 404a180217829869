// The words of our errors about LibTorch and its tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <string>

#include "core/error.h"

namespace tune {

// The first line: LibTorch adds a stack trace. Of an error of NCCL's also what it calls its last
// error, which alone says what is wrong ("Cuda failure 2 'out of memory'").
inline std::string cause_of(const std::exception& error) {
  constexpr const char* kLastError = "Last error:\n";
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch != nullptr ? torch->what_without_backtrace() : error.what();
  const auto line_at = [&](std::size_t begin) {
    return text.substr(begin, std::min(text.size(), text.find('\n', begin)) - begin);
  };
  const std::string first = line_at(0);
  const std::size_t last = text.find(kLastError);
  if (last == std::string::npos) return first;
  const std::string why = line_at(last + std::string(kLastError).size());
  return why.empty() ? first : first + "; NCCL's last error: " + why;
}

[[noreturn]] inline void bad_input(const std::string& why) {
  throw Error(ErrorCode::kBadInput, why);
}

// "Float [2, 3]"
inline std::string describe(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << " " << tensor.sizes();
  return text.str();
}

}  // namespace tune
