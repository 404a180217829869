// What c10d's ProcessGroupGloo.hpp needs to know of Gloo. LibTorch ships that header without Gloo's
// own and Gloo compiled in; nothing here is called from outside of LibTorch, so that names suffice.
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
