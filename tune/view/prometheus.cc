#include "tune/view/prometheus.h"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace tune::view {

namespace {

// A label's value: backslash, quote and line feed are escaped.
std::string label(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\\' || letter == '"') out += '\\';
    if (letter == '\n') {
      out += "\\n";
    } else {
      out += letter;
    }
  }
  return out;
}

class Family {
 public:
  Family(const char* name, const char* type, const char* help)
      : name_(name), text_(fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type)) {}
  void add(const std::string& labels, double value) {
    text_ += fmt::format("{}{{{}}} {}\n", name_, labels,
                         std::isnan(value)   ? "NaN"
                         : std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf")
                                             : fmt::format("{}", value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

struct Families {
  Family trials{"tune_trials", "gauge", "Trials by state."};
  Family reports{"tune_reports_total", "counter", "Results that count, of all trials."};
  Family best{"tune_best", "gauge", "Best value of the experiment's metric."};
  Family slots{"tune_slots", "gauge",
               "CPUs and GPUs of the nodes that are there; attempts that run."};
  Family running{"tune_running", "gauge", "1 while a driver runs the experiment."};
};

void add_slots(Families& families, const Experiment& experiment, const std::string& name) {
  double cpus = 0, gpus = 0, running = 0;
  for (const NodeView& node : experiment.history().nodes()) {
    if (node.left > 0) continue;
    cpus += node.cpus;
    gpus += static_cast<double>(node.gpus);
    running += node.running;
  }
  families.slots.add(name + ",kind=\"cpu\",state=\"there\"", cpus);
  families.slots.add(name + ",kind=\"gpu\",state=\"there\"", gpus);
  families.slots.add(name + ",kind=\"attempt\",state=\"running\"", running);
}

void add(Families& families, const Experiment& experiment) {
  const std::string name = fmt::format("experiment=\"{}\"", label(experiment.head().folder));
  const TrialTable& trials = experiment.trials();
  std::array<std::uint64_t, 5> counts{};
  for (std::size_t row = 0; row < trials.size(); ++row) {
    ++counts.at(static_cast<std::size_t>(trials.row(row).status));
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const char* state = status_name(static_cast<TrialStatus>(i));
    families.trials.add(fmt::format("{},state=\"{}\"", name, state),
                        static_cast<double>(counts.at(i)));
  }
  families.reports.add(name, static_cast<double>(trials.results()));
  families.running.add(name, experiment.is_live() ? 1 : 0);
  if (const auto best = experiment.best_row(Experiment::By::kBest)) {
    families.best.add(fmt::format("{},metric=\"{}\"", name, label(experiment.head().metric)),
                      experiment.value_of(*best, Experiment::By::kBest));
  }
  add_slots(families, experiment, name);
}

}  // namespace

std::string prometheus_text(const Storage& storage) {
  Families families;
  for (const auto& [key, opened] : storage.opened()) {
    if (opened.experiment->is_loaded()) add(families, *opened.experiment);
  }
  return families.trials.text() + families.reports.text() + families.best.text() +
         families.slots.text() + families.running.text();
}

}  // namespace tune::view
