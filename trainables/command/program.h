// The program of one rank: started, read, told to end and seen to be gone, with everything that it
// has started.
//
// It is in the process group of this process, which has to be a group's leader. A group of its own
// would be simpler to signal, but nobody would end it when this process is killed: the agent kills
// the group of a worker that has ended. Programs that leave the group and their parent (daemons)
// are found as descendants, which this process adopts.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/platform/child.h"
#include "core/platform/process.h"

namespace tune {

struct ProgramStart {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment = {};
  bool reads_output = false;    // standard output comes here
  bool has_descriptor = false;  // the program gets TUNE_FD
};

class Program {
 public:
  // Throws ProgramError when it cannot be executed.
  void start(const ProgramStart& start);
  bool is_started() const { return is_started_; }

  // To be polled; -1: there is none, or its other end is closed.
  int output() const { return output_.get(); }
  int descriptor() const { return descriptor_.get(); }
  int end() const { return child_.descriptor(); }  // readable when the program has ended

  enum class Read { kBytes, kNothing, kClosed };
  // Without waiting. kClosed closes this end, too.
  Read read_output(std::string& bytes) { return read(output_, bytes); }
  Read read_descriptor(std::string& bytes) { return read(descriptor_, bytes); }
  // A line to the program. False: it does not read, and no more fits.
  bool say(std::string_view line);

  bool has_ended() { return !is_started_ || child_.has_ended(); }
  int wait_status() const { return child_.status(); }

  // SIGTERM to the group, and SIGCONT in case that it stands still.
  static void terminate();
  // Whether a process of the group, besides this one, is left. Of those that have left the group
  // none has to be waited for.
  static bool is_group_left();
  // Kills what is left, in whatever group.
  static void kill_rest();

 private:
  Read read(FileDescriptor& from, std::string& bytes);

  bool is_started_ = false;
  Child child_;
  FileDescriptor output_;
  FileDescriptor descriptor_;
};

}  // namespace tune
