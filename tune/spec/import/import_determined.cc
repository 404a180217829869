// Determined's experiments (docs.determined.ai, "Experiment configuration reference").
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tune/spec/import/import_reader.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

class DeterminedExperiment {
 public:
  explicit DeterminedExperiment(ImportReader& reader) : reader_(reader) {}

  void import() {
    reader_.check_keys("", {"name", "hyperparameters", "searcher", "entrypoint", "resources",
                            "max_restarts", "bind_mounts", "reproducibility"},
                       {"description", "labels", "data", "environment", "checkpoint_storage",
                        "checkpoint_policy", "records_per_epoch", "min_validation_period",
                        "min_checkpoint_period", "perform_initial_validation", "profiling",
                        "scheduling_unit", "optimizations", "workspace", "project", "debug",
                        "tensorboard_storage", "integrations", "log_policies",
                        "preemption_timeout", "slurm", "pbs", "retention_policy"});
    if (reader_.find("bind_mounts") != nullptr) {
      reader_.refuse("bind_mounts", "trials here run in no container: remove it, and write the "
                                    "hosts' own paths into the program's arguments");
    }
    import_searcher();
    import_parameters("hyperparameters", "");
    import_program();
    import_rest();
  }

 private:
  void import_searcher();
  void import_length();
  void import_asha(const std::string& kind);
  void import_parameters(const std::string& path, const std::string& prefix);
  void import_parameter(const std::string& path, const std::string& name, const Value& given);
  std::optional<Value> drawn(const std::string& path, const std::string& type);
  std::optional<Value> listed(const std::string& path, const std::string& type);
  void import_line(const std::string& line);
  void import_program();
  void import_rest();

  ImportReader& reader_;
  bool is_grid_ = false;
};

void DeterminedExperiment::import_searcher() {
  reader_.check_keys("searcher",
                     {"name", "metric", "smaller_is_better", "max_trials", "max_length", "max_time",
                      "time_metric", "divisor", "max_rungs", "num_rungs", "mode", "stop_once",
                      "max_concurrent_trials"},
                     {"source_trial_id", "source_checkpoint_uuid", "bracket_rungs"});
  const std::string kind = reader_.text("searcher/name").value_or("");
  is_grid_ = kind == "grid";
  if (const auto metric = reader_.text("searcher/metric")) reader_.set("metric", *metric);
  const Value* smaller = reader_.find("searcher/smaller_is_better");
  const bool is_max = smaller != nullptr && smaller->type() == Value::Type::kBool &&
                      !smaller->boolean();
  reader_.set("mode", is_max ? "max" : "min");
  const auto trials = reader_.whole("searcher/max_trials");
  if (kind == "random" || kind == "adaptive_asha" || kind == "async_halving" || kind == "asha") {
    reader_.set("searcher", "random");
    if (!trials) {
      reader_.refuse("searcher", kind + " needs max_trials, the number of configurations");
    } else {
      reader_.set("num_samples", *trials);
    }
  } else if (kind != "single" && !is_grid_) {
    reader_.refuse("searcher/name", fmt::format("'{}' has no counterpart: use single, random, grid "
                                                "or adaptive_asha",
                                                kind));
  }
  if (const auto limit = reader_.whole("searcher/max_concurrent_trials"); limit && *limit > 0) {
    reader_.set("max_concurrent_trials", *limit);
  }
  if (kind == "adaptive_asha" || kind == "async_halving" || kind == "asha") {
    import_asha(kind);
  } else {
    import_length();
  }
}

// The length of each trial, in whatever it is counted.
void DeterminedExperiment::import_length() {
  if (reader_.find("searcher/max_length") == nullptr) return;
  reader_.note("searcher/max_length",
               "left out: a program ends by itself here; add a stop rule such as stop: "
               "{training_iteration: 10}");
}

void DeterminedExperiment::import_asha(const std::string& kind) {
  const auto divisor = reader_.number("searcher/divisor").value_or(4);
  const auto rungs =
      reader_.whole("searcher/max_rungs").value_or(reader_.whole("searcher/num_rungs").value_or(5));
  std::string at = "searcher/max_time";
  if (reader_.find(at) == nullptr) at = "searcher/max_length";
  std::string counted = "training_iteration";  // in reports, unless its unit is said
  if (const Value* length = reader_.find(at); length != nullptr && length->is_map()) {
    if (length->map().empty()) return reader_.refuse(at, "is empty: say how long a trial trains");
    counted = length->map()[0].key;  // {batches: 937}
    at += "/" + counted;
  }
  const auto longest = reader_.whole(at);
  if (!longest || *longest < 1 || !(divisor > 1) || rungs < 1) {
    return reader_.refuse("searcher", kind + " needs max_time (or max_length) of at least 1, a "
                                             "divisor above 1 and max_rungs of at least 1");
  }
  const double first = static_cast<double>(*longest) /
                       std::pow(divisor, static_cast<double>(rungs - 1));
  Value asha{{"max_t", *longest},
             {"grace_period", std::max<std::int64_t>(1, static_cast<std::int64_t>(first))},
             {"reduction_factor", divisor}};
  const auto attribute = reader_.text("searcher/time_metric").value_or(counted);
  asha.set("time_attr", attribute);
  reader_.set("scheduler", Value{{"asha", asha}});
  reader_.note("searcher/name",
               fmt::format("{} becomes asha, whose rule and brackets differ; it counts in {}, which "
                           "the program has to report",
                           kind, attribute));
}

void DeterminedExperiment::import_parameters(const std::string& path, const std::string& prefix) {
  const Value* parameters = path.empty() ? nullptr : reader_.find(path);
  if (parameters == nullptr) return;
  if (!parameters->is_map()) return reader_.refuse(path, "expected a map of hyperparameters");
  for (const Member& member : parameters->map()) {
    import_parameter(join_path(path, member.key), join_path(prefix, member.key), member.value);
  }
}

void DeterminedExperiment::import_parameter(const std::string& path, const std::string& name,
                                            const Value& given) {
  if (!given.is_map()) return reader_.set_parameter(name, given, path);
  if (!given.contains("type")) return import_parameters(path, name);
  const std::string type = reader_.text(path + "/type").value_or("");
  reader_.check_keys(path, {"type", "val", "vals", "minval", "maxval", "count", "base"}, {});
  if (type == "const") {
    const Value* value = given.find("val");
    if (value == nullptr) return reader_.refuse(path, "const needs val");
    return reader_.set_parameter(name, value->is_map() ? Value{{"const", *value}} : *value, path);
  }
  if (type == "categorical") {
    const Value* values = given.find("vals");
    if (values == nullptr || !values->is_list()) {
      return reader_.refuse(path, "categorical needs vals, a list");
    }
    return reader_.set_parameter(
        name, ImportReader::domain(is_grid_ ? "grid_search" : "choice", values->list()), path);
  }
  auto domain = is_grid_ ? listed(path, type) : drawn(path, type);
  if (domain) reader_.set_parameter(name, std::move(*domain), path);
}

std::optional<Value> DeterminedExperiment::drawn(const std::string& path, const std::string& type) {
  const auto low = reader_.number(path + "/minval");
  const auto high = reader_.number(path + "/maxval");
  if (type != "int" && type != "double" && type != "log") {
    reader_.refuse(path + "/type",
                   fmt::format("'{}' is none of const, int, double, log and categorical", type));
  } else if (!low || !high) {
    reader_.refuse(path, type + " needs minval and maxval");
  } else if (type == "double") {
    return ImportReader::domain("uniform", {*low, *high});
  } else if (type == "int") {
    const auto first = reader_.whole(path + "/minval");
    const auto last = reader_.whole(path + "/maxval");
    if (first && last) return reader_.whole_numbers(path, *first, *last);
  } else {
    const double base = reader_.number(path + "/base").value_or(10);
    return ImportReader::domain("loguniform", {std::pow(base, *low), std::pow(base, *high)});
  }
  return std::nullopt;
}

// The points of a grid: `count` of them, evenly spaced, both bounds included.
std::optional<Value> DeterminedExperiment::listed(const std::string& path,
                                                  const std::string& type) {
  const auto low = reader_.number(path + "/minval");
  const auto high = reader_.number(path + "/maxval");
  const auto base = reader_.number(path + "/base").value_or(10);
  auto count = reader_.whole(path + "/count");
  const bool is_whole = type == "int";
  if (!low || !high || (!count && !is_whole) || (count && *count < 1)) {
    reader_.refuse(path, "a grid needs minval, maxval and count, the number of values");
    return std::nullopt;
  }
  const auto all = static_cast<std::int64_t>(*high - *low) + 1;
  if (is_whole) count = std::min(count.value_or(all), all);
  Value::List values;
  for (std::int64_t i = 0; i < *count; ++i) {
    const double part = *count == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(*count - 1);
    const double at = *low + part * (*high - *low);
    if (is_whole) {
      values.emplace_back(static_cast<std::int64_t>(std::llround(at)));
    } else {
      values.emplace_back(type == "log" ? std::pow(base, at) : at);
    }
  }
  return ImportReader::domain("grid_search", std::move(values));
}

// The program's line, and the launcher of Determined before it.
void DeterminedExperiment::import_line(const std::string& line) {
  constexpr std::string_view kTorch = "python3 -m determined.launch.torch_distributed ";
  const bool is_class = line.find(' ') == std::string::npos && line.find(':') != std::string::npos;
  if (is_class) {
    return reader_.refuse("entrypoint", fmt::format("{} is a Trial class, which Determined's harness "
                                                    "runs: write a program that trains it, and name "
                                                    "that, as in python3 train.py",
                                                    line));
  }
  if (line.starts_with(kTorch)) {
    const auto slots = reader_.whole("resources/slots_per_trial").value_or(1);
    const auto ranks = std::max<std::int64_t>(1, slots);
    reader_.set("resources_per_trial/ranks", ranks);
    reader_.set("resources_per_trial/cpu", ranks);
    reader_.note("entrypoint", fmt::format("the launcher is tune's own: {} ranks with torchrun's "
                                           "environment",
                                           ranks));
    return reader_.set("command", Value::make_list({"sh", "-c", line.substr(kTorch.size())}));
  }
  if (line.find("determined.launch.") != std::string::npos) {
    return reader_.refuse("entrypoint", "of Determined's launchers only torch_distributed has a "
                                        "counterpart: name the program itself, and its ranks in "
                                        "resources_per_trial");
  }
  reader_.set("command", Value::make_list({"sh", "-c", line}));
}

void DeterminedExperiment::import_program() {
  const Value* entry = reader_.find("entrypoint");
  if (entry == nullptr) {
    return reader_.refuse("", "there is no entrypoint: name the program, as in entrypoint: python3 "
                              "train.py");
  }
  if (entry->is_list()) {
    reader_.set("command", *entry);
  } else if (entry->is_string()) {
    import_line(entry->string());
  } else {
    reader_.refuse("entrypoint", "expected the program's line or its words");
  }
  reader_.note("entrypoint", "Determined's Trial classes and harness are not there: the program "
                             "reads its hyperparameters from TUNE_CONFIG and prints its reports "
                             "(trainables/command/README.md)");
}

void DeterminedExperiment::import_rest() {
  reader_.check_keys("resources", {"slots_per_trial"},
                     {"max_slots", "resource_pool", "priority", "weight", "shm_size", "devices",
                      "native_parallel", "is_single_node"});
  if (const auto slots = reader_.whole("resources/slots_per_trial")) {
    reader_.set("resources_per_trial/gpu", *slots);
  }
  if (const auto restarts = reader_.whole("max_restarts")) reader_.set("max_failures", *restarts);
  if (const auto seed = reader_.whole("reproducibility/experiment_seed")) {
    reader_.set("seed", *seed);
  }
}

}  // namespace

void import_determined(ImportReader& reader) {
  DeterminedExperiment(reader).import();
}

}  // namespace tune
