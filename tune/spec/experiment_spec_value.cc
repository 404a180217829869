// experiment.json: an ExperimentSpec as a Value and back.
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/spec/experiment_spec.h"
#include "tune/spec/experiment_version.h"
#include "tune/spec/option_reader.h"
#include "tune/spec/options_value.h"
#include "tune/spec/pool_value.h"
#include "tune/spec/python_options.h"

namespace tune {

namespace {

constexpr const char* kFloat = "$float";  // JSON has no nan and no infinities
constexpr const char* kCommand = "command_trial";
constexpr const char* kOwnScheduler = "own_scheduler";
constexpr const char* kOwnSearcher = "own_searcher";
// Beside patience_s, which builds before wrote whether or not it was given.
constexpr const char* kPatienceGiven = "patience_given";

// ---- Floats that JSON cannot hold ----

Value without_odd_floats(const Value& value) {
  if (value.type() == Value::Type::kFloat && !std::isfinite(value.number())) {
    const char* sign = value.number() > 0 ? "inf" : "-inf";
    return Value{{kFloat, std::isnan(value.number()) ? "nan" : sign}};
  }
  Value copy = value;
  if (copy.is_list()) {
    for (Value& item : copy.list()) item = without_odd_floats(item);
  } else if (copy.is_map()) {
    for (Member& member : copy.map()) member.value = without_odd_floats(member.value);
  }
  return copy;
}

Value with_odd_floats(Value value) {
  if (value.is_list()) {
    for (Value& item : value.list()) item = with_odd_floats(std::move(item));
  } else if (value.is_map()) {
    const Value::Map& map = value.map();
    if (map.size() == 1 && map[0].key == kFloat && map[0].value.is_string()) {
      const std::string& text = map[0].value.string();
      if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
      if (text == "inf") return std::numeric_limits<double>::infinity();
      if (text == "-inf") return -std::numeric_limits<double>::infinity();
    }
    for (Member& member : value.map()) member.value = with_odd_floats(std::move(member.value));
  }
  return value;
}

// ---- Parts that only the program itself can bring ----

[[noreturn]] void needs_program(const char* what) {
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("this experiment uses {} of its own program: run it again from that program",
                  what));
}

// The stored space. Before version 2 the options of a choice held no domains.
SearchSpace space_from_value(const Value& described, std::int64_t version) {
  SpaceReading reading;
  reading.constant_options = version < 2;
  reading.is_stored = true;
  reading.function = [](const Config&) -> Value {
    needs_program("a function in its search space");
  };
  std::vector<SpaceComplaint> wrong;
  SearchSpace space = search_space_from_value(described, wrong, reading);
  if (wrong.empty()) return space;
  std::vector<Complaint> complaints;
  for (SpaceComplaint& one : wrong) {
    complaints.push_back(
        {.path = join_path("config", one.path), .message = std::move(one.message)});
  }
  throw_complaints("", complaints);
}

// ---- Values of env are secrets ----

Value env_names(const std::map<std::string, std::string>& env) {
  Value::List names;
  for (const auto& [name, value] : env) names.emplace_back(name);
  return Value::make_list(std::move(names));
}

void restore_env_map(Value& options) {
  const Value* names = options.find("env");
  if (names == nullptr || !names->is_list()) return;
  Value map = Value::make_map();
  for (const Value& name : names->list()) {
    if (name.is_string()) map.set(name.string(), "");
  }
  options.set("env", std::move(map));
}

// ---- The parts ----

Value program_to_value(const ProgramCall& program) {
  return Value{{"executable", program.executable},
               {"arguments", program.arguments},
               {"working_directory", program.working_directory},
               {"call", program.call},
               {"earlier", program.earlier}};
}

ProgramCall program_from_value(const Value& value) {
  ProgramCall program;
  program.executable = value.get<std::string>("executable");
  program.arguments = value.get<std::vector<std::string>>("arguments");
  program.working_directory = value.get<std::string>("working_directory");
  program.call = value.get<std::uint32_t>("call");
  program.earlier = value.get<std::vector<std::string>>("earlier");
  return program;
}

// Before there was the option, no rung of ASHA opened for what its values say.
void leave_silent_rungs(Value& options) {
  if (!options.contains("scheduler/asha/open_after")) return;
  if (options.contains("scheduler/asha/open_silent")) return;
  options.set("scheduler/asha/open_silent", false);
}

RunOptions options_from_value(Value stored) {
  const auto version = stored.get<std::int64_t>("version");
  for (const char* key : {"version", "name_given", "trainable", "plugin", "program", "sweep",
                          "sweep_hash", "plugin_hash", "store_prefix", "python", kCommand,
                          kOwnScheduler, kOwnSearcher, kPatienceGiven}) {
    stored.erase(key);
  }
  stored.erase("on_end");  // never written: who can write the file must not run a program by it
  restore_env_map(stored);
  leave_silent_rungs(stored);
  stored = with_odd_floats(std::move(stored));
  const Value space = stored.at("config");
  stored.erase("config");
  std::vector<Complaint> complaints;
  RunOptions options;
  OptionReader reader(stored, "", complaints);
  read_options(reader, options);
  reader.finish();
  if (!complaints.empty()) throw_complaints("", complaints);
  options.config = space_from_value(space, version);
  return options;
}

void check_version(const Value& value) {
  const auto version = value.get<std::int64_t>("version");
  if (version >= 1 && version <= kExperimentVersion) return;
  throw Error(
      ErrorCode::kProtocol,
      fmt::format("its version is {}, this program reads up to {}: use the version of tune that "
                  "wrote it",
                  version, kExperimentVersion));
}

ExperimentSpec parts_from_value(const Value& value) {
  check_version(value);
  ExperimentSpec spec;
  spec.options = options_from_value(value);
  spec.name = std::exchange(spec.options.name, "");
  spec.name_given = value.get<bool>("name_given");
  if (spec.name_given) spec.options.name = spec.name;
  spec.trainable = value.get<std::string>("trainable");
  spec.plugin = value.get<std::string>("plugin");
  spec.sweep = value.get_or("sweep", "");
  spec.sweep_hash = value.get_or("sweep_hash", "");
  spec.plugin_hash = value.get_or("plugin_hash", "");
  spec.store_prefix = value.get_or("store_prefix", "");
  if (const Value* program = value.find("program")) spec.program = program_from_value(*program);
  if (const Value* python = value.find("python")) spec.python = python_from_value(*python);
  if (const Value* command = value.find(kCommand)) spec.command = command_from_value(*command);
  // Before there was a choice, a sweep that names none had this one.
  if (!value.contains("searcher")) spec.options.searcher = basic_variant();
  if (value.contains(kOwnScheduler)) {
    spec.options.scheduler = SchedulerSpec(
        "", {}, []() -> std::unique_ptr<TrialScheduler> { needs_program("a scheduler"); });
  }
  if (value.contains(kOwnSearcher)) {
    spec.options.searcher =
        SearcherSpec("", {}, []() -> std::unique_ptr<Searcher> { needs_program("a searcher"); });
  }
  const bool is_patience_given = value.contains(kPatienceGiven) || takes_machines(spec.options);
  if (!is_patience_given) spec.options.patience_s.reset();
  for (const auto& [path, bound] : spec.options.stop) {
    spec.stop.push_back({path, bound.bound, bound.at_most});
  }
  spec.request = to_request(spec.options.resources_per_trial);
  return spec;
}

}  // namespace

// A flat map: the keys of RunOptions beside those of the spec itself.
Value to_value(const ExperimentSpec& spec) {
  Value value{{"version", kExperimentVersion},
              {"name", spec.name},
              {"name_given", spec.name_given},
              {"trainable", spec.trainable},
              {"plugin", spec.plugin}};
  if (!spec.sweep.empty()) {
    value.set("sweep", spec.sweep);
    value.set("sweep_hash", spec.sweep_hash);
    value.set("plugin_hash", spec.plugin_hash);
  }
  if (!spec.store_prefix.empty()) value.set("store_prefix", spec.store_prefix);
  if (spec.program) value.set("program", program_to_value(*spec.program));
  if (spec.python) value.set("python", to_value(*spec.python));
  if (spec.command.is_given()) value.set(kCommand, to_value(spec.command));
  if (spec.options.scheduler.name().empty()) value.set(kOwnScheduler, true);
  if (spec.options.searcher.name().empty()) value.set(kOwnSearcher, true);
  if (spec.options.patience_s) value.set(kPatienceGiven, true);
  Value options = without_odd_floats(options_to_value(spec.options));
  options.erase("env");
  if (!spec.options.env.empty()) options.set("env", env_names(spec.options.env));
  options.erase("name");
  for (Member& option : options.map()) value.map().push_back(std::move(option));
  return value;
}

ExperimentSpec spec_from_value(const Value& value) {
  try {
    return parts_from_value(value);
  } catch (const Error& error) {
    throw Error(ErrorCode::kProtocol,
                fmt::format("reading the stored spec of an experiment: {}", error.what()));
  }
}

}  // namespace tune
