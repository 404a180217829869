#include "tune/cli/cli_detach.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/process.h"
#include "tune/show/make_reporter.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLog = "detached.log";

// The output of the run: beside the experiment's folder until that is there.
class Output {
 public:
  explicit Output(fs::path storage)
      : storage_(std::move(storage)), made_storage_(fs::create_directories(storage_)) {
    path_ = (storage_ / ".detached-XXXXXX").string();
    file_.reset(::mkostemp(path_.data(), O_CLOEXEC | O_APPEND));
    if (!file_.is_open()) throw file_error("making a file like", path_, errno);
  }
  const std::string& path() const { return path_; }
  int descriptor() const { return file_.get(); }
  std::string text() const { return read_file(fmt::format("/proc/self/fd/{}", file_.get())); }
  void remove() const {
    std::error_code ignored;
    fs::remove(path_, ignored);
    if (made_storage_) fs::remove(storage_, ignored);  // if it is empty
  }

 private:
  fs::path storage_;
  bool made_storage_;
  std::string path_;
  FileDescriptor file_;
};

// Tells when the experiment has begun: its first status comes when a node could run its trials.
class DetachedReporter : public ProgressReporter {
 public:
  DetachedReporter(std::shared_ptr<ProgressReporter> shown, std::string output, FileDescriptor tell)
      : shown_(std::move(shown)), output_(std::move(output)), tell_(std::move(tell)) {}

  void status(const ExperimentStatus& status, bool final) override {
    if (tell_.is_open()) begin(status.directory);
    shown_->status(status, final);
  }
  void notice(const std::string& text) override { shown_->notice(text); }
  void failure(const Trial& trial, const std::string& trial_id, const fs::path& file,
               bool retried) override {
    shown_->failure(trial, trial_id, file, retried);
  }

 private:
  void begin(const fs::path& directory) {
    std::error_code ignored;  // it stays where it is then
    fs::rename(output_, directory / kLog, ignored);
    const std::string path = directory.string();
    [[maybe_unused]] const auto written = ::write(tell_.get(), path.data(), path.size());
    tell_.reset();
  }

  std::shared_ptr<ProgressReporter> shown_;
  std::string output_;
  FileDescriptor tell_;
};

int run_apart(RunRequest request, const Output& output, FileDescriptor tell,
              const std::function<int(RunRequest)>& run) {
  ::setsid();
  const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(output.descriptor(), STDOUT_FILENO);
  ::dup2(output.descriptor(), STDERR_FILENO);
  request.reporter = std::make_shared<DetachedReporter>(make_reporter(request.spec.options),
                                                        output.path(), std::move(tell));
  return run(std::move(request));
}

// The experiment's folder, when it has begun. Empty: the process has ended.
std::string await_begin(pid_t pid, const FileDescriptor& told) {
  const FileDescriptor end = process_descriptor(pid);
  std::array<pollfd, 2> watched{{{told.get(), POLLIN, 0}, {end.get(), POLLIN, 0}}};
  while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
  }
  std::string directory(4096, '\0');
  const ssize_t size = ::read(told.get(), directory.data(), directory.size());
  directory.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return directory;
}

}  // namespace

int run_detached(RunRequest request, const std::function<int(RunRequest)>& run) {
  const Output output(request.resume.empty() ? fs::path(request.spec.options.storage)
                                             : fs::absolute(request.resume).parent_path());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorCode::kProcess, "making a pipe failed");
  }
  FileDescriptor told(ends[0]), tell(ends[1]);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(ErrorCode::kProcess, "starting a process apart failed");
  if (pid == 0) {
    told.reset();
    return run_apart(std::move(request), output, std::move(tell), run);
  }
  tell.reset();
  const std::string directory = await_begin(pid, told);
  const bool has_begun = !directory.empty();
  int status = 0;
  if (!has_begun) ::waitpid(pid, &status, 0);  // its last words are there then
  fmt::print(stderr, "{}", output.text());
  if (!has_begun) {
    output.remove();
    return exit_code_of(status);
  }
  fmt::print(stderr, "it goes on without this terminal: tune status {0}; what it prints: {0}/{1}\n",
             directory, kLog);
  return 0;
}

}  // namespace tune
