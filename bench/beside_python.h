// A training step timed here and, taking turns with it, in Python with the same LibTorch, by a
// script of bench/ that does the same.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tune::bench {

// The Python with torch that TUNE_BENCH_PYTHON names; empty: none.
std::string python_with_torch();

// The number in the script's line "step <milliseconds> ms". Throws Error (kProcess) when the script
// fails or prints no such line.
double python_milliseconds(const std::string& script, const std::string& arguments);

// The median time of `steps` steps, after some that are not counted, in milliseconds.
double milliseconds_a_step(int steps, const std::function<void()>& step);

struct BesidePython {
  double ours = 0;  // medians, in milliseconds
  double python = 0;
  std::vector<double> ratios = {};  // ours / Python's, ascending; empty: there is no Python
};
BesidePython beside_python(int runs, const std::function<double()>& ours,
                           const std::function<double()>& python);

// "Python's DDP 3.900 ms   0.61 of it (0.58 to 0.66)", or that there is no Python.
std::string summary(const BesidePython& times, const char* whose);

}  // namespace tune::bench
