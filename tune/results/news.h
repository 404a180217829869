// News: the records that the person at the console should know at once.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tune/control/key_watch.h"
#include "tune/results/reporter.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class News {
 public:
  // `directory` is the experiment's folder as the user wrote it. The spec outlives this.
  News(const ExperimentSpec& spec, const Objective& objective, std::filesystem::path directory,
       std::shared_ptr<ProgressReporter> reporter);
  // A further warning that follows from the record, or empty.
  std::string record(const Record& record);

 private:
  const ExperimentSpec& spec_;
  std::filesystem::path directory_;
  std::shared_ptr<ProgressReporter> reporter_;
  std::vector<std::string> metrics_;  // several: of objectives and constraints
  KeyWatch key_watch_;
};

}  // namespace tune
