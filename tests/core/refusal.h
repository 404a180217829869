// What a call refuses with: tests ask for the words of errors.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"

namespace tune::testing {

// The message of the Error that `call` throws; the check fails when it throws none, or with another
// code.
template <class Call>
std::string refusal(Call&& call, ErrorCode code = ErrorCode::kBadInput) {
  try {
    call();
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == code, std::string(error.what()));
    return error.what();
  }
  FAIL_CHECK("nothing was refused");
  return {};
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tune::testing

// Checks that a text holds a part, and shows both when it does not. They are made once, before the
// check: doctest holds a lock while it prints, so that a refusal() made there waits for ever.
#define CHECK_HAS(text, part)                                    \
  [](const std::string& searched, const std::string& wanted) {   \
    CHECK_MESSAGE(::tune::testing::has(searched, wanted),        \
                  "'" << wanted << "' is not in: " << searched); \
  }(text, part)
