#include "core/platform/process.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <future>
#include <thread>

#include "core/platform/files.h"
#include "core/refusal.h"
#include "platform/surroundings.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

struct Ended {
  std::string how;
  std::string output;
};

// Runs a shell script to its end.
Ended run_script(const std::string& script, SpawnOptions options = {}) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "output";
  const FileDescriptor output(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  options.command = {"sh", "-c", script};
  options.output = output.get();
  int status = 0;
  ::waitpid(spawn(options), &status, 0);
  return {describe_exit(status), read_file(path)};
}

TEST_CASE("a program is found in PATH, with its arguments, and its exit is told") {
  CHECK(run_script("echo out; echo err >&2; exit 3").output == "out\nerr\n");
  CHECK(run_script("exit 3").how == "exited with code 3");
  CHECK(run_script("kill -SEGV $$").how == "killed by signal 11 (SIGSEGV)");
}

TEST_CASE("variables are added to the environment, or replace what is there") {
  const ScopedVariable kept("TUNE_TEST_KEPT", "kept");
  const ScopedVariable replaced("TUNE_TEST_REPLACED", "old");
  SpawnOptions options;
  options.environment = {{"TUNE_TEST_REPLACED", "new"}, {"TUNE_TEST_ADDED", "a b"}};
  CHECK(run_script("env | grep TUNE_TEST | sort", options).output ==
        "TUNE_TEST_ADDED=a b\nTUNE_TEST_KEPT=kept\nTUNE_TEST_REPLACED=new\n");
}

TEST_CASE("a program inherits the descriptors it is given under their numbers, and no other") {
  const FileDescriptor other(::open("/dev/null", O_RDONLY));  // not even closed on exec
  const FileDescriptor first(::fcntl(other.get(), F_DUPFD, 40));
  const FileDescriptor second(::fcntl(other.get(), F_DUPFD_CLOEXEC, 60));
  SpawnOptions options;
  options.keep = {second.get(), first.get()};
  const std::string expected =
      "0\n1\n2\n" + std::to_string(first.get()) + "\n" + std::to_string(second.get()) + "\n";
  // A glob opens the folder while it is read; echo is the shell's own.
  CHECK(run_script("for n in $(seq 0 99); do [ -e /proc/$$/fd/$n ] && echo $n; done; true", options)
            .output == expected);
}

TEST_CASE("what cannot be executed is an error that names it and the cause") {
  const auto start = [](const std::string& program) {
    return refusal([&] { spawn({.command = {program}}); }, ErrorCode::kProcess);
  };
  CHECK_HAS(start("/nowhere/program"), "starting /nowhere/program: No such file");
  CHECK_HAS(start("no-such-program-of-tune"), "No such file");
  CHECK_HAS(start("/tmp"), "Permission denied");
}

TEST_CASE("handlers and masks of this process are not the program's") {
  struct sigaction former {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGTERM, &ignore, &former);
  sigset_t mask, old_mask;
  sigfillset(&mask);
  pthread_sigmask(SIG_SETMASK, &mask, &old_mask);
  const Ended ended = run_script("kill -TERM $$; echo survived");
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, &old_mask, &after);
  sigaction(SIGTERM, &former, nullptr);
  CHECK(ended.how == "killed by signal 15 (SIGTERM)");
  CHECK(sigismember(&after, SIGTERM) == 1);  // this thread's mask stayed
}

TEST_CASE("a session of its own is not a part of the terminal's group") {
  const pid_t pid = spawn({.command = {"sleep", "100"}, .new_session = true});
  CHECK(::getsid(pid) == pid);
  CHECK(::getpgid(pid) == pid);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST_CASE("a process can be told to end with the thread that started it") {
  std::promise<pid_t> started;
  std::promise<void> over;
  std::thread thread([&] {
    started.set_value(spawn({.command = {"sleep", "100"}, .death_signal = SIGTERM}));
    over.get_future().wait();
  });
  const pid_t pid = started.get_future().get();
  const FileDescriptor end = process_descriptor(pid);
  pollfd watched{end.get(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  over.set_value();
  thread.join();
  CHECK(::poll(&watched, 1, 10000) == 1);
  int status = 0;
  ::waitpid(pid, &status, 0);
  CHECK(describe_exit(status) == "killed by signal 15 (SIGTERM)");
}

TEST_CASE("signals have names") {
  CHECK(signal_name(SIGSEGV) == "SIGSEGV");
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(12345) == "signal 12345");
}

TEST_CASE("threads are counted") {
  const int before = thread_count();
  std::promise<void> over;
  std::thread thread([&] { over.get_future().wait(); });
  CHECK(thread_count() == before + 1);
  over.set_value();
  thread.join();
}

TEST_CASE("CUDA counts as initialised only when a device of its driver is open") {
  CHECK_FALSE(cuda_is_initialised());
  testing::TemporaryFolder descriptors;
  const auto open = [&](const char* number, const char* device) {
    std::filesystem::create_symlink(device, descriptors.path() / number);
    return cuda_is_initialised(descriptors.path().c_str());
  };
  CHECK_FALSE(open("0", "/dev/null"));
  CHECK_FALSE(open("3", "/home/nobody/dev/nvidia0"));
  CHECK_FALSE(open("4", "socket:[4711]"));
  CHECK(open("5", "/dev/nvidia0"));
}

TEST_CASE("a descriptor has one owner") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  FileDescriptor moved(std::move(write_end));
  CHECK_FALSE(write_end.is_open());
  write_end = std::move(moved);
  CHECK(write_end.get() == ends[1]);
  write_end.reset();
  char byte = 0;
  CHECK(::read(read_end.get(), &byte, 1) == 0);  // closed: the end
  CHECK(read_end.release() == ends[0]);
  CHECK(::close(ends[0]) == 0);
}

TEST_CASE("watched signals are read in their order instead of acting, until the watch ends") {
  struct sigaction former {};
  sigaction(SIGHUP, nullptr, &former);
  {
    SignalWatch watch({SIGINT, SIGTERM, SIGHUP});
    pollfd watched{watch.descriptor(), POLLIN, 0};
    CHECK(::poll(&watched, 1, 0) == 0);
    CHECK(watch.take().empty());
    for (const int number : {SIGTERM, SIGINT, SIGTERM}) ::raise(number);
    CHECK(::poll(&watched, 1, 0) == 1);
    CHECK(watch.take() == std::vector<int>{SIGTERM, SIGINT, SIGTERM});
    CHECK(watch.take().empty());
  }
  struct sigaction after {};
  sigaction(SIGHUP, nullptr, &after);
  const bool is_former = after.sa_handler == former.sa_handler;
  CHECK(is_former);
  SignalWatch second({SIGHUP});  // one after the other
  ::raise(SIGHUP);
  CHECK(second.take() == std::vector<int>{SIGHUP});
}

// The end of a child that watches its signals, reads none and has got these.
std::string end_of_stuck(const std::vector<int>& signals) {
  int words[2];
  REQUIRE(::pipe(words) == 0);
  const Child child(
      [&] {
        ::dup2(words[1], STDERR_FILENO);
        new SignalWatch({SIGINT, SIGTERM}, {std::chrono::milliseconds(20), "last words"});
        for (const int number : signals) ::raise(number);
        if (signals.size() > 1) return;
        ::usleep(100'000);  // nothing comes of it
        ::_exit(7);
      },
      Child::kAtOnce);
  ::close(words[1]);
  int status = 0;
  REQUIRE(::waitpid(child.pid(), &status, 0) == child.pid());
  char text[100] = {};
  [[maybe_unused]] const auto count = ::read(words[0], text, sizeof text - 1);
  ::close(words[0]);
  return std::string(text) + ": " + describe_exit(status);
}

TEST_CASE("a second signal ends also a process that is stuck, with its last words") {
  CHECK(end_of_stuck({SIGINT, SIGTERM}) == "last words: killed by signal 15 (SIGTERM)");
  CHECK(end_of_stuck({SIGTERM, SIGINT}) == "last words: killed by signal 2 (SIGINT)");
  CHECK(end_of_stuck({SIGINT}) == ": exited with code 7");
}

}  // namespace
}  // namespace tune::testing
