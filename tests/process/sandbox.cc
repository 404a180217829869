#include "process/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "TUNE_TEST_SANDBOX";

std::string slurp(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Start {
  std::vector<std::string> command;
  fs::path directory;
  std::map<std::string, std::string> environment;
  fs::path out;
  fs::path err;
};

[[noreturn]] void become(const Start& start) {
  std::vector<char*> argv;
  for (const std::string& word : start.command) argv.push_back(const_cast<char*>(word.data()));
  argv.push_back(nullptr);
  setpgid(0, 0);
  for (const auto& [name, value] : start.environment) setenv(name.c_str(), value.c_str(), 1);
  const int out = open(start.out.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  const int err = open(start.err.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  const int in = open("/dev/null", O_RDONLY);
  dup2(in, 0), dup2(out, 1), dup2(err, 2);
  close_range(3, ~0U, 0);
  if (chdir(start.directory.c_str()) == 0) execvp(argv[0], argv.data());
  _exit(127);
}

std::vector<std::string> tune_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::string(TUNE_BINARY_DIR) + "/bin/tune");
  return arguments;
}

fs::path unique_file(const fs::path& directory, const char* kind) {
  static int number = 0;
  return directory /
         (std::string(".") + kind + std::to_string(getpid()) + "-" + std::to_string(++number));
}

}  // namespace

Running::Running(std::vector<std::string> command, const fs::path& directory,
                 const std::map<std::string, std::string>& environment)
    : out_(unique_file(directory, "out")), err_(unique_file(directory, "err")) {
  const Start start{std::move(command), directory, environment, out_, err_};
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) become(start);
}

Running::~Running() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void Running::signal(int number) const {
  kill(pid_, number);
}

bool Running::ends_within(std::chrono::microseconds limit) const {
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  pollfd watched{descriptor, POLLIN, 0};
  const timespec time{limit.count() / 1'000'000, limit.count() % 1'000'000 * 1000};
  const bool ended = ppoll(&watched, 1, &time, nullptr) == 1;
  close(descriptor);
  return ended;
}

std::string Running::said() const {
  return slurp(err_);
}

Finished Running::wait(std::chrono::seconds limit) {
  Finished result;
  const bool ended = ends_within(limit);
  if (!ended) kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (ended) result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = slurp(out_);
  result.err = slurp(err_);
  return result;
}

Sandbox::Sandbox() {
  std::string pattern = fs::temp_directory_path() / "tune-test-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
  fs::create_directory(path_ / "tmp");
  environment_[kMark] = path_;
  environment_["TMPDIR"] = path_ / "tmp";
  environment_["XDG_RUNTIME_DIR"] = path_ / "tmp";
}

Sandbox::~Sandbox() {
  for (pid_t pid : processes()) kill(pid, SIGKILL);
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Sandbox::write(const std::string& file, const std::string& text) const {
  fs::create_directories((path_ / file).parent_path());
  std::ofstream(path_ / file, std::ios::binary) << text;
}

std::string Sandbox::read(const std::string& file) const {
  return slurp(path_ / file);
}

std::vector<std::filesystem::path> Sandbox::of_trials(const std::filesystem::path& experiment,
                                                      const std::string& name) const {
  std::vector<std::filesystem::path> found;
  std::error_code none;  // there is no experiment yet
  for (const auto& entry : std::filesystem::directory_iterator(path_ / experiment, none)) {
    const std::filesystem::path path = experiment / entry.path().filename() / name;
    if (std::filesystem::exists(path_ / path)) found.push_back(path);
  }
  return found;
}

Finished Sandbox::tune(std::vector<std::string> arguments) const {
  return start_tune(std::move(arguments)).wait();
}

Running Sandbox::start_tune(std::vector<std::string> arguments) const {
  return Running(tune_command(std::move(arguments)), path_, environment_);
}

Finished Sandbox::run(std::vector<std::string> command) const {
  return start(std::move(command)).wait(std::chrono::seconds(120));
}

Running Sandbox::start(std::vector<std::string> command) const {
  return Running(std::move(command), path_, environment_);
}

void Sandbox::become_tune(std::vector<std::string> arguments) const {
  become({tune_command(std::move(arguments)), path_, environment_, path_ / "out", path_ / "err"});
}

namespace {

// In ticks since the machine's start (proc(5), field 22 of stat); 0: the process is gone.
unsigned long long start_of(const fs::path& process) {
  const std::string stat = slurp(process / "stat");
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  unsigned long long start = 0;
  fields >> start;
  return start;
}

}  // namespace

std::vector<pid_t> Sandbox::processes(const std::string& name_contains) const {
  std::vector<std::pair<unsigned long long, pid_t>> found;
  const std::string mark = std::string(kMark) + "=" + path_.string() + '\0';
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string command = slurp(entry.path() / "cmdline");
    // redis-server overwrites its environment with its title, which has the path of its socket.
    if (slurp(entry.path() / "environ").find(mark) == std::string::npos &&
        command.find(path_.string() + "/tmp/") == std::string::npos) {
      continue;
    }
    if (command.find(name_contains) == std::string::npos) continue;
    found.emplace_back(start_of(entry.path()), std::stoi(name));
  }
  std::sort(found.begin(), found.end());
  std::vector<pid_t> pids;
  for (const auto& [start, pid] : found) pids.push_back(pid);
  return pids;
}

void Sandbox::nap() {
  usleep(2000);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace tune
