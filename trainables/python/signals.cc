// trainables/worker_signals.h for workers in Python, which load this library by ctypes: a handler
// of Python's own is not told who sent a signal, and does not run while a library hangs.
#include "trainables/worker_signals.h"

extern "C" {

__attribute__((visibility("default"))) void tune_obey_only(int agent) {
  tune::obey_only(agent);
}

__attribute__((visibility("default"))) void tune_is_worker_now() {
  tune::is_worker_now();
}

}  // extern "C"
