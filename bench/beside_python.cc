#include "bench/beside_python.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench/harness.h"
#include "core/error.h"

namespace tune::bench {

std::string python_with_torch() {
  const char* python = std::getenv("TUNE_BENCH_PYTHON");
  return python == nullptr ? "" : python;
}

double python_milliseconds(const std::string& script, const std::string& arguments) {
  const std::string command =
      python_with_torch() + " " + TUNE_SOURCE_DIR + "/bench/" + script + " " + arguments;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw Error(ErrorCode::kProcess, "cannot start " + command);
  double ms = -1;
  char line[256];  // messages of Gloo come before our line
  while (std::fgets(line, sizeof line, pipe) != nullptr) std::sscanf(line, "step %lf ms", &ms);
  if (::pclose(pipe) == 0 && ms > 0) return ms;
  throw Error(ErrorCode::kProcess, command + " failed");
}

double milliseconds_a_step(int steps, const std::function<void()>& step) {
  for (int i = 0; i < steps / 10 + 2; ++i) step();
  return 1e3 * medians(steps, {[&] { return time_call(step); }}).front();
}

BesidePython beside_python(int runs, const std::function<double()>& ours,
                           const std::function<double()>& python) {
  BesidePython times;
  if (python_with_torch().empty()) {
    times.ours = medians(runs, {ours}).front();
    return times;
  }
  double last = 0;
  const std::vector<double> both = medians(runs, {[&] { return last = ours(); },
                                                  [&] {
                                                    const double theirs = python();
                                                    times.ratios.push_back(last / theirs);
                                                    return theirs;
                                                  }});
  times.ours = both[0];
  times.python = both[1];
  std::ranges::sort(times.ratios);
  return times;
}

std::string summary(const BesidePython& times, const char* whose) {
  if (times.ratios.empty()) return "(TUNE_BENCH_PYTHON names no Python with torch to compare with)";
  return fmt::format("{} {:.3f} ms   {:.2f} of it ({:.2f} to {:.2f})", whose, times.python,
                     times.ratios[times.ratios.size() / 2], times.ratios.front(),
                     times.ratios.back());
}

}  // namespace tune::bench
