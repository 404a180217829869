// Processes and descriptors: owned descriptors, fork and exec, signals as input of a poll loop.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tune {

// Owns one open descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }
  void reset(int descriptor = -1);

 private:
  int descriptor_ = -1;
};

struct SpawnOptions {
  std::vector<std::string> command;  // argv; looked up in PATH when it has no '/'
  std::string program = {};          // executed instead of argv[0]; empty: that
  std::map<std::string, std::string> environment = {};  // added to this process's own
  std::vector<int> keep = {};  // descriptors the program inherits under their own numbers
  int output = -1;             // for stdout and stderr; -1: inherited
  int errors = -1;             // for stderr; -1: as `output` says
  bool new_session = false;    // a session of its own: no terminal signals
  int death_signal = 0;        // sent to it when the calling thread ends; 0: none
  std::vector<int> blocked = {};  // signals that do not reach it unless it wants them
};
// The program cannot be executed: it is missing or not a program.
class ProgramError : public Error {
 public:
  using Error::Error;
};
// Starts a program; every other descriptor above 2 is closed in it. Returns its pid. Throws Error
// (kProcess) when no process can be made, and ProgramError, with the cause, when the program cannot
// be executed. Safe in a process with threads.
pid_t spawn(const SpawnOptions& options);

// Throws Error (kProcess) with both numbers when this process cannot open this many more files.
void expect_descriptors(int wanted, const std::string& doing);

// A descriptor that becomes readable when the process ends.
FileDescriptor process_descriptor(pid_t pid);

std::string signal_name(int number);         // "SIGSEGV"
std::string describe_exit(int wait_status);  // "exited with code 3", "killed by signal 9 (SIGKILL)"

// The exit code a shell gives it: the program's own, or 128 + signal.
int exit_code_of(int wait_status);

// Orphans among this process's descendants become its children from here on.
void adopt_descendants();
// Kills every child and, after adopt_descendants(), every descendant; returns when all are reaped.
void end_descendants();

int thread_count();          // threads of this process
// Whether, by this list of its descriptors, this process holds a device of NVIDIA's driver open.
bool cuda_is_initialised(const char* descriptors = "/proc/self/fd");
// The reason why this process cannot be forked where it stands; empty when it can.
std::string why_unfit_to_fork();

// A second signal ends even a stuck process that reads no signals: the process ends by that signal,
// with these words on stderr, when the watch still lives this long after it.
struct LastResort {
  std::chrono::milliseconds patience{};  // 0: there is none
  std::string words = {};
};

// While it lives, these signals do not act but can be read. A process may have only one.
class SignalWatch {
 public:
  explicit SignalWatch(std::vector<int> signals, LastResort last_resort = {});
  ~SignalWatch();  // the former handlers act again
  SignalWatch(const SignalWatch&) = delete;

  int descriptor() const { return read_.get(); }
  std::vector<int> take();  // those that came since, oldest first; never blocks

 private:
  void prepare_last_resort(int signal);

  LastResort last_resort_;
  std::vector<std::pair<int, struct sigaction>> former_;
  FileDescriptor read_;
  FileDescriptor write_;
};

}  // namespace tune
