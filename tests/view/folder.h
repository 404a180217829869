// Experiments' folders for tests, written as a driver writes them.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "trainables/temporary_folder.h"

namespace tune::testing {

inline void write_text(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}
inline void append_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::app) << text;
}

inline std::string spec_text(const std::string& metric = "loss", int version = 1) {
  return R"({"version": )" + std::to_string(version) +
         R"(, "name": "s", "trainable": "T", "num_samples": 3, "mode": "min", "metric": ")" +
         metric +
         R"(", "config": {"lr": {"loguniform": [0.001, 1.0]}, "act": {"choice": ["a", {"n": )" +
         R"({"lograndint": [1, 9]}}]}}, "scheduler": {"asha": {"max_t": 9, "grace_period": 1, )" +
         R"("reduction_factor": 3, "time_attr": "training_iteration"}}, "searcher": {"tpe": {}}})";
}

// A folder with experiment.json and run.json.
inline void begin_experiment(const std::filesystem::path& folder,
                             const std::string& state = "finished") {
  write_text(folder / "experiment.json", spec_text());
  write_text(folder / "run.json",
             R"({"state": ")" + state +
                 R"(", "driver_pid": 1, "hostname": "h", "store": "", "prefix": ""})");
}

inline std::string trial_name(int number) {
  std::string digits = std::to_string(number);
  return "2f1e0_" + std::string(5 - digits.size(), '0') + digits;
}

inline void add_trial(const std::filesystem::path& folder, int number, const std::string& config,
                      const std::string& results) {
  write_text(folder / trial_name(number) / "params.json", config + "\n");
  if (!results.empty()) write_text(folder / trial_name(number) / "result.json", results);
}

inline std::string event(const std::string& kind, int trial, const std::string& rest = {}) {
  return R"({"time":100.5,"event":")" + kind + R"(","trial":")" + trial_name(trial) +
         R"(","attempt":1)" + rest + "}\n";
}

}  // namespace tune::testing
