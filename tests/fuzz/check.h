// Shared by the fuzz targets. Any fault ends the program: libFuzzer keeps the input then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace tune::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// Calls a parser: it returns, or refuses its input with this code and some words.
template <class Call>
void refused_as(ErrorCode code, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    require(error.code() == code, error.what());
    require(*error.what() != '\0', "an error without words");
  }
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace tune::fuzz
