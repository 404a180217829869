#include "trainables/rank_process.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/rank_start.h"
#include "core/spawn.h"
#include "trainables/failure.h"

namespace tune {
namespace {

// Not setenv, which searches a tree of all values that were ever set. The texts stay: environ
// points to them.
void set_environment(const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) ::putenv(::strdup((name + '=' + value).c_str()));
}

// The driver makes the trial's folder meanwhile, where it shares the experiment's.
int open_output(const std::string& folder, const std::string& path) {
  constexpr int kHow = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  const int file = ::open(path.c_str(), kHow, 0644);
  if (file >= 0 || errno != ENOENT) return file;
  if (::mkdir(folder.c_str(), 0777) != 0 && errno == ENOENT) {
    in_phase("setup", [&] { std::filesystem::create_directories(folder); });
  }
  return ::open(path.c_str(), kHow, 0644);
}

// Output is appended to the file; every attempt opens with a line of its own.
void redirect(int descriptor, const char* name, const StartWorker& start) {
  const std::string path = start.trial_directory + '/' + rank_file_name(name, start.rank);
  const int file = open_output(start.trial_directory, path);
  if (file < 0 || ::dup2(file, descriptor) < 0) {
    throw AttemptFailure(fmt::format("setup: cannot open {} for the trial's output: {}", path,
                                     std::strerror(errno)));
  }
  ::close(file);
  const std::string line = attempt_line(start.launch.attempt);
  if (::write(descriptor, line.data(), line.size()) < 0) {
    throw AttemptFailure(fmt::format("setup: cannot write {}: {}", path, std::strerror(errno)));
  }
}

}  // namespace

StartWorker receive_start(Channel& channel) {
  WorkerCommand command = channel.wait();
  auto* start = std::get_if<StartWorker>(&command);
  if (start == nullptr) throw AttemptFailure("setup: the agent's first word was not a start");
  return std::move(*start);
}

void become_rank(const StartWorker& start) {
  set_environment(start.experiment.environment);
  set_environment(start.environment);
  redirect(STDOUT_FILENO, "stdout", start);
  redirect(STDERR_FILENO, "stderr", start);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // lines can be followed while the trial runs
  begin_rank();
}

void flush_output() {
  std::cout.flush();
  std::clog.flush();
  std::fflush(nullptr);
}

}  // namespace tune
