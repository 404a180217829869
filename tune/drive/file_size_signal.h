// NoFileSizeSignal: while it lives, a write beyond the limit on the size of files is an error.
#pragma once

#include <signal.h>

namespace tune {

// A limit on the size of files must be an error of the write, not the end of the whole program.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() : former_(::signal(SIGXFSZ, SIG_IGN)) {}
  ~NoFileSizeSignal() { ::signal(SIGXFSZ, former_); }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;

 private:
  void (*former_)(int);
};

}  // namespace tune
