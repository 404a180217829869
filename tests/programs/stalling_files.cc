// Loaded before libc: while the file $STALL_FILE is there, renaming to a checkpoint's final name
// does not return, as on a network file system whose server does not answer.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void stall_on(const char* target) {
  const char* stall = std::getenv("STALL_FILE");
  const char* slash = std::strrchr(target, '/');
  const char* name = slash == nullptr ? target : slash + 1;
  if (stall == nullptr || std::strncmp(name, "checkpoint_", 11) != 0) return;
  while (::access(stall, F_OK) == 0) {
    const std::string met = std::string(stall) + ".met";
    const int file = ::open(met.c_str(), O_WRONLY | O_CREAT, 0644);
    if (file >= 0) ::close(file);
    ::usleep(10'000);
  }
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int rename(const char* from, const char* to) {
  stall_on(to);
  const auto next = reinterpret_cast<int (*)(const char*, const char*)>(dlsym(RTLD_NEXT, "rename"));
  return next(from, to);
}

__attribute__((visibility("default"))) int renameat2(int from_folder, const char* from,
                                                     int to_folder, const char* to,
                                                     unsigned flags) {
  stall_on(to);
  const auto next = reinterpret_cast<int (*)(int, const char*, int, const char*, unsigned)>(
      dlsym(RTLD_NEXT, "renameat2"));
  return next(from_folder, from, to_folder, to, flags);
}
}
