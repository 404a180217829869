// The failure of an attempt by itself: a cause in words that begins with the phase ("save: disk
// full").
#pragma once

#include <stdexcept>
#include <string>

#include "core/current_exception.h"

namespace tune {

class AttemptFailure : public std::runtime_error {
 public:
  explicit AttemptFailure(const std::string& cause, bool is_of_group = false)
      : std::runtime_error(cause), is_of_group_(is_of_group) {}
  // Whether the end of another rank may be the cause.
  bool is_of_group() const { return is_of_group_; }

 private:
  bool is_of_group_;
};

// Whether the exception being handled comes from a group of ranks: an Error (kProcess), as the
// collectives throw. Only in a catch block.
inline bool current_exception_is_of_group() {
  try {
    throw;
  } catch (const AttemptFailure& failure) {
    return failure.is_of_group();
  } catch (...) {
    return code_of_current_exception() == ErrorCode::kProcess;
  }
}

// Runs `call`; any exception of it becomes AttemptFailure "<phase>: <message>".
template <class Call>
auto in_phase(const char* phase, Call&& call) {
  try {
    return call();
  } catch (const AttemptFailure&) {
    throw;
  } catch (...) {
    throw AttemptFailure(std::string(phase) + ": " + describe_current_exception(),
                         current_exception_is_of_group());
  }
}

}  // namespace tune
