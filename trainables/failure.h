// How an attempt fails on its own: a cause in words, opened by what was being done ("save: disk
// full").
#pragma once

#include <stdexcept>
#include <string>

#include "core/current_exception.h"

namespace tune {

class AttemptFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `call`; whatever it throws comes out as AttemptFailure "<phase>: <message>".
template <class Call>
auto in_phase(const char* phase, Call&& call) {
  try {
    return call();
  } catch (const AttemptFailure&) {
    throw;
  } catch (...) {
    throw AttemptFailure(std::string(phase) + ": " + describe_current_exception());
  }
}

}  // namespace tune
