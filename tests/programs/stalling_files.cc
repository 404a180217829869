// Loaded before libc: while the file $STALL_FILE is there, calls of the kind $STALL_CALL (name,
// look, read, flush, remove or execute) for a file whose own name is of the shape $STALL_NAME do
// not return, as on a network file system whose server does not answer.
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void stall_on(const char* call, const char* path) {
  const char* stall = std::getenv("STALL_FILE");
  const char* stalled_call = std::getenv("STALL_CALL");
  const char* shape = std::getenv("STALL_NAME");
  if (stall == nullptr || stalled_call == nullptr || shape == nullptr) return;
  const char* slash = std::strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  if (std::strcmp(call, stalled_call) != 0 || ::fnmatch(shape, name, 0) != 0) return;
  while (::access(stall, F_OK) == 0) {
    const std::string met = std::string(stall) + ".met";
    const int file = ::open(met.c_str(), O_WRONLY | O_CREAT, 0644);
    if (file >= 0) ::close(file);
    ::usleep(10'000);
  }
}

std::string path_of(int file) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return {path, length > 0 ? static_cast<std::size_t>(length) : 0};
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define TUNE_REPLACED __attribute__((visibility("default")))

extern "C" {

TUNE_REPLACED int rename(const char* from, const char* to) {
  stall_on("name", to);
  return next<int(const char*, const char*)>("rename")(from, to);
}

TUNE_REPLACED int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                            unsigned flags) {
  stall_on("name", to);
  return next<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_folder, from,
                                                                              to_folder, to, flags);
}

TUNE_REPLACED int stat(const char* path, struct stat* found) {
  stall_on("look", path);
  return next<int(const char*, struct stat*)>("stat")(path, found);
}

// By which of the two names it is called depends on headers.
TUNE_REPLACED int stat64(const char* path, struct stat64* found) {
  stall_on("look", path);
  return next<int(const char*, struct stat64*)>("stat64")(path, found);
}

TUNE_REPLACED ssize_t pread(int file, void* bytes, size_t size, off_t offset) {
  stall_on("read", path_of(file).c_str());
  return next<ssize_t(int, void*, size_t, off_t)>("pread")(file, bytes, size, offset);
}

TUNE_REPLACED ssize_t pread64(int file, void* bytes, size_t size, off64_t offset) {
  stall_on("read", path_of(file).c_str());
  return next<ssize_t(int, void*, size_t, off64_t)>("pread64")(file, bytes, size, offset);
}

TUNE_REPLACED int fsync(int file) {
  stall_on("flush", path_of(file).c_str());
  return next<int(int)>("fsync")(file);
}

TUNE_REPLACED int execvpe(const char* file, char* const arguments[], char* const environment[]) {
  stall_on("execute", file);
  return next<int(const char*, char* const[], char* const[])>("execvpe")(file, arguments,
                                                                         environment);
}

// Of a folder that is removed with all that it holds.
TUNE_REPLACED int remove(const char* path) {
  stall_on("remove", path);
  return next<int(const char*)>("remove")(path);
}
}
