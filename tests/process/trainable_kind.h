// The kinds of trainables that a sweep can run. Each has a trainable that obeys the configuration
// of trainables/synthetic/faulty.cc (fail_in, fail_how, fail_at, fail_rank, step_ms), reports
// `count` and keeps it in its checkpoints, if it has any; conformance_test.cc asks the same of all.
//
// A kind joins by another entry in trainable_kinds().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "process/sandbox.h"

namespace tune {

struct TrainableKind {
  std::string name;
  // The lines of a sweep that name the trainable.
  std::string yaml;
  // The words for where a failure in this phase happened: "step: " of a class, "function: " of a
  // function, the end of a program.
  std::function<std::string(const std::string& phase)> where;
  bool saves = true;  // one that does not begins anew instead

  // Lines of a sweep, for a kind that saves.
  std::string if_it_saves(const std::string& lines) const { return saves ? lines : ""; }
};

// The python3 that process tests use; empty: there is none.
inline std::string test_python() {
  return TUNE_TEST_PYTHON;
}

inline std::vector<TrainableKind> trainable_kinds() {
  const auto same = [](const std::string& phase) { return phase + ": "; };
  const auto as_function = [](const std::string& phase) {
    return phase == "save" ? std::string("save: ") : std::string("function: ");
  };
  const auto as_program = [](const std::string& phase) {
    return phase == "save" ? std::string("save: ") : std::string("the program exited with code 1");
  };
  const std::string command = std::string("command: [") + TUNE_FAULTY_COMMAND + ", ";
  std::vector<TrainableKind> kinds = {
      {"C++", std::string("plugin: ") + TUNE_SYNTHETIC_PLUGIN + "\ntrainable: Faulty\n", same},
      {"a command that saves", command + "two_way]\nrestart: from_checkpoint\n", as_program},
      {"a command that only prints", command + "one_way]\nrestart: from_scratch\n", as_program,
       false}};
  if (test_python().empty()) return kinds;
  const std::string file = std::string(TUNE_SOURCE_DIR) + "/tests/programs/faulty.py";
  const std::string interpreter = "\ninterpreter: " + test_python() + "\n";
  kinds.push_back({"a Python class", "python: " + file + ":Faulty" + interpreter, same});
  kinds.push_back({"a Python function", "python: " + file + ":faulty" + interpreter, as_function});
  return kinds;
}

}  // namespace tune
