#include "tune/spec/yaml_spec.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/agent/plugin_probe.h"
#include "core/error.h"
#include "core/fitting.h"
#include "core/platform/fingerprint.h"
#include "core/platform/node.h"
#include "core/random.h"
#include "core/strings.h"
#include "tune/spec/command_options.h"
#include "tune/spec/option_reader.h"
#include "tune/spec/options_value.h"
#include "tune/spec/pool_value.h"
#include "tune/spec/python_options.h"
#include "tune/spec/trainable_check.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

// At most `limit` bytes; one more tells that there is more.
std::string read_text(const fs::path& file, std::size_t limit) {
  std::error_code ignored;
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file, ignored)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("reading the sweep {}: {}: name a YAML file", file.string(),
                            stream ? "it is a folder" : std::strerror(errno)));
  }
  std::string text(limit + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

bool is_or_is_below(const std::string& path, const std::string& above) {
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '/');
}

// Whether a complaint about `path` may be nothing but a consequence of one about `earlier`.
bool may_follow(const std::string& path, const std::string& earlier) {
  if (is_or_is_below(path, earlier) || is_or_is_below(earlier, path)) return true;
  // The other values that a check looks at: one that could not be read is missing there.
  static const std::map<std::string, std::vector<std::string>> kLooksAt = {
      {"stop", {"scheduler", "time_budget_s", "max_trial_time_s"}},
      {"scheduler", {"metric", "mode"}},
      {"points_to_evaluate", {"config"}},
      {"where", {"config"}},
  };
  const auto others = kLooksAt.find(path.starts_with("where/") ? "where" : path);
  if (others == kLooksAt.end()) return false;
  return std::any_of(others->second.begin(), others->second.end(),
                     [&](const std::string& key) { return is_or_is_below(earlier, key); });
}

// One reading of one sweep.
class SweepReader {
 public:
  SweepReader(const fs::path& file, SweepOptions options)
      : file_(file), options_(std::move(options)), complaints_(std::move(options_.complaints)) {}

  ExperimentSpec read();

 private:
  void read_tree();
  void read_keys();
  void find_plugin();
  void find_python_trainable();
  bool is_from_command_line(const char* key) const;
  fs::path base_of(const char* key) const;
  void take_command();
  void play(const PlayedTask& task);
  void take_modes(const std::map<std::string, Mode>& modes);
  void make();
  void add_new(std::vector<Complaint> found);
  void check_node();
  void check_trainable();
  void note_places();
  const ZygoteReady& probe();
  const TrainableInfo* trainable_info();
  bool told_of(const char* key) const {
    return std::any_of(complaints_.begin(), complaints_.end(),
                       [&](const Complaint& one) { return one.path == key; });
  }
  void complain(std::string path, std::string message) {
    complaints_.push_back({.path = std::move(path), .message = std::move(message)});
  }
  void throw_if_wrong();

  fs::path file_;
  SweepOptions options_;
  std::vector<Complaint> complaints_;
  YamlTree tree_;
  std::string plugin_;
  std::optional<PythonCall> python_;  // instead of a plugin
  std::string trainable_;
  CommandSpec command_;
  RunOptions run_;
  std::optional<ZygoteReady> probe_;
  ExperimentSpec spec_;
};

ExperimentSpec SweepReader::read() {
  read_tree();
  read_keys();
  if (options_.played) {
    play(*options_.played);
  } else if (command_.is_given()) {
    take_command();
  } else {
    python_ ? find_python_trainable() : find_plugin();
  }
  make();
  if (options_.node != nullptr) check_node();
  const bool all_at_once = options_.node != nullptr && !complaints_.empty();
  if (options_.load_plugin || all_at_once) check_trainable();
  throw_if_wrong();
  note_places();
  spec_.plugin = plugin_;
  spec_.python = python_;
  if (!options_.played) spec_.command = command_;
  spec_.sweep = fs::absolute(file_).lexically_normal().string();
  spec_.sweep_hash = fingerprint(file_);
  spec_.plugin_hash = fingerprint(trainable_file(spec_));
  return std::move(spec_);
}

void SweepReader::read_tree() {
  const std::size_t before = complaints_.size();
  tree_ = parse_yaml(read_text(file_, kMaxYamlBytes), "", option_rules(), complaints_);
  if (tree_.value.is_map()) return apply_overrides(options_.overrides, tree_, complaints_);
  if (complaints_.size() == before) {
    complain("",
             fmt::format("expected the keys of a sweep (trainable: Name, config: ...), found {}",
                         describe_value(tree_.value)));
  }
  throw_if_wrong();
}

void SweepReader::read_keys() {
  std::vector<Complaint> found;
  OptionReader reader(tree_.value, "", found);
  reader.read("plugin", plugin_);
  reader.read("trainable", trainable_);
  read_options(reader, run_);
  read_command(reader, command_);
  python_ = read_python(reader);
  reader.finish();
  // A value that could not be read is missing here: told already.
  const std::vector<Complaint> told = complaints_;
  for (Complaint& complaint : found) {
    const auto same = [&](const Complaint& earlier) { return earlier.path == complaint.path; };
    if (std::none_of(told.begin(), told.end(), same)) complaints_.push_back(std::move(complaint));
  }
}

// Paths are relative to the sweep; those given on the command line, to the working directory.
fs::path SweepReader::base_of(const char* key) const {
  return is_from_command_line(key) ? fs::current_path() : fs::absolute(file_).parent_path();
}

bool SweepReader::is_from_command_line(const char* key) const {
  return std::any_of(options_.overrides.begin(), options_.overrides.end(),
                     [&](const Override& one) { return one.path == key; });
}

void SweepReader::find_python_trainable() {
  for (const auto& [key, given] : {std::pair{"plugin", &plugin_}, {"trainable", &trainable_}}) {
    if (!given->empty())
      complain(key, "stands beside python, which names the trainable: leave one out");
  }
  plugin_.clear();
  find_python(*python_, base_of("python"), complaints_);
  trainable_ = trainable_name(*python_);
}

void SweepReader::find_plugin() {
  if (plugin_.empty()) {
    if (told_of("plugin") || told_of("python") || told_of("command")) return;
    return complain("plugin",
                    "is missing: name the library (.so) that holds the trainable, by the key "
                    "python a Python one, or the program to run, as command: [./train, ...]");
  }
  const fs::path given = plugin_;
  const fs::path base = base_of("plugin");
  const fs::path full = (base / given).lexically_normal();
  plugin_ = full.string();
  std::error_code ignored;
  if (fs::is_regular_file(full, ignored)) return;
  complain(
      "plugin",
      fmt::format("there is no file {} ({}{} is relative to {}): build it, for example with "
                  "cmake --build build, or correct the path",
                  plugin_, given.is_absolute() ? "an absolute path; else " : "", given.string(),
                  is_from_command_line("plugin") ? "the working directory" : "the sweep's folder"));
  plugin_.clear();
}

// A program runs: neither plugin nor trainable is needed.
void SweepReader::take_command() {
  for (const char* key : {"plugin", "trainable", "python"}) {
    if (tree_.value.contains(key)) {
      complain(key, "is given beside command: a trial runs one of them, remove the other");
    }
  }
  plugin_.clear();
  python_.reset();
  trainable_ = command_name(command_);
  add_new(complaints_about(command_, run_));
}

void SweepReader::play(const PlayedTask& task) {
  plugin_.clear();
  if (trainable_.empty()) trainable_ = "played";
  if (run_.config.is_map() && run_.config.members().empty()) run_.config = task.space;
  const Config& scheduler = run_.scheduler.parameters();
  const bool has_metric =
      !run_.metric.empty() || !run_.objectives.empty() || scheduler.contains("metric");
  if (!has_metric) run_.metric = task.metric;
  take_modes(task.modes);
  const double own_s = run_.time_budget_s;
  if (task.budget_s > 0 && (own_s == 0 || own_s > task.budget_s)) {
    run_.time_budget_s = task.budget_s;
  }
}

// For metrics whose mode the sweep leaves out.
void SweepReader::take_modes(const std::map<std::string, Mode>& modes) {
  const Config& scheduler = run_.scheduler.parameters();
  const Value* own = scheduler.find("metric");
  const auto known = modes.find(own != nullptr && own->is_string() ? own->string() : run_.metric);
  if (known != modes.end() && !run_.mode && !scheduler.contains("mode")) run_.mode = known->second;
  for (std::size_t i = 0; i < run_.objectives.size(); ++i) {
    Goal& goal = run_.objectives[i];
    const Value& given = tree_.value.at("objectives").list()[i];
    const auto found = modes.find(goal.metric);
    if (found != modes.end() && !given.contains("mode")) goal.mode = found->second;
  }
}

// Whether the trainable is a function decides only what a sweep without any end means, so the
// plugin is loaded for it only then.
void SweepReader::make() {
  std::vector<Complaint> found;
  const bool ends_by_itself = options_.played.has_value() || command_.is_given();
  spec_ = make_spec(run_, trainable_, ends_by_itself, found);
  const bool has_no_end = std::any_of(found.begin(), found.end(),
                                      [](const Complaint& one) { return one.path == "stop"; });
  const bool is_found = !plugin_.empty() || (python_ && complaints_.empty());
  const TrainableInfo* info = has_no_end && is_found ? trainable_info() : nullptr;
  if (info != nullptr && info->is_function) {
    found.clear();
    spec_ = make_spec(run_, trainable_, true, found);
  }
  add_new(std::move(found));
}

// Leaves out consequences of a mistake that is reported already.
void SweepReader::add_new(std::vector<Complaint> found) {
  const std::vector<Complaint> told = complaints_;
  for (Complaint& complaint : found) {
    const auto follows = [&](const Complaint& earlier) {
      return may_follow(complaint.path, earlier.path);
    };
    if (std::none_of(told.begin(), told.end(), follows))
      complaints_.push_back(std::move(complaint));
  }
}

void SweepReader::check_node() {
  const std::vector<const char*> counted = {"resources_per_trial", "cpus", "gpus"};
  for (const Complaint& complaint : complaints_) {
    for (const char* key : counted) {
      if (is_or_is_below(complaint.path, key)) return;
    }
  }
  *options_.node = discover_node({spec_.options.cpus, spec_.options.gpus});
  if (takes_machines(spec_.options)) return;  // another one may join
  const std::string never = why_never_on(*options_.node, spec_.request);
  if (!never.empty()) complain("resources_per_trial", never);
}

void SweepReader::check_trainable() {
  const bool is_named =
      !plugin_.empty() || (python_ && !told_of("python") && !told_of("interpreter"));
  if (!is_named || trainable_.empty()) return;
  auto found = complaints_about(probe(), wanted_trainable(run_, trainable_, plugin_));
  take_keys_of_python(found);
  add_new(std::move(found));
}

void SweepReader::note_places() {
  std::vector<Complaint> keys;
  for (const char* key : {"plugin", "trainable", "python", "preload", "command", "report",
                          "restart", "checkpoint/frequency", "scheduler", "pool", "warm_start"}) {
    keys.push_back({.path = key});
  }
  place_complaints(options_.overrides, tree_.lines, keys);
  const auto is_command = [](const Complaint& key) { return key.path == "command"; };
  const int command = std::ranges::find_if(keys, is_command)->line;
  for (Complaint& key : keys) {
    // A default belongs to the command that it is for.
    const bool is_of_command = key.path == "report" || key.path == "restart";
    if (is_of_command && key.line == 0 && key.option.empty()) key.line = command;
    spec_.places[key.path] = place_of(file_.string(), key);
  }
}

const ZygoteReady& SweepReader::probe() {
  if (!probe_)
    probe_ =
        python_ ? probe_program(zygote_command(*python_), python_->target) : probe_plugin(plugin_);
  return *probe_;
}

const TrainableInfo* SweepReader::trainable_info() {
  for (const TrainableInfo& info : probe().trainables) {
    if (info.name == trainable_) return &info;
  }
  return nullptr;
}

void SweepReader::throw_if_wrong() {
  if (complaints_.empty()) return;
  place_complaints(options_.overrides, tree_.lines, complaints_);
  throw_complaints(file_.string(), complaints_);
}

}  // namespace

ExperimentSpec spec_from_yaml_file(const fs::path& file, SweepOptions options) {
  return SweepReader(file, std::move(options)).read();
}

}  // namespace tune
