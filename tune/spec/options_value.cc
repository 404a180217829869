#include "tune/spec/options_value.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/spec/objectives.h"
#include "tune/spec/pool_value.h"
#include "tune/spec/scheduler_kinds.h"

namespace tune {

namespace {

const std::vector<std::string> kModes = {"max", "min"};                    // by Mode
const std::vector<std::string> kVisibilities = {"trial", "rotated"};      // by GpuVisibility
const std::vector<std::string> kIfExists = {"refuse", "resume", "fresh"};  // by IfExists

// The position of a word among the allowed ones.
std::optional<std::size_t> read_word(OptionReader& reader, const char* key,
                                     const std::vector<std::string>& words) {
  const Value* found = reader.take(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_string()) {
    const auto at = std::find(words.begin(), words.end(), found->string());
    if (at != words.end()) return static_cast<std::size_t>(at - words.begin());
  }
  std::string expected;
  for (const std::string& word : words) expected += (expected.empty() ? "" : " or ") + word;
  const std::string hint = found->is_string() ? did_you_mean(found->string(), words) : "";
  reader.complain(key,
                  fmt::format("expected {}, found {}{}", expected, describe_value(*found), hint));
  return std::nullopt;
}

void read_space(OptionReader& reader, SearchSpace& space) {
  const Value* found = reader.take("config");
  if (found == nullptr) return;
  std::vector<SpaceComplaint> complaints;
  space = search_space_from_value(*found, complaints);
  for (SpaceComplaint& complaint : complaints) {
    reader.complain(join_path("config", complaint.path), std::move(complaint.message));
  }
}

// ---- Stop rules ----

void read_stop_map(OptionReader& reader, const Value& map, const std::string& path,
                   StopCriteria& stop);

void read_stop_value(OptionReader& reader, const Value& value, const std::string& path,
                     StopCriteria& stop) {
  const std::string where = "stop/" + path;
  if (value.is_number()) {
    stop.emplace(path, StopBound(value.number()));
    return;
  }
  if (!value.is_map() || value.map().empty()) {
    return reader.complain(where, fmt::format("expected a number, or {{\"<=\": number}}, found {}",
                                              describe_value(value)));
  }
  const Member& first = value.map().front();
  const bool compares = first.key.find_first_not_of("<>=!") == std::string::npos;
  if (!compares) return read_stop_map(reader, value, path, stop);
  const bool known = first.key == "<=" || first.key == ">=";
  if (!known || value.map().size() != 1 || !first.value.is_number()) {
    return reader.complain(where, fmt::format("expected {{\"{}\": number}}, found {}",
                                              known ? first.key : "<=", value.dump()));
  }
  const double bound = first.value.number();
  stop.emplace(path, first.key == "<=" ? StopBound(at_most(bound)) : StopBound(bound));
}

void read_stop_map(OptionReader& reader, const Value& map, const std::string& path,
                   StopCriteria& stop) {
  for (const Member& member : map.map()) {
    read_stop_value(reader, member.value, join_path(path, member.key), stop);
  }
}

void read_stop(OptionReader& reader, StopCriteria& stop) {
  const Value* found = reader.take("stop");
  if (found == nullptr) return;
  if (!found->is_map()) {
    return reader.complain("stop", fmt::format("expected metrics with numbers, as in "
                                               "{{training_iteration: 100}}, found {}",
                                               describe_value(*found)));
  }
  stop.clear();
  read_stop_map(reader, *found, "", stop);
}

Value stop_to_value(const StopCriteria& stop) {
  Value map = Value::make_map();
  for (const auto& [path, bound] : stop) {
    map.set(path, bound.at_most ? Value{{"<=", bound.bound}} : Value(bound.bound));
  }
  return map;
}

// ---- Schedulers and searchers ----

// The key of the map that an error message names first; its end when it names none.
Value::Map::const_iterator key_in_message(const Value::Map& map, std::string_view message) {
  auto best = map.end();
  std::size_t best_at = std::string_view::npos;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (auto member = map.begin(); member != map.end(); ++member) {
    const std::size_t at = message.find(member->key);
    if (at == std::string_view::npos || at >= best_at) continue;
    const std::size_t end = at + member->key.size();
    if ((at > 0 && is_word(message[at - 1])) || (end < message.size() && is_word(message[end])))
      continue;
    best = member;
    best_at = at;
  }
  return best;
}

// `scheduler: asha` or `scheduler: {asha: {max_t: 27}}`. `make(name, parameters)` throws one error
// at a time; the key it names is set aside and the rest tried again, so that all are reported at
// once.
template <class Spec, class Make>
void read_named(OptionReader& reader, const char* key, Spec& spec, Make make) {
  const Value* found = reader.take(key);
  if (found == nullptr) return;
  const bool is_name = found->is_string();
  if (!is_name && (!found->is_map() || found->map().size() != 1)) {
    return reader.complain(key,
                           fmt::format("expected one name, or one name with its parameters as in "
                                       "{{name: {{key: value}}}}, found {}",
                                       found->is_map() ? found->dump() : describe_value(*found)));
  }
  const std::string name = is_name ? found->string() : found->map().front().key;
  const std::string path = is_name ? key : join_path(key, name);
  Value parameters = is_name ? Value::make_map() : found->map().front().value;
  if (parameters.is_null()) parameters = Value::make_map();
  if (!parameters.is_map()) {
    return reader.complain(path, fmt::format("expected parameters as in {{key: value}}, found {}",
                                             describe_value(parameters)));
  }
  while (true) {
    try {
      Spec made = make(name, Config(parameters));
      spec = std::move(made);
      return;
    } catch (const Error& error) {
      const auto wrong = key_in_message(parameters.map(), error.what());
      const bool none = wrong == parameters.map().end();
      reader.complain(none ? path : join_path(path, wrong->key), error.what());
      if (none) return;
      const std::string set_aside = wrong->key;
      parameters.erase(set_aside);
    }
  }
}

template <class Spec>
void add_named(Value& map, const char* key, const Spec& spec) {
  if (spec.name().empty()) return;
  Value named = Value::make_map();
  named.set(spec.name(), spec.parameters());
  map.set(key, std::move(named));
}

// ---- Groups of options ----

void read_resources(OptionReader& reader, Resources& resources) {
  const Value* found = reader.take("resources_per_trial");
  if (found == nullptr) return;
  OptionReader group(*found, reader.path_of("resources_per_trial"), reader.complaints());
  group.read("cpu", resources.cpu);
  group.read("gpu", resources.gpu);
  group.read("ranks", resources.ranks);
  if (const Value* memory = group.take("memory")) {
    try {
      if (memory->is_string()) {
        resources.memory = MemorySize(memory->string());
      } else if (memory->type() == Value::Type::kInt) {
        resources.memory = MemorySize(memory->integer());
      } else {
        group.complain("memory", fmt::format("expected bytes or a text such as 8GiB, found {}",
                                             describe_value(*memory)));
      }
    } catch (const Error& error) {
      group.complain("memory", error.what());
    }
  }
  group.finish();
}

void read_checkpoint(OptionReader& reader, CheckpointOptions& checkpoint) {
  const Value* found = reader.take("checkpoint");
  if (found == nullptr) return;
  OptionReader group(*found, reader.path_of("checkpoint"), reader.complaints());
  group.read("frequency", checkpoint.frequency);
  group.read("at_end", checkpoint.at_end);
  group.read("keep", checkpoint.keep);
  group.finish();
}

void read_reporter(OptionReader& reader, ReporterOptions& reporter) {
  const Value* found = reader.take("reporter");
  if (found == nullptr) return;
  OptionReader group(*found, reader.path_of("reporter"), reader.complaints());
  group.read("metrics", reporter.metrics);
  group.read("parameters", reporter.parameters);
  group.read("max_rows", reporter.max_rows);
  group.read("every_s", reporter.every_s);
  group.finish();
}

void read_seed(OptionReader& reader, std::optional<std::uint64_t>& seed) {
  const Value* found = reader.take("seed");
  if (found == nullptr) return;
  try {
    // Above the range of integers a seed is written as text.
    if (found->is_string()) {
      std::size_t end = 0;
      const std::string& digits = found->string();
      const bool starts_well =
          !digits.empty() && std::isdigit(static_cast<unsigned char>(digits[0]));
      if (starts_well) seed = std::stoull(digits, &end);
      if (starts_well && end == digits.size()) return;
    } else if (found->type() == Value::Type::kInt && found->integer() >= 0) {
      seed = static_cast<std::uint64_t>(found->integer());
      return;
    }
  } catch (const std::out_of_range&) {  // reported below
  }
  reader.complain("seed",
                  fmt::format("expected a whole number from 0 to 18446744073709551615, found {}",
                              describe_value(*found)));
}

void read_points(OptionReader& reader, std::vector<Config>& points) {
  const Value* found = reader.take("points_to_evaluate");
  if (found == nullptr) return;
  if (!found->is_list()) {
    return reader.complain(
        "points_to_evaluate",
        fmt::format("expected a list of configurations, as in [{{lr: 0.1}}], found {}",
                    describe_value(*found)));
  }
  points.clear();
  for (std::size_t i = 0; i < found->list().size(); ++i) {
    const Value& point = found->list()[i];
    if (point.is_map()) {
      points.emplace_back(point);
    } else {
      reader.complain(fmt::format("points_to_evaluate/{}", i),
                      fmt::format("expected a configuration, as in {{lr: 0.1}}, found {}",
                                  describe_value(point)));
    }
  }
}

// `where: x < y` or a list of such.
void read_where(OptionReader& reader, std::vector<std::string>& where) {
  const Value* found = reader.take("where");
  if (found == nullptr) return;
  const Value::List texts = found->is_list() ? found->list() : Value::List{*found};
  where.clear();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].is_string()) {
      where.push_back(texts[i].string());
    } else {
      reader.complain(fmt::format("where/{}", i),
                      fmt::format("expected a comparison of parameters, as in x < y, found {}",
                                  describe_value(texts[i])));
    }
  }
}

// `warm_start: results/a` or a list of such.
void read_warm_start(OptionReader& reader, std::vector<std::string>& folders) {
  const Value* found = reader.take("warm_start");
  if (found == nullptr) return;
  const Value::List all = found->is_list() ? found->list() : Value::List{*found};
  folders.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].is_string()) {
      folders.push_back(all[i].string());
    } else {
      reader.complain(
          fmt::format("warm_start/{}", i),
          fmt::format("expected the folder of an experiment, found {}", describe_value(all[i])));
    }
  }
}

void read_on_end(OptionReader& reader, OnEnd& on_end) {
  const Value* found = reader.take("on_end");
  if (found == nullptr) return;
  OptionReader group(*found, reader.path_of("on_end"), reader.complaints());
  group.read("command", on_end.command);
  group.read("webhook", on_end.webhook);
  group.read("terminal", on_end.terminal);
  group.finish();
}

void read_env(OptionReader& reader, std::map<std::string, std::string>& env) {
  const Value* found = reader.take("env");
  if (found == nullptr) return;
  OptionReader group(*found, "env", reader.complaints());
  env.clear();
  if (!found->is_map()) return;
  for (const Member& member : found->map()) group.read(member.key.c_str(), env[member.key]);
}

}  // namespace

void read_options(OptionReader& reader, RunOptions& options) {
  reader.read("name", options.name);
  read_space(reader, options.config);
  reader.read("num_samples", options.num_samples);
  reader.read("metric", options.metric);
  if (const auto word = read_word(reader, "mode", kModes)) options.mode = static_cast<Mode>(*word);
  read_named(reader, "scheduler", options.scheduler, any_scheduler_from_config);
  read_stop(reader, options.stop);
  read_resources(reader, options.resources_per_trial);
  read_seed(reader, options.seed);
  reader.read("storage", options.storage);
  read_checkpoint(reader, options.checkpoint);
  reader.read("max_failures", options.max_failures);
  reader.read("max_concurrent_trials", options.max_concurrent_trials);
  reader.read("time_budget_s", options.time_budget_s);
  reader.read("max_trial_time_s", options.max_trial_time_s);
  reader.read("hang_timeout_s", options.hang_timeout_s);
  read_points(reader, options.points_to_evaluate);
  read_named(reader, "searcher", options.searcher, searcher_from_config);
  reader.read("store", options.store);
  read_env(reader, options.env);
  read_reporter(reader, options.reporter);
  reader.read("raise_on_failed_trial", options.raise_on_failed_trial);
  reader.read("fail_fast", options.fail_fast);
  if (const auto word = read_word(reader, "if_exists", kIfExists)) {
    options.if_exists = static_cast<IfExists>(*word);
  }
  reader.read("quiet", options.quiet);
  reader.read("store_unsafe", options.store_unsafe);
  reader.read("cpus", options.cpus);
  reader.read("gpus", options.gpus);
  reader.read("wait_gpus", options.wait_gpus);
  reader.read("group_timeout_s", options.group_timeout_s);
  if (const auto word = read_word(reader, "gpu_visibility", kVisibilities)) {
    options.gpu_visibility = static_cast<GpuVisibility>(*word);
  }
  reader.read("alone_timeout_s", options.alone_timeout_s);
  reader.read("store_patience_s", options.store_patience_s);
  reader.read("save_grace_s", options.save_grace_s);
  read_where(reader, options.where);
  read_warm_start(reader, options.warm_start);
  reader.read("listen", options.listen);
  reader.read("lease_s", options.lease_s);
  reader.read("patience_s", options.patience_s);
  read_objectives(reader, options.objectives);
  read_constraints(reader, options.constraints);
  read_pool(reader, options.pool);
  reader.read("loggers", options.loggers);
  read_on_end(reader, options.on_end);
  reader.read("checkpoint_storage", options.checkpoint_storage);
}

namespace {

Value resources_to_value(const Resources& resources) {
  Value map = Value::make_map();
  if (resources.cpu) map.set("cpu", *resources.cpu);
  map.set("gpu", resources.gpu);
  map.set("memory", resources.memory.bytes());
  map.set("ranks", resources.ranks);
  return map;
}

Value env_to_value(const std::map<std::string, std::string>& env) {
  Value map = Value::make_map();
  for (const auto& [name, value] : env) map.set(name, value);
  return map;
}

Value seed_to_value(std::uint64_t seed) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  return seed <= kLargest ? Value(seed) : Value(std::to_string(seed));
}

}  // namespace

Value options_to_value(const RunOptions& options) {
  Value map = Value::make_map();
  map.set("name", options.name);
  map.set("config", options.config.describe());
  map.set("num_samples", options.num_samples);
  map.set("metric", options.metric);
  if (options.mode) map.set("mode", kModes[static_cast<std::size_t>(*options.mode)]);
  add_named(map, "scheduler", options.scheduler);
  map.set("stop", stop_to_value(options.stop));
  map.set("resources_per_trial", resources_to_value(options.resources_per_trial));
  if (options.seed) map.set("seed", seed_to_value(*options.seed));
  map.set("storage", options.storage);
  map.set("checkpoint", Value{{"frequency", options.checkpoint.frequency},
                              {"at_end", options.checkpoint.at_end},
                              {"keep", options.checkpoint.keep}});
  map.set("max_failures", options.max_failures);
  map.set("max_concurrent_trials", options.max_concurrent_trials);
  map.set("time_budget_s", options.time_budget_s);
  map.set("max_trial_time_s", options.max_trial_time_s);
  map.set("hang_timeout_s", options.hang_timeout_s);
  map.set("points_to_evaluate",
          Value::make_list({options.points_to_evaluate.begin(), options.points_to_evaluate.end()}));
  add_named(map, "searcher", options.searcher);
  map.set("store", options.store);
  map.set("env", env_to_value(options.env));
  map.set("reporter", Value{{"metrics", options.reporter.metrics},
                            {"parameters", options.reporter.parameters},
                            {"max_rows", options.reporter.max_rows},
                            {"every_s", options.reporter.every_s}});
  map.set("raise_on_failed_trial", options.raise_on_failed_trial);
  map.set("fail_fast", options.fail_fast);
  map.set("if_exists", kIfExists[static_cast<std::size_t>(options.if_exists)]);
  map.set("quiet", options.quiet);
  map.set("store_unsafe", options.store_unsafe);
  if (options.cpus) map.set("cpus", *options.cpus);
  if (options.gpus) map.set("gpus", *options.gpus);
  map.set("wait_gpus", options.wait_gpus);
  map.set("group_timeout_s", options.group_timeout_s);
  map.set("gpu_visibility", kVisibilities[static_cast<std::size_t>(options.gpu_visibility)]);
  map.set("alone_timeout_s", options.alone_timeout_s);
  map.set("store_patience_s", options.store_patience_s);
  map.set("save_grace_s", options.save_grace_s);
  map.set("where", options.where);
  map.set("warm_start", options.warm_start);
  map.set("listen", options.listen);
  map.set("lease_s", options.lease_s);
  if (options.patience_s) map.set("patience_s", *options.patience_s);
  map.set("objectives", objectives_to_value(options.objectives));
  map.set("constraints", constraints_to_value(options.constraints));
  if (options.pool.is_given()) map.set("pool", pool_to_value(options.pool));
  map.set("loggers", options.loggers);
  if (!options.checkpoint_storage.empty()) {
    map.set("checkpoint_storage", options.checkpoint_storage);
  }
  return map;
}

}  // namespace tune
