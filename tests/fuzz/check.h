// Shared by the fuzz targets. Any fault ends the program: libFuzzer keeps the input then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "core/error.h"

// Begins the function that is given an input of the target `name`.
#ifdef TUNE_FUZZ  // libFuzzer has one target a program
#define TUNE_FUZZ_TARGET(name)                                                       \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size); \
  extern "C" int LLVMFuzzerTestOneInput
#else
#define TUNE_FUZZ_TARGET(name)                                        \
  static int give_##name(const std::uint8_t* data, std::size_t size); \
  [[maybe_unused]] static const bool has_##name =                     \
      tune::fuzz::targets().emplace(#name, give_##name).second;       \
  static int give_##name
#endif

namespace tune::fuzz {

using Target = int (*)(const std::uint8_t* data, std::size_t size);

// Those of this program, by name.
inline std::map<std::string_view, Target>& targets() {
  static std::map<std::string_view, Target> all;
  return all;
}

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
