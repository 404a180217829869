#include "tune/cli/cli_orders.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/value.h"
#include "tune/results/ask_driver.h"
#include "tune/spec/yaml_tree.h"

namespace tune {

namespace {

// One request and its subject.
struct Asked {
  std::string about;  // a trial as the user names it, or empty
  Value request;
};

Value request_of(const OrderArguments& arguments) {
  Value request{{"do", arguments.what}, {"user", user_name()}};
  if (!arguments.reason.empty()) request.set("reason", arguments.reason);
  return request;
}

// Keys may be key paths: {model/layers: 2}.
Value config_of(const std::string& text) {
  YamlRules rules;
  rules.keys_are_paths = [](std::string_view) { return true; };
  std::vector<Complaint> complaints;
  YamlTree tree = parse_yaml(text, "", rules, complaints);
  if (!complaints.empty()) {
    throw Error(ErrorCode::kBadInput,
                complaint_lines("adding a configuration", std::move(complaints)));
  }
  return std::move(tree.value);
}

std::vector<Asked> requests_of(const OrderArguments& arguments) {
  std::vector<Asked> all;
  for (const std::string& trial : arguments.trials) {
    Asked one{trial, request_of(arguments)};
    one.request.set("trial", trial);
    if (arguments.what == "note") one.request.set("text", arguments.text);
    all.push_back(std::move(one));
  }
  for (const std::string& text : arguments.configs) {
    Asked one{"", request_of(arguments)};
    one.request.set("config", config_of(text));
    all.push_back(std::move(one));
  }
  if (arguments.what == "change") {
    Asked one{"", request_of(arguments)};
    one.request.set("num_samples", arguments.num_samples);
    all.push_back(std::move(one));
  }
  return all;
}

void print_answer(const OrderArguments& arguments, const Asked& asked, const char* key,
                  const std::string& text) {
  if (arguments.json) {
    Value line{{"do", arguments.what}};
    if (!asked.about.empty()) line.set("trial", asked.about);
    line.set(key, text);
    fmt::print("{}\n", to_json(line));
  } else if (std::string_view(key) == "done") {
    fmt::print("{}\n", text);
  } else {
    fmt::print(stderr, "error: {}\n", text);
  }
}

}  // namespace

int order_command(const OrderArguments& arguments) {
  int code = 0;
  for (const Asked& asked : requests_of(arguments)) {
    try {
      print_answer(arguments, asked, "done", ask_driver(arguments.directory, asked.request));
    } catch (const Error& error) {
      print_answer(arguments, asked, "error", error.what());
      code = std::max(code, exit_code(error.code()));
    }
  }
  return code;
}

namespace {

using Arguments = std::shared_ptr<OrderArguments>;

struct OrderCommand {
  CLI::App* app = nullptr;
  Arguments arguments = std::make_shared<OrderArguments>();
};

OrderCommand add_order(CLI::App& app, const char* name, const char* what, const char* example) {
  OrderCommand command{app.add_subcommand(name, what)};
  command.app->footer(fmt::format("Example:\n  {}", example));
  command.arguments->what = name;
  command.app
      ->add_option("DIR", command.arguments->directory,
                   "folder of the experiment, as in results/latest")
      ->required();
  return command;
}

void choose_order(const OrderCommand& command, std::function<int()>& chosen) {
  command.app->add_flag("--json", command.arguments->json, "one JSON object an answer");
  command.app->callback([&chosen, arguments = command.arguments] {
    chosen = [arguments] { return order_command(*arguments); };
  });
}

void add_reason(const OrderCommand& command) {
  command.app
      ->add_option("--reason", command.arguments->reason, "kept beside the order, for all to read")
      ->type_name("TEXT");
}

void add_order_of_trials(CLI::App& app, std::function<int()>& chosen, const char* name,
                         const char* what, const char* example) {
  const OrderCommand command = add_order(app, name, what, example);
  command.app->add_option("TRIAL", command.arguments->trials, "ids, numbers or the ends of ids")
      ->required();
  add_reason(command);
  choose_order(command, chosen);
}

void add_note(CLI::App& app, std::function<int()>& chosen) {
  const OrderCommand command =
      add_order(app, "note", "keeps a note about a trial of a running sweep",
                "tune note results/latest 3 'diverged after the second warm-up'");
  command.app
      ->add_option_function<std::string>(
          "TRIAL",
          [arguments = command.arguments](const std::string& trial) {
            arguments->trials = {trial};
          },
          "its id, its number or the end of its id")
      ->required();
  command.app->add_option("TEXT", command.arguments->text, "the note")->required();
  choose_order(command, chosen);
}

void add_addition(CLI::App& app, std::function<int()>& chosen) {
  const OrderCommand command =
      add_order(app, "add", "gives a running sweep a configuration to try next",
                "tune add results/latest '{lr: 0.01, model: {layers: 2}}'");
  command.app
      ->add_option("CONFIG", command.arguments->configs,
                   "YAML or JSON of a configuration; what it leaves out is drawn")
      ->required();
  add_reason(command);
  choose_order(command, chosen);
}

void add_change(CLI::App& app, std::function<int()>& chosen) {
  const OrderCommand command = add_order(app, "change", "changes num_samples of a running sweep",
                                         "tune change results/latest --num-samples 200");
  command.app
      ->add_option("--num-samples", command.arguments->num_samples,
                   "sample the search space so often in all")
      ->type_name("N")
      ->required();
  add_reason(command);
  choose_order(command, chosen);
}

void add_list(CLI::App& app, std::function<int()>& chosen) {
  CLI::App* command = app.add_subcommand("ls", "the experiments of a storage, the newest last");
  command->footer("Example:\n  tune ls results");
  const auto arguments = std::make_shared<ListArguments>();
  command->add_option("STORAGE", arguments->storage, "folder of experiments (results)");
  command->add_flag("--json", arguments->json, "one JSON object an experiment");
  command->callback(
      [&chosen, arguments] { chosen = [arguments] { return list_command(*arguments); }; });
}

}  // namespace

void add_orders(CLI::App& app, std::function<int()>& chosen) {
  add_list(app, chosen);
  add_order_of_trials(app, chosen, "stop", "ends trials of a running sweep; they are saved",
                      "tune stop results/latest 3 5 --reason 'diverged'");
  add_order_of_trials(app, chosen, "pause",
                      "saves trials of a running sweep and keeps them back until unpause",
                      "tune pause results/latest 3");
  add_order_of_trials(app, chosen, "unpause", "lets trials that were paused go on",
                      "tune unpause results/latest 3");
  add_order_of_trials(app, chosen, "retry",
                      "lets trials of a running sweep that failed or were stopped go on",
                      "tune retry results/latest 3");
  add_addition(app, chosen);
  add_note(app, chosen);
  add_change(app, chosen);
}

}  // namespace tune
