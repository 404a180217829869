// The time that a connection may take.
#pragma once

#include <chrono>

namespace tune::view {

struct Patience {
  std::chrono::seconds request{20};  // for a request's words to arrive
  std::chrono::seconds idle{75};     // between two requests
  std::chrono::seconds write{20};    // for a piece of an answer to be taken
};

}  // namespace tune::view
