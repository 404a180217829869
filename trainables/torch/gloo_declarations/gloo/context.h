// The part of Gloo that c10d's ProcessGroupGloo.hpp names. LibTorch ships that header without those
// of Gloo, which is compiled in; names suffice, as only LibTorch calls any of this.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace transport
}  // namespace gloo
