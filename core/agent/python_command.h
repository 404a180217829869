// The program that imports a Python trainable and becomes the zygote of its workers
// (trainables/python/tune/_zygote_main.py).
#pragma once

#include <string>
#include <vector>

namespace tune {

struct PythonProgram {
  std::string target;                // "/abs/train.py:Train" or "package.module:Train"
  std::vector<std::string> preload;  // modules that are imported first
  std::string interpreter;           // empty: $TUNE_PYTHON, else python3
};

// The zygote's argv. "{control}" in it stands for the number of the control socket. The package
// `tune` is the one beside this program (of a wheel, an installation or a build), else the
// interpreter's own. Throws Error (kBadInput) when there is no such interpreter.
std::vector<std::string> python_command(const PythonProgram& program);

// A command of python_command() of another machine, as it is to be on this one: with the package
// beside this program, if there is one, and with this machine's interpreter where that of the other
// machine is not there. Throws as python_command().
std::vector<std::string> python_command_here(std::vector<std::string> command);

// The interpreter's path. Throws Error (kBadInput).
std::string find_interpreter(const std::string& given);

}  // namespace tune
