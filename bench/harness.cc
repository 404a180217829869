#include "bench/harness.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/process.h"

namespace tune::bench {

namespace fs = std::filesystem;

Setting parse_setting(int argc, char** argv, const char* help, int default_runs) {
  Setting setting;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--tiny") {
      setting.tiny = true;
    } else if (word == "--keep") {
      setting.keep = true;
    } else if (word == "--runs" && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
      setting.runs = std::atoi(argv[++i]);
    } else {
      const bool asked = word == "--help";
      fmt::print(asked ? stdout : stderr,
                 "{}\n  --tiny    moments, to see that it works\n"
                 "  --runs N  measure so often, print medians ({})\n"
                 "  --keep    leave what is written in $TMPDIR\n",
                 help, default_runs);
      std::exit(asked ? 0 : 2);
    }
  }
  if (setting.runs == 0) setting.runs = setting.tiny ? 1 : default_runs;
  return setting;
}

Workplace::Workplace(const Setting& setting) : keep_(setting.keep) {
  std::string pattern = fs::temp_directory_path() / "tune-bench-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw file_error("making a folder", pattern, errno);
  path_ = pattern;
}

Workplace::~Workplace() {
  if (keep_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path Workplace::write(const std::string& name, const std::string& text) const {
  fs::path file = path_ / name;
  write_file_atomically(file, text);
  return file;
}

fs::path Workplace::fresh(const std::string& name) const {
  return path_ / fmt::format("{}-{}", name, ++given_);
}

double time_call(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

namespace {

// Its wait status.
int wait_for(pid_t pid, const std::function<void(int pid)>& watch) {
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(pid, &status, watch ? WNOHANG : 0);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) throw Error(ErrorCode::kProcess, "waitpid failed");
    if (!watch) continue;
    watch(pid);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

double time_program(const std::vector<std::string>& command,
                    const std::map<std::string, std::string>& environment,
                    const std::function<void(int pid)>& watch) {
  std::string printed = fs::temp_directory_path() / "tune-bench-output-XXXXXX";
  const FileDescriptor output(mkostemp(printed.data(), O_CLOEXEC));
  int status = 0;
  const double seconds = time_call([&] {
    status = wait_for(
        spawn({.command = command, .environment = environment, .output = output.get()}), watch);
  });
  const std::string tail = tail_lines(printed, 20, 16u << 10);
  fs::remove(printed);
  if (status == 0) return seconds;
  throw Error(ErrorCode::kProcess, fmt::format("{} {}; it printed:\n{}", fmt::join(command, " "),
                                               describe_exit(status), tail));
}

double cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::string tune_program() {
  return TUNE_BINARY_DIR "/bin/tune";
}

std::vector<double> medians(int runs, const std::vector<std::function<double()>>& measurements) {
  std::vector<std::vector<double>> measured(measurements.size());
  for (int run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < measurements.size(); ++i) measured[i].push_back(measurements[i]());
  }
  std::vector<double> middle;
  for (std::vector<double>& values : measured) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    middle.push_back(values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2);
  }
  return middle;
}

namespace {

void print_row(const std::string& what, const std::string& figure, const std::string& bare,
               const std::string& ratio) {
  fmt::print("{:<44} {:>15}   {:<42} {:>6}\n", what, figure, bare, ratio);
  std::fflush(stdout);
}

std::string duration(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return fmt::format("{:.2f} ms", seconds * 1e3);
}

}  // namespace

Table::Table(const char* title) {
  print_row(title, "figure", "bare limit", "ratio");
}

void Table::seconds(const std::string& what, double figure, const std::string& bare_what,
                    double bare) {
  print_row(what, duration(figure), fmt::format("{} {}", duration(bare), bare_what),
            fmt::format("{:.3g}", figure / bare));
}

void Table::rate(const std::string& what, const std::string& unit, double figure,
                 const std::string& bare_what, double bare) {
  print_row(what, fmt::format("{:.0f} {}", figure, unit),
            fmt::format("{:.0f} {} {}", bare, unit, bare_what),
            fmt::format("{:.3g}", figure / bare));
}

void Table::bytes(const std::string& what, double figure, const std::string& bare_what,
                  double bare) {
  print_row(what, fmt::format("{:.2f} KiB", figure / 1024),
            fmt::format("{:.2f} KiB {}", bare / 1024, bare_what),
            fmt::format("{:.3g}", figure / bare));
}

void Table::note(const std::string& text) {
  fmt::print("{}\n", text);
}

int guarded(const std::function<void()>& benchmark) {
  try {
    benchmark();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

}  // namespace tune::bench
