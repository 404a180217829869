#include "tune/options_from_args.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "core/error.h"
#include "tune/spec/options_value.h"
#include "tune/spec/overrides.h"

namespace tune {

namespace {

struct Arguments {
  std::vector<std::string> sets;
  std::vector<std::string> warm_start;
  std::vector<Override> overrides;  // of the other options that have a value
  std::vector<Complaint> complaints;
  bool resume = false;
  bool fresh = false;
  bool quiet = false;
  bool wait_gpus = false;
};

void describe(CLI::App& app, const std::string& program, Arguments& arguments) {
  const auto shorthand = [&](const char* option, const char* path, const char* type,
                             const char* what) {
    const auto parse = [&arguments, option, path](const std::string& value) {
      parse_shorthand(option, path, value, arguments.overrides, arguments.complaints);
    };
    app.add_option_function<std::string>(option, parse, what)->type_name(type);
  };
  shorthand("--name", "name", "N", "name of the experiment, a folder below the storage");
  shorthand("--storage", "storage", "DIR",
            "folder for results; s3://BUCKET/PREFIX: of the checkpoints");
  shorthand("--num-samples", "num_samples", "N", "how often the search space is sampled");
  shorthand("--cpus", "cpus", "N", "CPUs to use instead of all");
  shorthand("--gpus", "gpus", "N", "GPUs to use instead of all");
  shorthand("--seed", "seed", "N", "makes the configurations repeatable");
  app.add_option("--set", arguments.sets, "changes one option; may be given several times")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--warm-start", arguments.warm_start,
                 "folder of an earlier experiment to learn from; may be given several times")
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--resume", arguments.resume, "go on with the experiment of that name");
  app.add_flag("--fresh", arguments.fresh, "move an experiment of that name aside and begin anew")
      ->excludes("--resume");
  app.add_flag("--quiet", arguments.quiet, "no table");
  app.add_flag("--wait-gpus", arguments.wait_gpus,
               "wait for GPUs that other sweeps of this user have");
  app.footer(
      fmt::format("Example:\n  {} --name first --num-samples 8 --set config/lr=0.1 "
                  "--set scheduler/asha/max_t=9",
                  program));
}

// One override for a search space: a constant, or a domain as YAML writes it.
void override_space(const Override& override, SearchSpace& space,
                    std::vector<Complaint>& complaints) {
  const auto complain = [&](std::string path, std::string message) {
    complaints.push_back(
        {.path = std::move(path), .message = std::move(message), .option = override.option});
  };
  std::vector<SpaceComplaint> wrong;
  const SearchSpace node = search_node_from_value(override.value, override.path, wrong);
  for (const SpaceComplaint& one : wrong) complain(one.path, one.message);
  if (!wrong.empty()) return;
  try {
    space.set(override.path.substr(override.path.find('/') + 1), node);
  } catch (const Error& error) {
    complain(override.path, error.what());
  }
}

// Changes only the options that the overrides name: an option without a text form stays.
void apply(const std::vector<Override>& overrides, RunOptions& options,
           std::vector<Complaint>& complaints) {
  YamlTree tree;
  tree.value = options_to_value(options);
  apply_overrides(overrides, tree, complaints);
  Value changed = Value::make_map();
  for (const Override& override : overrides) {
    const std::string key = override.path.substr(0, override.path.find('/'));
    const auto told = [&](const Complaint& one) { return one.option == override.option; };
    if (key == "config" && key != override.path) {
      if (std::any_of(complaints.begin(), complaints.end(), told)) continue;
      override_space(override, options.config, complaints);
    } else if (const Value* value = tree.value.find(key)) {
      changed.set(key, *value);
    }
  }
  OptionReader reader(changed, "", complaints);
  read_options(reader, options);
  reader.finish();
}

// Given values that can be read but are out of range. The run itself checks the program's own
// values.
void check_given_values(const std::vector<Override>& overrides, const RunOptions& options,
                        std::vector<Complaint>& complaints) {
  std::vector<Complaint> found;
  check_values(options, found);
  place_complaints(overrides, {}, found);
  for (Complaint& complaint : found) {
    const bool told = std::any_of(complaints.begin(), complaints.end(),
                                  [&](const Complaint& one) { return one.path == complaint.path; });
    if (!complaint.option.empty() && !told) complaints.push_back(std::move(complaint));
  }
}

}  // namespace

RunOptions parse_options(int argc, const char* const* argv, RunOptions defaults) {
  const std::string program =
      argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "program";
  Arguments arguments;
  CLI::App app("Searches for the best configuration.", program);
  describe(app, program, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw HelpRequested{app.help()};
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kBadInput, fmt::format("{}; see {} --help", error.what(), program));
  }
  std::vector<Override> overrides;
  std::vector<Complaint> complaints = std::move(arguments.complaints);
  for (const std::string& set : arguments.sets) parse_set(set, overrides, complaints);
  std::move(arguments.overrides.begin(), arguments.overrides.end(), std::back_inserter(overrides));
  if (!arguments.warm_start.empty()) {
    overrides.push_back({"--warm-start", "warm_start", Value(arguments.warm_start)});
  }
  apply(overrides, defaults, complaints);
  place_complaints(overrides, {}, complaints);
  check_given_values(overrides, defaults, complaints);
  if (!complaints.empty()) throw_complaints("", complaints);
  if (arguments.resume) defaults.if_exists = IfExists::kResume;
  if (arguments.fresh) defaults.if_exists = IfExists::kFresh;
  if (arguments.quiet) defaults.quiet = true;
  if (arguments.wait_gpus) defaults.wait_gpus = true;
  return defaults;
}

RunOptions options_from_args(int argc, char** argv, RunOptions defaults) {
  int code = 0;
  try {
    return parse_options(argc, argv, std::move(defaults));
  } catch (const HelpRequested& help) {
    std::fputs(help.text.c_str(), stdout);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    code = exit_code(error.code());
  }
  std::exit(code);
}

}  // namespace tune
