// The failure of an operation of ranks that speak through shared memory.
#pragma once

#include <stdexcept>
#include <string>

namespace tune::shared_memory {

enum class FailureKind {
  kTimeout,         // ranks did not come in time
  kEnded,           // a rank's process has ended, or it has left the group
  kDifferentCalls,  // ranks called different things
  kAborted,         // this rank, or another, has given the group up
  kMessage,         // a message is not what the receiver expects
};

class Failure : public std::runtime_error {
 public:
  Failure(FailureKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  FailureKind kind() const { return kind_; }

 private:
  FailureKind kind_;
};

}  // namespace tune::shared_memory
