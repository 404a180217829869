// ObjectStore: a place for bytes under names, on no machine of the experiment: what checkpoints are
// kept in where machines share no folder. Names are paths below the store's own address.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace tune {

class ObjectError : public Error {
 public:
  enum class Kind {
    kAway,     // not reached, or too busy: it may answer later
    kDenied,   // by these credentials, which may be renewed
    kSkewed,   // by the clock of this machine, which may be set right
    kAbsent,   // there is no such object
    kRefused,  // for a reason that stays
  };
  ObjectError(Kind kind, const std::string& message)
      : Error(ErrorCode::kIo, message), kind_(kind) {}
  Kind kind() const { return kind_; }
  bool may_pass() const {
    return kind_ == Kind::kAway || kind_ == Kind::kDenied || kind_ == Kind::kSkewed;
  }

 private:
  Kind kind_;
};

// Each call is one request, which it waits for. It throws ObjectError.
class ObjectStore {
 public:
  static constexpr std::size_t kMaxListed = 1000;

  virtual ~ObjectStore() = default;
  // In whole or not at all: a reader sees the object that was there before, or this one.
  virtual void put(const std::string& name, std::string_view bytes) = 0;
  virtual std::string get(const std::string& name) = 0;
  // The names that begin with `prefix` and come after `after`, in order: at most kMaxListed. Fewer
  // are all there are.
  virtual std::vector<std::string> list(const std::string& prefix, const std::string& after) = 0;
  virtual void remove(const std::string& name) = 0;  // also one that is not there
};

// All names that begin with `prefix`.
std::vector<std::string> all_names(ObjectStore& store, const std::string& prefix);
// Writes, finds, reads and removes an object of this name. Throws ObjectError.
void prove(ObjectStore& store, const std::string& name);

}  // namespace tune
