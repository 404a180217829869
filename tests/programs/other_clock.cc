// Loaded before libc: the wall clock is $CLOCK_SHIFT_S seconds off, as on a machine that nobody has
// set. Time that is only measured goes on as before, and files have the times of their file system.
#include <dlfcn.h>
#include <sys/time.h>

#include <cstdlib>
#include <ctime>

namespace {

time_t clock_shift() {
  const char* shift = std::getenv("CLOCK_SHIFT_S");
  return shift == nullptr ? 0 : std::atol(shift);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* time) {
  static const auto next =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = next(clock, time);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += clock_shift();
  return result;
}

__attribute__((visibility("default"))) time_t time(time_t* result) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

__attribute__((visibility("default"))) int gettimeofday(timeval* result, void*) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *result = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
}
