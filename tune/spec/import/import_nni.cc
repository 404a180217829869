// NNI's experiments and search spaces (nni.readthedocs.io, "Experiment Config Reference" and
// "Search Space"). Keys are known in camelCase and, as NNI takes them too, in snake_case.
#include <cctype>

#include <fmt/format.h>

#include "tune/spec/import/import_reader.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

// The seconds of "1h", "30m", "20s", "2d"; nothing for another text.
std::optional<double> duration(const Value& value) {
  if (value.is_number()) return value.number();
  if (!value.is_string() || value.string().empty()) return std::nullopt;
  const char unit = value.string().back();
  const double seconds = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : unit == 'd' ? 86400 : 0;
  const std::string digits = value.string().substr(0, value.string().size() - 1);
  const Value number = digits.empty() ? Value() : yaml_scalar(digits);
  if (seconds == 0 || !number.is_number()) return std::nullopt;
  return number.number() * seconds;
}

// NNI does not distinguish the case of its algorithms' names.
std::string nni_name(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

class NniExperiment {
 public:
  explicit NniExperiment(ImportReader& reader) : reader_(reader) {}

  void import();
  void import_space(const std::string& path);

 private:
  // The path of a key, however it is written.
  std::string key(const char* name) const;
  void import_tuner();
  void import_assessor();
  std::optional<Value> drawn(const std::string& path, const std::string& type,
                             const Value::List& values);

  ImportReader& reader_;
  bool is_grid_ = false;
};

std::string NniExperiment::key(const char* name) const {
  if (reader_.find(name) != nullptr) return name;
  std::string snake;
  for (const char* c = name; *c != 0; ++c) {
    if (std::isupper(static_cast<unsigned char>(*c))) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  return reader_.find(snake) != nullptr ? snake : name;
}

void NniExperiment::import() {
  for (const char* old : {"authorName", "searchSpacePath", "maxTrialNum", "trial"}) {
    if (reader_.find(old) == nullptr) continue;
    return reader_.refuse(old, "is a key of NNI's first schema: rename searchSpacePath to "
                               "searchSpaceFile, trial/command to trialCommand, trial/gpuNum to "
                               "trialGpuNumber, maxTrialNum to maxTrialNumber, maxExecDuration to "
                               "maxExperimentDuration, trainingServicePlatform to "
                               "trainingService/platform, and remove authorName");
  }
  const std::vector<std::string> known = {
      "searchSpace",       "search_space",        "searchSpaceFile",  "search_space_file",
      "trialCommand",      "trial_command",       "trialConcurrency", "trial_concurrency",
      "maxTrialNumber",    "max_trial_number",    "maxExperimentDuration",
      "max_experiment_duration", "maxTrialDuration", "max_trial_duration", "tuner", "assessor",
      "trialGpuNumber",    "trial_gpu_number",    "trainingService", "training_service", "advisor"};
  const std::vector<std::string> ignored = {
      "name", "experimentName", "experiment_name", "trialCodeDirectory", "trial_code_directory", "debug",
      "logLevel", "log_level", "experimentWorkingDirectory", "experiment_working_directory",
      "nniManagerIp", "useAnnotation", "use_annotation", "tunerGpuIndices", "tuner_gpu_indices"};
  reader_.check_keys("", known, ignored);
  if (reader_.find("advisor") != nullptr) {
    reader_.refuse("advisor", "BOHB and HyperBand of NNI have no counterpart: write tuner: {name: TPE} "
                              "here, and scheduler: {hyperband: ...} in the sweep");
  }
  import_tuner();
  import_assessor();
  const Value* service = reader_.find(key("trainingService"));
  if (service != nullptr && service->is_map() && service->get_or("platform", "local") != "local") {
    reader_.note(key("trainingService"), "left out: trials run on this machine");
  }
  const std::string space = key("searchSpace");
  if (reader_.find(space) != nullptr) {
    import_space(space);
  } else if (const auto file = reader_.text(key("searchSpaceFile"))) {
    reader_.within_file(key("searchSpaceFile"), *file, [this](ImportReader& other) {
      NniExperiment there(other);
      there.is_grid_ = is_grid_;
      there.import_space("");
    });
  } else {
    reader_.refuse("", "there is no searchSpace: write it here, or name its file");
  }
  if (const auto command = reader_.text(key("trialCommand"))) {
    reader_.set("command", Value::make_list({"sh", "-c", *command}));
    reader_.note(key("trialCommand"),
                 "nni.get_next_parameter and the reports of nni are not there: the program reads "
                 "TUNE_CONFIG and prints lines tune: {\"default\": 0.9}");
  } else {
    reader_.refuse("", "there is no trialCommand: name the program");
  }
  if (const auto trials = reader_.whole(key("maxTrialNumber"))) reader_.set("num_samples", *trials);
  if (const auto at_once = reader_.whole(key("trialConcurrency"))) {
    reader_.set("max_concurrent_trials", *at_once);
  }
  if (const auto gpus = reader_.whole(key("trialGpuNumber")); gpus && *gpus > 0) {
    reader_.set("resources_per_trial/gpu", *gpus);
  }
  for (const auto& [theirs, ours] : {std::pair("maxExperimentDuration", "time_budget_s"),
                                     std::pair("maxTrialDuration", "max_trial_time_s")}) {
    const Value* found = reader_.find(key(theirs));
    if (found == nullptr) continue;
    const auto seconds = duration(*found);
    if (!seconds) {
      reader_.refuse(key(theirs), "expected a time such as 1h, 30m or 20s");
    } else {
      reader_.set(ours, *seconds);
    }
  }
  reader_.set("metric", "default");
}

void NniExperiment::import_tuner() {
  if (reader_.find("tuner") == nullptr) return;
  std::string at = "tuner/name";
  if (reader_.find(at) == nullptr) at = "tuner/builtinTunerName";
  const std::string given = reader_.text(at).value_or("");
  const std::string name = nni_name(given);
  is_grid_ = name == "gridsearch";
  if (name == "tpe") {
    reader_.set("searcher", "tpe");
  } else if (name == "gp" || name == "gptuner") {
    reader_.set("searcher", "gp");
  } else if (name == "random") {
    reader_.set("searcher", "random");
  } else if (!is_grid_) {
    reader_.refuse(at, fmt::format("the tuner '{}' has no counterpart: use Random, GridSearch, TPE "
                                   "or GP",
                                   given));
  }
  std::string mode = "tuner/classArgs/optimize_mode";
  if (reader_.find(mode) == nullptr) mode = "tuner/class_args/optimize_mode";
  reader_.set("mode", reader_.text(mode).value_or("maximize") == "minimize" ? "min" : "max");
}

void NniExperiment::import_assessor() {
  if (reader_.find("assessor") == nullptr) return;
  std::string at = "assessor/name";
  if (reader_.find(at) == nullptr) at = "assessor/builtinAssessorName";
  const std::string name = reader_.text(at).value_or("");
  if (nni_name(name) != "medianstop") {
    return reader_.refuse(at, fmt::format("the assessor '{}' has no counterpart: use Medianstop, or "
                                          "a scheduler of tune",
                                          name));
  }
  const auto start = reader_.whole("assessor/classArgs/start_step").value_or(1);
  reader_.set("scheduler",
              Value{{"median_stopping", {{"grace_period", std::max<std::int64_t>(1, start)}}}});
  reader_.note("assessor", "becomes median_stopping, which compares running means");
}

void NniExperiment::import_space(const std::string& path) {
  const Value* space = path.empty() ? &reader_.root() : reader_.find(path);
  if (!space->is_map()) return reader_.refuse(path, "expected a map of parameters");
  for (const Member& member : space->map()) {
    const std::string at = join_path(path, member.key);
    const Value* values = member.value.is_map() ? member.value.find("_value") : nullptr;
    const auto type = reader_.text(at + "/_type");
    if (!type || values == nullptr || !values->is_list()) {
      reader_.refuse(at, "expected {_type: ..., _value: [...]}");
      continue;
    }
    auto domain = drawn(at, *type, values->list());
    if (domain) reader_.set_parameter(member.key, std::move(*domain), at);
  }
}

std::optional<Value> NniExperiment::drawn(const std::string& path, const std::string& type,
                                          const Value::List& values) {
  const auto refuse = [&](const std::string& why) {
    reader_.refuse(path, why);
    return std::nullopt;
  };
  if (type == "choice") {
    for (const Value& value : values) {
      if (value.is_map()) return refuse("nested choices have no counterpart: write a choice of maps "
                                        "(tune/README.md, \"Conditions and constraints\")");
    }
    return ImportReader::domain(is_grid_ ? "grid_search" : "choice", values);
  }
  const bool has_step = type == "quniform" || type == "qloguniform" || type == "qnormal";
  const bool is_known = has_step || type == "uniform" || type == "loguniform" || type == "randint" ||
                        type == "normal";
  if (!is_known) return refuse(fmt::format("_type {} has no counterpart: use uniform, loguniform, "
                                           "normal or choice",
                                           type));
  if (values.size() != (has_step ? 3 : 2)) {
    return refuse(fmt::format("{} has {} values in _value", type, has_step ? 3 : 2));
  }
  std::vector<double> numbers;
  for (const Value& value : values) {
    if (!value.is_number()) return refuse("expected numbers in _value");
    numbers.push_back(value.number());
  }
  if (is_grid_ && type != "randint") {
    return refuse("GridSearch of a range has no counterpart: list the values as a choice");
  }
  if (type == "randint" && is_grid_) {
    return reader_.listed(path, numbers[0], numbers[1] - 1, 1, true);
  }
  if (type == "normal") return ImportReader::domain("randn", values);
  if (type == "qnormal") return ImportReader::domain("qrandn", values);
  if (has_step) return reader_.stepped(path, type.c_str(), numbers[0], numbers[1], numbers[2]);
  return ImportReader::domain(type.c_str(), values);
}

}  // namespace

void import_nni(ImportReader& reader) {
  NniExperiment(reader).import();
}

void import_nni_space(ImportReader& reader) {
  NniExperiment(reader).import_space("");
  reader.note("", "a search space alone: add command, metric, mode and num_samples");
}

}  // namespace tune
