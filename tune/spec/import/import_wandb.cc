// W&B sweeps (docs.wandb.ai, "Define a sweep configuration").
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "tune/spec/import/import_reader.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

constexpr std::int64_t kUsualTrials = 16;

class WandbSweep {
 public:
  explicit WandbSweep(ImportReader& reader) : reader_(reader) {}

  void import() {
    reader_.check_keys("", {"program", "method", "metric", "parameters", "early_terminate",
                            "command", "run_cap", "name"},
                       {"entity", "project", "description", "controller", "settings", "job",
                        "image_uri"});
    import_method();
    import_metric();
    import_parameters("parameters", "");
    import_early_end();
    import_command();
    if (const auto name = reader_.text("name")) {
      reader_.note("name", fmt::format("\"{}\" is left out: name a run by --name", *name));
    }
  }

 private:
  void import_method();
  void import_metric();
  void import_parameters(const std::string& path, const std::string& prefix);
  void import_parameter(const std::string& path, const std::string& name);
  std::string distribution(const std::string& path);
  std::optional<Value> every_value(const std::string& path);
  std::optional<Value> drawn(const std::string& path);
  std::optional<Value> log_drawn(const std::string& path, const std::string& kind);
  void import_early_end();
  void import_command();
  void import_word(const std::string& path, const std::string& word, Value::List& words);

  ImportReader& reader_;
  bool is_grid_ = false;
};

void WandbSweep::import_method() {
  const auto method = reader_.text("method");
  const auto cap = reader_.whole("run_cap");
  if (!method) return;
  is_grid_ = *method == "grid";
  if (*method == "bayes") {
    reader_.set("searcher", "gp");
    reader_.note("method", "bayes becomes gp, a Gaussian process of another kind");
  } else if (*method == "random") {
    reader_.set("searcher", "random");
  } else if (!is_grid_) {
    reader_.refuse("method", fmt::format("'{}' has no counterpart: use grid, random or bayes",
                                         *method));
  }
  if (is_grid_) return;
  reader_.set("num_samples", cap.value_or(kUsualTrials));
  if (!cap) reader_.note("", fmt::format("W&B goes on until it is stopped, so num_samples is chosen "
                                         "here: {}",
                                         kUsualTrials));
}

void WandbSweep::import_metric() {
  if (reader_.find("metric") == nullptr) return;
  reader_.check_keys("metric", {"name", "goal", "target"}, {});
  const auto name = reader_.text("metric/name");
  const std::string goal = reader_.text("metric/goal").value_or("minimize");
  if (goal != "minimize" && goal != "maximize") {
    reader_.refuse("metric/goal", fmt::format("expected minimize or maximize, found {}", goal));
  }
  if (!name) return;
  const bool is_min = goal == "minimize";
  reader_.set("metric", *name);
  reader_.set("mode", is_min ? "min" : "max");
  if (const auto target = reader_.number("metric/target")) {
    Value stop = Value::make_map();
    stop.map().emplace_back("<=", *target);
    reader_.set("stop/" + *name, is_min ? stop : Value(*target));
    reader_.note("metric/target", "here it ends each trial that reaches it, not the sweep");
  }
}

void WandbSweep::import_parameters(const std::string& path, const std::string& prefix) {
  const Value* parameters = reader_.find(path);
  if (parameters == nullptr || !parameters->is_map()) {
    return reader_.refuse(path, "expected the sweep's parameters, a map");
  }
  for (const Member& member : parameters->map()) {
    import_parameter(join_path(path, member.key), join_path(prefix, member.key));
  }
}

void WandbSweep::import_parameter(const std::string& path, const std::string& name) {
  const Value* found = reader_.find(path);
  if (!found->is_map()) {
    return reader_.refuse(path, fmt::format("expected value, values or a distribution, found {}",
                                            describe_value(*found)));
  }
  if (found->contains("parameters")) return import_parameters(path + "/parameters", name);
  reader_.check_keys(path, {"value", "values", "distribution", "min", "max", "mu", "sigma", "q"},
                     {});
  if (found->contains("probabilities")) return;  // refused as a key
  if (const Value* value = found->find("value")) {
    return reader_.set_parameter(name, value->is_map() ? Value{{"const", *value}} : *value, path);
  }
  if (const Value* values = found->find("values")) {
    if (!values->is_list()) return reader_.refuse(path + "/values", "expected a list");
    return reader_.set_parameter(
        name, ImportReader::domain(is_grid_ ? "grid_search" : "choice", values->list()), path);
  }
  auto domain = is_grid_ ? every_value(path) : drawn(path);
  if (domain) reader_.set_parameter(name, std::move(*domain), path);
}

// The distribution's name; bounds alone say it by their types. Empty: there is none.
std::string WandbSweep::distribution(const std::string& path) {
  if (const auto given = reader_.text(path + "/distribution")) return *given;
  const Value* low = reader_.find(path + "/min");
  const Value* high = reader_.find(path + "/max");
  if (low == nullptr || high == nullptr) return {};
  const bool is_whole = low->type() == Value::Type::kInt && high->type() == Value::Type::kInt;
  return is_whole ? "int_uniform" : "uniform";
}

// W&B's grid goes through ranges of whole numbers and of steps.
std::optional<Value> WandbSweep::every_value(const std::string& path) {
  const std::string kind = distribution(path);
  const auto low = reader_.number(path + "/min");
  const auto high = reader_.number(path + "/max");
  const bool has_steps = kind == "int_uniform" || kind == "q_uniform";
  const double step = kind == "q_uniform" ? reader_.number(path + "/q").value_or(1) : 1;
  if (!has_steps || !low || !high) {
    reader_.refuse(path, "method grid has no grid of a range: list its values, or use random");
    return std::nullopt;
  }
  return reader_.listed(path, *low, *high, step, kind == "int_uniform");
}

// A distribution, or bounds alone.
std::optional<Value> WandbSweep::drawn(const std::string& path) {
  const auto low = reader_.number(path + "/min");
  const auto high = reader_.number(path + "/max");
  const double q = reader_.number(path + "/q").value_or(1);
  const std::string kind = distribution(path);
  const double mu = reader_.number(path + "/mu").value_or(0);
  const double sigma = reader_.number(path + "/sigma").value_or(1);
  if (kind == "normal") return ImportReader::domain("randn", {mu, sigma});
  if (kind == "q_normal") return ImportReader::domain("qrandn", {mu, sigma, q});
  const bool is_bounded = kind == "int_uniform" || kind == "uniform" || kind == "q_uniform" ||
                          kind.find("log_uniform") != std::string::npos;
  if (!is_bounded || kind.starts_with("inv_")) {
    reader_.refuse(path, kind.empty()
                             ? "has neither value, values, a distribution nor min and max"
                             : fmt::format("the distribution {} has no counterpart: use uniform, "
                                           "log_uniform_values, normal or values",
                                           kind));
    return std::nullopt;
  }
  if (!low || !high) {
    reader_.refuse(path, kind + " needs min and max");
    return std::nullopt;
  }
  if (kind == "int_uniform") {
    const auto first = reader_.whole(path + "/min");
    const auto last = reader_.whole(path + "/max");
    return first && last ? reader_.whole_numbers(path, *first, *last) : std::nullopt;
  }
  if (kind == "uniform") return ImportReader::domain("uniform", {*low, *high});
  if (kind == "q_uniform") return reader_.stepped(path, "quniform", *low, *high, q);
  return log_drawn(path, kind);
}

// Bounds are exponents of e, but with _values.
std::optional<Value> WandbSweep::log_drawn(const std::string& path, const std::string& kind) {
  double low = *reader_.number(path + "/min");
  double high = *reader_.number(path + "/max");
  if (!kind.ends_with("_values")) {
    low = std::exp(low);
    high = std::exp(high);
    reader_.note(path, fmt::format("its bounds were exponents of e: {:g} to {:g} now", low, high));
  }
  if (!kind.starts_with("q_")) return ImportReader::domain("loguniform", {low, high});
  return reader_.stepped(path, "qloguniform", low, high, reader_.number(path + "/q").value_or(1));
}

void WandbSweep::import_early_end() {
  if (reader_.find("early_terminate") == nullptr) return;
  reader_.check_keys("early_terminate", {"type", "min_iter", "max_iter", "s", "eta", "strict"}, {});
  const std::string type = reader_.text("early_terminate/type").value_or("");
  if (type != "hyperband") {
    return reader_.refuse("early_terminate/type",
                          fmt::format("'{}' has no counterpart: use hyperband", type));
  }
  const auto eta = reader_.whole("early_terminate/eta").value_or(3);
  const auto brackets = reader_.whole("early_terminate/s");
  const auto max = reader_.whole("early_terminate/max_iter");
  std::int64_t first = reader_.whole("early_terminate/min_iter").value_or(0);
  if (first == 0 && max && brackets && *brackets > 0) {
    first = static_cast<std::int64_t>(static_cast<double>(*max) /
                                      std::pow(static_cast<double>(eta), *brackets));
  }
  if (first < 1) {
    return reader_.refuse("early_terminate", "needs min_iter, or max_iter with s: the first report "
                                             "at which trials are compared");
  }
  Value asha{{"grace_period", first}, {"reduction_factor", eta}};
  asha.set("max_t", max.value_or(first * eta * eta * eta * eta));
  asha.set("stop_last_trials", false);
  reader_.set("scheduler", Value{{"asha", asha}});
  reader_.note("early_terminate",
               "becomes asha: the rule and its brackets differ, and iterations are reports");
}

void WandbSweep::import_word(const std::string& path, const std::string& word, Value::List& words) {
  constexpr std::array<const char*, 7> kSame = {
      "${env}",  "${interpreter}",      "${program}",
      "${args}", "${args_no_hyphens}", "${args_no_boolean_flags}", "${args_json}"};
  for (const char* same : kSame) {
    if (word == same) return words.emplace_back(word), void();
  }
  if (word == "${args_json_file}") return words.emplace_back("${config_file}"), void();
  // A parameter within a word is the same here.
  for (std::size_t at = 0; (at = word.find("${", at)) != std::string::npos; ++at) {
    const std::string name = word.substr(at + 2, word.find('}', at) - at - 2);
    if (reader_.has_parameter(name)) continue;
    return reader_.refuse(path, fmt::format("${{{}}} has no counterpart and is not a parameter: write "
                                            "the value itself, or let the program read its "
                                            "environment",
                                            name));
  }
  words.emplace_back(word);
}

void WandbSweep::import_command() {
  if (const auto program = reader_.text("program")) {
    reader_.set("program", *program);
  } else if (reader_.find("command") == nullptr) {
    reader_.refuse("", "neither program nor command is there: name the script, as in program: "
                       "train.py");
  }
  if (const Value* command = reader_.find("command")) {
    if (!command->is_list()) return reader_.refuse("command", "expected a list of words");
    Value::List words;
    for (std::size_t i = 0; i < command->list().size(); ++i) {
      const Value& word = command->list()[i];
      import_word(fmt::format("command/{}", i), word.is_string() ? word.string() : word.dump(),
                  words);
    }
    reader_.set("command", Value::make_list(std::move(words)));
  }
  reader_.note("", "what the program gives to wandb.log is not seen here: print it as a line "
                   "tune: {\"loss\": 0.5} as well, or read its own lines by report: {stdout: "
                   "'loss=(?P<loss>\\S+)'}");
}

}  // namespace

void import_wandb(ImportReader& reader) {
  WandbSweep(reader).import();
}

}  // namespace tune
