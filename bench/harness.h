// Shared by the benchmarks: arguments, a folder to work in, timed programs, medians of runs that
// take turns, and the printed table.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tune::bench {

struct Setting {
  bool tiny = false;  // takes moments, to see that it works; its figures mean nothing
  int runs = 0;       // how often each measurement is made; medians are printed
  bool keep = false;  // leave what was written where it is
};
// Reads --tiny, --runs N, --keep and --help, which prints `help`. Ends the program on any other
// argument.
Setting parse_setting(int argc, char** argv, const char* help, int default_runs);

// A temporary folder (in $TMPDIR), removed at the end unless it is to be kept: for minutes after
// many files were removed, ext4 is slow to make new ones there.
class Workplace {
 public:
  explicit Workplace(const Setting& setting);
  ~Workplace();
  Workplace(const Workplace&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const;
  // A path in it that was never given before: nothing has to be removed between two runs.
  std::filesystem::path fresh(const std::string& name) const;

 private:
  std::filesystem::path path_;
  bool keep_;
  mutable int given_ = 0;
};

// Seconds from the start of a program to its end. Throws Error (kProcess), with its output, when it
// does not end well. While it runs `watch`, if any, is called with its pid, about 200 times a
// second.
double time_program(const std::vector<std::string>& command,
                    const std::map<std::string, std::string>& environment = {},
                    const std::function<void(int pid)>& watch = {});
// Seconds that a call takes.
double time_call(const std::function<void()>& call);

double cpu_time();  // seconds, of this process so far

std::string tune_program();  // of this build

// The median of each measurement. They take turns, so that other load of the machine meets all.
std::vector<double> medians(int runs, const std::vector<std::function<double()>>& measurements);

// Rows of "what, figure, bare limit, ratio", printed as they come.
class Table {
 public:
  explicit Table(const char* title);
  void seconds(const std::string& what, double figure, const std::string& bare_what, double bare);
  void rate(const std::string& what, const std::string& unit, double figure,
            const std::string& bare_what, double bare);
  void bytes(const std::string& what, double figure, const std::string& bare_what, double bare);
  void note(const std::string& text);
};

// Runs a benchmark; an exception is printed and becomes exit code 1.
int guarded(const std::function<void()>& benchmark);

}  // namespace tune::bench
