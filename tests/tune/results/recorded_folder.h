// The folder of an experiment that is over, written trial by trial: loss is its metric, min its
// mode.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/json.h"
#include "tune/cli/shell.h"
#include "tune/results/analysis.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class RecordedFolder {
 public:
  // `change`: its options, before they are written.
  RecordedFolder(const Shell& shell, std::string name, const SearchSpace& space,
                 const SearcherSpec& searcher = basic_variant(), std::int64_t num_samples = 1,
                 const std::function<void(RunOptions&)>& change = {})
      : shell_(shell), name_(std::move(name)) {
    RunOptions options;
    options.name = name_;
    options.config = space;
    options.metric = "loss";
    options.mode = Mode::kMin;
    options.stop = {{"training_iteration", 27}};
    options.searcher = searcher;
    options.num_samples = num_samples;
    if (change) change(options);
    std::vector<Complaint> complaints;
    const ExperimentSpec spec = make_spec(options, "T", false, complaints);
    REQUIRE(complaints.empty());
    write("experiment.json", to_json(to_value(spec)));
  }

  // Returns its id. One loss a step; the outcome of its last attempt.
  std::string add(const Config& config, const std::vector<double>& losses,
                  const char* outcome = "completed") {
    const std::string id = "2f1e0_" + std::to_string(100000 + count_++).substr(1);
    write(id + "/params.json", to_json(config));
    std::string lines;
    for (const double& loss : losses) {
      const bool done = &loss == &losses.back();
      const auto iteration = static_cast<std::int64_t>(&loss - losses.data() + 1);
      lines += to_json(Value{{"loss", loss},
                             {"minus", -loss},
                             {"training_iteration", iteration},
                             {"done", done}}) +
               "\n";
    }
    write(id + "/result.json", lines);
    tell(Value{{"event", "attempt_ended"},
               {"trial", id},
               {"attempt", 1},
               {"outcome", outcome},
               {"iteration", losses.size()}});
    return id;
  }
  // A line of events.jsonl.
  void tell(const Value& event) {
    events_ += to_json(event) + "\n";
    write("events.jsonl", events_);
  }
  void write(const std::string& file, const std::string& text) const {
    shell_.write(name_ + "/" + file, text);
  }
  std::filesystem::path path() const { return shell_.path() / name_; }
  Analysis load() const { return Analysis::load(path()); }

 private:
  const Shell& shell_;
  std::string name_;
  int count_ = 0;
  std::string events_;
};

}  // namespace tune
