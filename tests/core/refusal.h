// The errors of calls that refuse: tests ask for the words in them.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"

namespace tune::testing {

// The message of the Error that `call` throws; the check fails when it throws none, or one with
// another code.
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

// Checks that a text holds a part, and shows both when it does not. Both are evaluated once, before
// the check: doctest holds a lock while it prints, so a refusal() evaluated there would wait for
// ever.
#define CHECK_HAS(text, part)                                    \
  [](const std::string& searched, const std::string& wanted) {   \
    CHECK_MESSAGE(::tune::testing::has(searched, wanted),        \
                  "'" << wanted << "' is not in: " << searched); \
  }(text, part)
