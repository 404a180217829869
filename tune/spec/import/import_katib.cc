// Katib's experiments (kubeflow.org, "Configuring experiments").
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "tune/spec/import/import_reader.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

class KatibExperiment {
 public:
  explicit KatibExperiment(ImportReader& reader) : reader_(reader) {}

  void import() {
    reader_.check_keys("spec",
                       {"objective", "algorithm", "parallelTrialCount", "maxTrialCount",
                        "maxFailedTrialCount", "parameters", "trialTemplate", "earlyStopping",
                        "metricsCollectorSpec", "nasConfig"},
                       {"resumePolicy"});
    if (reader_.find("spec/nasConfig") != nullptr) {
      reader_.refuse("spec/nasConfig", "the search for architectures has no counterpart");
    }
    import_objective();
    import_algorithm();
    import_parameters();
    import_command();
    import_early_stopping();
    import_collector();
    if (const auto count = reader_.whole("spec/maxTrialCount"); count && !is_grid_) {
      reader_.set("num_samples", *count);
    }
    if (const auto count = reader_.whole("spec/parallelTrialCount")) {
      reader_.set("max_concurrent_trials", *count);
    }
    if (reader_.find("spec/maxFailedTrialCount") != nullptr) {
      reader_.note("spec/maxFailedTrialCount",
                   "left out: failed trials do not end a sweep here but with fail_fast: true");
    }
  }

 private:
  void import_objective();
  void import_algorithm();
  void import_parameters();
  std::optional<Value> parameter(const std::string& path, const std::string& type);
  std::optional<Value> listed(const std::string& path, bool are_numbers);
  void import_command();
  bool import_kind(const Value& spec, const std::string& path);
  void import_environment(const std::string& path);
  std::string word(const std::string& path, const Value& value);
  void import_early_stopping();
  void import_collector();

  ImportReader& reader_;
  bool is_grid_ = false;
  std::string metric_;                             // as the program prints it
  std::map<std::string, std::string> references_;  // of trialParameters, by their names
};

// The name of a group in a regular expression, and so of a value in a report.
std::string group_name(std::string name) {
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

void KatibExperiment::import_objective() {
  reader_.check_keys("spec/objective",
                     {"type", "goal", "objectiveMetricName", "additionalMetricNames",
                      "metricStrategies"},
                     {});
  const std::string type = reader_.text("spec/objective/type").value_or("");
  metric_ = reader_.text("spec/objective/objectiveMetricName").value_or("");
  if (metric_.empty() || (type != "minimize" && type != "maximize")) {
    return reader_.refuse("spec/objective", "needs type (minimize or maximize) and "
                                            "objectiveMetricName");
  }
  const std::string name = group_name(metric_);
  const bool is_min = type == "minimize";
  reader_.set("metric", name);
  reader_.set("mode", is_min ? "min" : "max");
  if (name != metric_) {
    reader_.note("spec/objective/objectiveMetricName", fmt::format("{} is {} here", metric_, name));
  }
  if (const auto goal = reader_.number("spec/objective/goal")) {
    Value stop = Value::make_map();
    stop.map().emplace_back("<=", *goal);
    reader_.set("stop/" + name, is_min ? stop : Value(*goal));
    reader_.note("spec/objective/goal", "here it ends each trial that reaches it, not the sweep");
  }
  if (reader_.find("spec/objective/additionalMetricNames") != nullptr) {
    reader_.note("spec/objective/additionalMetricNames",
                 "left out: lines with the objective are the reports");
  }
  if (reader_.find("spec/objective/metricStrategies") != nullptr) {
    reader_.note("spec/objective/metricStrategies",
                 "left out: tables and tune best take each trial's last result");
  }
}

void KatibExperiment::import_algorithm() {
  const std::string at = "spec/algorithm/algorithmName";
  const std::string name = reader_.text(at).value_or("random");
  is_grid_ = name == "grid";
  if (name == "bayesianoptimization") {
    reader_.set("searcher", "gp");
  } else if (name == "tpe" || name == "multivariate-tpe") {
    reader_.set("searcher", "tpe");
  } else if (name == "cmaes") {
    reader_.set("searcher", "cma_es");
  } else if (name == "random") {
    reader_.set("searcher", "random");
  } else if (name == "sobol") {
    reader_.set("searcher", "halton");
    reader_.note(at, "sobol becomes halton, another sequence that fills the space evenly");
  } else if (!is_grid_) {
    reader_.refuse(at, fmt::format("'{}' has no counterpart: use random, grid, sobol, "
                                   "bayesianoptimization, tpe or cmaes",
                                   name));
  }
  if (reader_.find("spec/algorithm/algorithmSettings") != nullptr) {
    reader_.note("spec/algorithm/algorithmSettings", "left out: they are of Katib's own searchers");
  }
}

void KatibExperiment::import_parameters() {
  const Value* list = reader_.find("spec/parameters");
  if (list == nullptr || !list->is_list()) {
    return reader_.refuse("spec/parameters", "expected a list of parameters");
  }
  for (std::size_t i = 0; i < list->list().size(); ++i) {
    const std::string path = fmt::format("spec/parameters/{}", i);
    const Value& one = list->list()[i];
    const Value* name = one.is_map() ? one.find("name") : nullptr;
    const Value* type = one.is_map() ? one.find("parameterType") : nullptr;
    if (name == nullptr || type == nullptr || !name->is_string() || !type->is_string()) {
      reader_.refuse(path, "expected name, parameterType and feasibleSpace");
      continue;
    }
    auto domain = parameter(path + "/feasibleSpace", type->string());
    if (domain) reader_.set_parameter(name->string(), std::move(*domain), path);
  }
}

std::optional<Value> KatibExperiment::parameter(const std::string& path, const std::string& type) {
  const Value* space = reader_.find(path);
  const auto refuse = [&](const std::string& why) {
    reader_.refuse(path, why);
    return std::nullopt;
  };
  if (space == nullptr || !space->is_map()) return refuse("is missing: give min and max, or list");
  if (type == "categorical" || type == "discrete") return listed(path, type == "discrete");
  if (type != "int" && type != "double") return refuse(type + " is not a parameterType of Katib");
  const std::string distribution = reader_.text(path + "/distribution").value_or("uniform");
  const auto low = reader_.number(path + "/min");
  const auto high = reader_.number(path + "/max");
  const auto step = reader_.number(path + "/step");
  if (!low || !high) return refuse("needs min and max");
  if (distribution != "uniform" && distribution != "logUniform") {
    return refuse(fmt::format("the distribution {} has no counterpart: use uniform or logUniform",
                              distribution));
  }
  const bool is_log = distribution == "logUniform";
  if (is_grid_) {
    if (!step && type != "int") return refuse("a grid needs step");
    return reader_.listed(path, *low, *high, step.value_or(1), type == "int");
  }
  if (type == "double") {
    if (step) {
      return reader_.stepped(path, is_log ? "qloguniform" : "quniform", *low, *high, *step);
    }
    return ImportReader::domain(is_log ? "loguniform" : "uniform", {*low, *high});
  }
  const auto first = reader_.whole(path + "/min");
  const auto last = reader_.whole(path + "/max");
  const auto by = step ? reader_.whole(path + "/step") : std::optional<std::int64_t>(1);
  if (!first || !last || !by) return std::nullopt;
  if (!is_log) return reader_.whole_numbers(path, *first, *last, *by);
  if (*by != 1) return refuse("whole numbers on a logarithmic scale have no step here: leave it out");
  return ImportReader::domain("lograndint", {*first, *last + 1});
}

// Katib writes every value as a text; the numbers among them are numbers.
std::optional<Value> KatibExperiment::listed(const std::string& path, bool are_numbers) {
  const Value* list = reader_.find(path + "/list");
  if (list == nullptr || !list->is_list()) {
    reader_.refuse(path, "needs list");
    return std::nullopt;
  }
  Value::List values;
  for (const Value& value : list->list()) {
    const bool is_text = value.is_string() && !value.string().empty();
    const Value read = is_text ? yaml_scalar(value.string()) : value;
    if (are_numbers && !read.is_number()) {
      reader_.refuse(path + "/list", "expected numbers, found " + value.dump());
      return std::nullopt;
    }
    values.push_back(read.is_number() ? read : value);
  }
  return ImportReader::domain(is_grid_ ? "grid_search" : "choice", std::move(values));
}

// ---- The program --------------------------------------------------------------------------------

// The path of the first list of containers below a map.
std::string containers_below(const Value& map, const std::string& path) {
  for (const Member& member : map.map()) {
    const std::string here = join_path(path, member.key);
    if (member.key == "containers" && member.value.is_list()) return here;
    if (!member.value.is_map()) continue;
    std::string found = containers_below(member.value, here);
    if (!found.empty()) return found;
  }
  return {};
}

std::string KatibExperiment::word(const std::string& path, const Value& value) {
  constexpr std::string_view kMark = "${trialParameters.";
  std::string text = value.is_string() ? value.string() : value.dump();
  for (std::size_t at = 0; (at = text.find(kMark, at)) != std::string::npos;) {
    const std::size_t end = text.find('}', at);
    const std::string name = text.substr(at + kMark.size(), end - at - kMark.size());
    const auto reference = references_.find(name);
    if (end == std::string::npos || reference == references_.end()) {
      reader_.refuse(path, fmt::format("{} is in no trialParameters", name));
      return text;
    }
    const bool is_name = reference->second == "${trialSpec.Name}";
    if (!is_name && reference->second.starts_with("${trialSpec.")) {
      reader_.refuse(path, fmt::format("{} of a trial has no counterpart: write the value itself",
                                       reference->second));
      return text;
    }
    const std::string ours = is_name ? "${trial_id}" : "${" + reference->second + "}";
    text.replace(at, end + 1 - at, ours);
    at += ours.size();
  }
  return text;
}

void KatibExperiment::import_command() {
  const std::string path = "spec/trialTemplate";
  const Value* parameters = reader_.find(path + "/trialParameters");
  for (const Value& one : parameters != nullptr && parameters->is_list() ? parameters->list()
                                                                         : Value::List()) {
    if (!one.is_map()) continue;
    references_[one.get_or("name", "")] = one.get_or("reference", "");
  }
  const Value* spec = reader_.find(path + "/trialSpec");
  const std::string at =
      spec != nullptr && spec->is_map() ? containers_below(*spec, path + "/trialSpec") : "";
  if (at.empty()) {
    return reader_.refuse(path, "holds no container with a command: write trialSpec in full");
  }
  if (!import_kind(*spec, path + "/trialSpec")) return;
  const Value* command = reader_.find(at + "/0/command");
  if (command == nullptr && reader_.find(at + "/0/args") != nullptr) {
    return reader_.refuse(at + "/0/args", "the program is the image's own: name it here, by command");
  }
  Value::List words;
  for (const char* key : {"command", "args"}) {
    const std::string list = fmt::format("{}/0/{}", at, key);
    const Value* found = reader_.find(list);
    if (found == nullptr || !found->is_list()) continue;
    for (std::size_t i = 0; i < found->list().size(); ++i) {
      words.emplace_back(word(fmt::format("{}/{}", list, i), found->list()[i]));
    }
  }
  if (words.empty()) return reader_.refuse(at, "the first container has no command: write it here");
  reader_.set("command", Value::make_list(std::move(words)));
  reader_.note(at, "the program runs here, in no container: its paths and packages are this node's");
  import_environment(at + "/0/env");
  if (reader_.find(at + "/0/resources") != nullptr) {
    reader_.note(at + "/0/resources", "left out: say resources_per_trial");
  }
}

// Whether jobs of this kind are one program, or the ranks of one.
bool KatibExperiment::import_kind(const Value& spec, const std::string& path) {
  const std::string kind = spec.get_or("kind", "Job");
  if (kind == "Job") return true;
  if (kind != "PyTorchJob") {
    reader_.refuse(path, fmt::format("a {} has no counterpart: write a Job, and its ranks in "
                                     "resources_per_trial",
                                     kind));
    return false;
  }
  const std::string replicas = path + "/spec/pytorchReplicaSpecs";
  std::int64_t ranks = 0;
  const Value* parts = reader_.find(replicas);
  for (const Member& part : parts != nullptr && parts->is_map() ? parts->map() : Value::Map()) {
    ranks += reader_.whole(fmt::format("{}/{}/replicas", replicas, part.key)).value_or(1);
  }
  const auto* of_master = reader_.find(replicas + "/Master/template/spec/containers/0/command");
  const auto* of_worker = reader_.find(replicas + "/Worker/template/spec/containers/0/command");
  if (of_worker != nullptr && (of_master == nullptr || of_master->dump() != of_worker->dump())) {
    reader_.refuse(replicas, "Master and Worker have different commands: here all ranks run one");
    return false;
  }
  reader_.set("resources_per_trial/ranks", ranks);
  reader_.set("resources_per_trial/cpu", ranks);
  reader_.note(replicas, fmt::format("{} ranks on one node, with torchrun's environment", ranks));
  return true;
}

void KatibExperiment::import_environment(const std::string& path) {
  const Value* list = reader_.find(path);
  if (list == nullptr || !list->is_list()) return;
  for (const Value& one : list->list()) {
    const Value* name = one.is_map() ? one.find("name") : nullptr;
    const Value* value = one.is_map() ? one.find("value") : nullptr;
    if (name == nullptr || !name->is_string()) continue;
    const bool is_plain = value != nullptr && value->is_string() &&
                          value->string().find("${") == std::string::npos;
    if (is_plain) {
      reader_.set("env/" + name->string(), *value);
    } else {
      reader_.note(path, fmt::format("{} is left out: TUNE_TRIAL_ID and TUNE_PARAM_<name> tell a "
                                     "program its trial and parameters",
                                     name->string()));
    }
  }
}

// ---- Metrics ------------------------------------------------------------------------------------

void KatibExperiment::import_early_stopping() {
  const std::string at = "spec/earlyStopping/algorithmName";
  const auto name = reader_.text(at);
  if (!name) return;
  if (*name != "medianstop") {
    return reader_.refuse(at, fmt::format("'{}' has no counterpart: use medianstop", *name));
  }
  reader_.set("scheduler", "median_stopping");
  reader_.note(at, "becomes median_stopping, whose settings differ");
}

// Without a collector Katib reads lines name=value of the output.
void KatibExperiment::import_collector() {
  const std::string at = "spec/metricsCollectorSpec";
  const std::string kind = reader_.text(at + "/collector/kind").value_or("StdOut");
  if (kind != "StdOut") {
    return reader_.refuse(at + "/collector/kind",
                          fmt::format("{} has no counterpart: let the program print its metrics, or "
                                      "write them to a file below ${{trial_dir}}",
                                      kind));
  }
  if (reader_.find(at + "/source/filter") != nullptr) {
    return reader_.refuse(at + "/source/filter", "formats are written otherwise here: report: "
                                                 "{stdout: 'loss=(?P<loss>\\S+)'}");
  }
  if (metric_.empty()) return;
  std::string literal;
  for (const char c : metric_) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') literal += '\\';
    literal += c;
  }
  Value report = Value::make_map();
  report.set("stdout", fmt::format("(^|[^\\w-]){}\\s*=\\s*(?P<{}>[-+]?\\d*\\.?\\d+([eE][-+]?\\d+)?)",
                                   literal, group_name(metric_)));
  reader_.set("report", report);
}

}  // namespace

void import_katib(ImportReader& reader) {
  KatibExperiment(reader).import();
}

}  // namespace tune
