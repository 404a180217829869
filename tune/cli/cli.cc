#include "tune/cli/cli.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "core/build.h"
#include "core/error.h"
#include "core/platform/side_output.h"
#include "core/strings.h"
#include "tune/cli/cli_commands.h"
#include "tune/cli/cli_export.h"
#include "tune/cli/cli_insight.h"
#include "tune/cli/cli_join.h"
#include "tune/cli/cli_orders.h"
#include "tune/cli/cli_pages.h"
#include "tune/cli/cli_pool.h"
#include "tune/cli/cli_view_terminal.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

constexpr const char* kDetach = "go on without this terminal once trials can begin";
constexpr const char* kWaitGpus = "wait for GPUs that other sweeps of this user have";

// All arguments and what the chosen command will do with them.
struct CommandLine {
  RunArguments run;
  ValidateArguments validate;
  SimulateArguments simulate;
  ResumeArguments resume;
  ResultsArguments results;
  BestArguments best;
  ScheduleArguments schedule;
  LogsArguments logs;
  LaunchArguments launch;
  AgentArguments agent;
  TokenArguments token;
  DrainArguments drain;
  PoolArguments pool;
  std::string nodes_directory;
  ViewArguments view;
  bool view_is_text = false;
  std::string status_directory;
  int python_order = -1;
  std::string imported;
  std::function<int()> chosen;
};

CLI::App* add_command(CLI::App& app, const char* name, const char* what, const char* example) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer(fmt::format("Example:\n  {}", example));
  return command;
}

void add_directory(CLI::App* command, std::string& target) {
  command->add_option("DIR", target, "folder of the experiment, as in results/latest")->required();
}

void add_sets(CLI::App* command, std::vector<std::string>& sets) {
  command->add_option("--set", sets, "changes one key of the sweep; may be given several times")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_sweep(CLI::App* command, std::string& sweep, std::vector<std::string>& sets) {
  command->add_option("SWEEP", sweep, "the sweep, a YAML file")->required();
  add_sets(command, sets);
}

void add_on_end(CLI::App* command, EndArguments& on_end) {
  command
      ->add_option("--on-end", on_end.program,
                   "program to run when the run is over; it is told by TUNE_STATUS and others")
      ->type_name("PROGRAM");
  command->add_option("--webhook", on_end.webhook, "address that gets a POST of JSON then")
      ->type_name("URL");
  command->add_flag("--bell", on_end.bell, "ring then, with a note where the terminal has that");
}

void add_run(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(
      app, "run", "runs a sweep; the best configuration is the last line of its output",
      "tune run sweep.yaml --num-samples 8 --set config/lr=0.1 --set scheduler/asha/max_t=9");
  add_sweep(command, line.run.sweep, line.run.sets);
  const auto shorthand = [&](const char* option, const char* path, const char* type,
                             const char* what) {
    const auto keep = [&line, option, path](const std::string& value) {
      line.run.shorthands.push_back({path, option, value});
    };
    command->add_option_function<std::string>(option, keep, what)->type_name(type);
  };
  shorthand("--name", "name", "N", "name of the experiment, a folder below the storage");
  shorthand("--storage", "storage", "DIR",
            "folder for results; s3://BUCKET/PREFIX: of the checkpoints");
  shorthand("--num-samples", "num_samples", "N", "how often the search space is sampled");
  shorthand("--cpus", "cpus", "N", "CPUs to use instead of all");
  shorthand("--gpus", "gpus", "N", "GPUs to use instead of all");
  shorthand("--seed", "seed", "N", "makes the configurations repeatable");
  shorthand("--listen", "listen", "ADDRESS[:PORT]",
            "let other machines join there, by a token that is printed");
  shorthand("--store", "store", "URL", "a Redis server to use: redis://host:6379");
  command
      ->add_option("--warm-start", line.run.warm_start,
                   "folder of an earlier experiment to learn from; may be given several times")
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--fresh", line.run.fresh, "move an experiment of that name aside, begin anew");
  command->add_flag("--quiet", line.run.quiet, "no table, only errors and the best configuration");
  command->add_flag("--wait-gpus", line.run.wait_gpus, kWaitGpus);
  command->add_flag("--detach", line.run.detach, kDetach);
  command
      ->add_option("--keys", line.run.keys,
                   "file with the keys by which machines join, of several experiments")
      ->type_name("FILE");
  add_on_end(command, line.run.on_end);
  command->add_flag("--dry", line.run.dry,
                    "run nothing, print the first trials' command lines (or configurations)");
  command->callback([&line] { line.chosen = [&line] { return run_command(line.run); }; });
}

void add_validate(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(app, "validate", "tells every mistake of a sweep, runs nothing",
                                  "tune validate sweep.yaml --configs 3");
  add_sweep(command, line.validate.sweep, line.validate.sets);
  command
      ->add_option("--configs", line.validate.configs,
                   "print the first configurations, one JSON object a line")
      ->type_name("N");
  command->add_flag("--pool", line.validate.pool,
                    "ask the pool's engine, and print the commands and the script of an agent");
  command->callback([&line] { line.chosen = [&line] { return validate_command(line.validate); }; });
}

void add_import(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "import", "a sweep of W&B, Determined, NNI or Katib as one of tune",
                  "tune import wandb.yaml > sweep.yaml");
  command->add_option("FILE", line.imported, "the other tool's file")->required();
  command->callback([&line] { line.chosen = [&line] { return import_command(line.imported); }; });
}

void add_simulate(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(
      app, "simulate", "plays sweeps on surrogates or recorded trials, in virtual time",
      "tune simulate asha.yaml median.yaml --from results/latest --workers 8 --seeds 5");
  SimulateArguments& simulate = line.simulate;
  command->add_option("SWEEP", simulate.sweeps, "sweeps to compare, YAML files")->required();
  add_sets(command, simulate.sets);
  CLI::Option* tasks =
      command->add_option("--tasks", simulate.tasks, "folder with surrogates and curve tables")
          ->type_name("DIR");
  command->add_option("--from", simulate.from, "folder of an earlier experiment")
      ->type_name("RESULTS")
      ->excludes(tasks);
  command->add_option("--task", simulate.names, "only this task, or those of this folder")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--metric", simulate.metric, "metric of sweeps that name none")
      ->type_name("NAME");
  command->add_option("--workers", simulate.workers, "trials that run at once (4)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--start-cost", simulate.start_cost, "steps that each launch costs (0)")
      ->type_name("STEPS")
      ->check(CLI::Range(0.0, 1e6));
  command
      ->add_option("--trainings", simulate.trainings,
                   "time budget: so many median trainings, over all workers")
      ->type_name("N")
      ->check(CLI::Range(0.0, 1e9));
  command->add_option("--seeds", simulate.seeds, "runs with so many seeds, from the sweep's on (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--references", simulate.references,
                   "JSON file with optimum, median and training_s of tasks, to measure regret by")
      ->type_name("FILE");
  command->add_flag("--json", simulate.json, "one JSON object a run");
  command->callback([&line] { line.chosen = [&line] { return simulate_command(line.simulate); }; });
}

void add_resume(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "resume", "goes on where a killed or interrupted sweep stood",
                  "tune resume results/latest --errored");
  add_directory(command, line.resume.directory);
  command->add_flag("--errored", line.resume.errored, "try failed trials again");
  command
      ->add_option("--num-samples", line.resume.num_samples,
                   "sample the search space so often in all, more often than before")
      ->type_name("N");
  command
      ->add_option("--time-budget-s", line.resume.time_budget_s,
                   "seconds of running in all, more than before; 0: no end")
      ->type_name("N");
  command->add_flag("--quiet", line.resume.quiet,
                    "no table, only errors and the best configuration");
  command->add_flag("--wait-gpus", line.resume.wait_gpus, kWaitGpus);
  command
      ->add_option("--listen", line.resume.listen,
                   "let machines join there from now on, as on a host with another address")
      ->type_name("ADDRESS[:PORT]");
  command->add_flag("--detach", line.resume.detach, kDetach);
  add_on_end(command, line.resume.on_end);
  command->callback([&line] { line.chosen = [&line] { return resume_command(line.resume); }; });
}

void add_schedule(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "schedule",
                  "the configurations that a trial's model was trained with under pbt, as a sweep "
                  "that plays them again",
                  "tune schedule results/latest 3 > replay.yaml");
  add_directory(command, line.schedule.directory);
  command->add_option("TRIAL", line.schedule.trial, "its id, its number or the end of its id")
      ->required();
  command->add_flag("--json", line.schedule.json, "one JSON object a configuration");
  command->callback([&line] { line.chosen = [&line] { return schedule_command(line.schedule); }; });
}

void add_readers(CLI::App& app, CommandLine& line) {
  CLI::App* status =
      add_command(app, "status", "the table of a sweep, live while it runs elsewhere",
                  "tune status results/latest");
  add_directory(status, line.status_directory);
  status->callback(
      [&line] { line.chosen = [&line] { return status_command(line.status_directory); }; });

  CLI::App* results =
      add_command(app, "results", "one row a trial", "tune results results/latest --csv - | sort");
  add_directory(results, line.results.directory);
  CLI::Option* csv = results->add_option("--csv", line.results.csv, "write a CSV file; - is stdout")
                         ->type_name("FILE");
  results->add_flag("--json", line.results.json, "one JSON object a line")->excludes(csv);
  results->callback([&line] { line.chosen = [&line] { return results_command(line.results); }; });

  CLI::App* best = add_command(app, "best", "the best configuration and its result",
                               "tune best results/latest --checkpoint");
  add_directory(best, line.best.directory);
  best->add_option("--metric", line.best.metric, "instead of the experiment's")->type_name("M");
  best->add_option("--mode", line.best.mode, "max or min (the experiment's)")
      ->check(CLI::IsMember({"max", "min"}));
  best->add_option("--scope", line.best.scope,
                   "which of its values stands for a trial: last, all (the best of them), avg, "
                   "last-5-avg or last-10-avg (last)")
      ->check(CLI::IsMember({"last", "all", "avg", "last-5-avg", "last-10-avg"}));
  CLI::Option* json = best->add_flag("--json", line.best.json,
                                     "as one JSON object; with several objectives one a line");
  best->add_flag("--checkpoint", line.best.checkpoint, "only the folder of its checkpoint")
      ->excludes(json);
  best->callback([&line] { line.chosen = [&line] { return best_command(line.best); }; });
  add_schedule(app, line);
}

void add_logs(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "logs", "what a trial printed", "tune logs results/latest 3 -f");
  add_directory(command, line.logs.directory);
  command->add_option("TRIAL", line.logs.trial, "its id, its number or the end of its id")
      ->required();
  command->add_flag("-f,--follow", line.logs.follow, "go on until the experiment is over");
  command->add_flag("--stderr", line.logs.errors, "what it printed on stderr instead of stdout");
  command->add_option("--rank", line.logs.rank, "of this rank, from 0 (0)")->type_name("R");
  command->callback([&line] { line.chosen = [&line] { return logs_command(line.logs); }; });
}

void add_view(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(
      app, "view", "a page in the browser: history, search, rungs, trials", "tune view results");
  ViewArguments& view = line.view;
  command->add_option("DIR", view.directory,
                      "an experiment's folder, or the storage of several (results)");
  command->add_option("--port", view.port, "port to listen on; 0 takes a free one (8311)")
      ->type_name("N");
  command->add_option("--port-file", view.port_file, "write the page's address into this file")
      ->type_name("F");
  command
      ->add_option("--address", view.address,
                   "address to listen on (127.0.0.1); others than loopback's need TLS")
      ->type_name("A");
  command
      ->add_option("--certificate", view.certificate,
                   "certificate of TLS with those that vouch for it, PEM")
      ->type_name("F");
  command->add_option("--key", view.key, "the certificate's key, PEM")->type_name("F");
  command->add_flag("--control", view.control, "let the page change sweeps that run");
  command->add_flag("--terminal", line.view_is_text,
                    "history and curves as text instead, of one experiment");
  command->callback([&line] {
    line.chosen = [&line] {
      return line.view_is_text ? view_in_terminal(line.view.directory) : view_command(line.view);
    };
  });
}

// Names what follows the options: it is not an option of ours.
class UsageWithProgram : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = Formatter::make_usage(app, std::move(name));
    while (usage.ends_with('\n')) usage.pop_back();
    return usage + " PROGRAM [ARGS...]\n";
  }
};

void add_launch(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "launch", "starts the ranks of any program, as torchrun does",
                  "tune launch --nproc-per-node 2 build/train --epochs 3");
  command->formatter(std::make_shared<UsageWithProgram>());
  command->option_defaults()->always_capture_default();
  LaunchArguments& launch = line.launch;
  command->add_option("--nproc-per-node,--nproc_per_node", launch.ranks, "ranks on this node")
      ->type_name("N|gpu");
  command->add_option("--nnodes", launch.nodes, "nodes; the command is to be given on each")
      ->type_name("N");
  command->add_option("--node-rank,--node_rank", launch.node, "number of this node, from 0")
      ->type_name("N");
  command
      ->add_option(
          "--master-addr,--master_addr", launch.master_address,
          "address of node 0, where rank 0 listens; to be given with --nnodes, else 127.0.0.1")
      ->type_name("ADDRESS");
  command
      ->add_option("--master-port,--master_port", launch.master_port,
                   "port of rank 0; 0 takes a free one")
      ->type_name("PORT");
  command->add_flag("--local-rank-arg,--local_rank_arg", launch.local_rank_argument,
                    "gives the program --local-rank=N as its last argument");
  command->prefix_command();  // what follows the program is the program's
  command->callback([command, &line] {
    line.launch.program = command->remaining();
    line.chosen = [&line] { return launch_command(line.launch); };
  });
}

// Started by the Python package, and in no help.
void add_python_run(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("python-run")->group("");
  command->add_option("--order-fd", line.python_order)->required();
  command->callback(
      [&line] { line.chosen = [&line] { return python_run_command(line.python_order); }; });
}

void add_agent(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(app, "agent", "joins a sweep that runs on another machine",
                                  "TUNE_JOIN=tune1.... tune agent --idle 10m");
  AgentArguments& agent = line.agent;
  command
      ->add_option("--join-file", agent.join_file,
                   "file with the token, which nobody else may read; else it stands in TUNE_JOIN")
      ->type_name("FILE");
  command->add_option("--name", agent.name, "name of the allocation, given by a pool's engine")
      ->type_name("NAME");
  command->add_option("--cpus", agent.cpus, "CPUs to offer instead of all")->type_name("N");
  command->add_option("--gpus", agent.gpus, "GPUs to offer instead of all")->type_name("N");
  command->add_option("--idle", agent.idle, "leave after so long without a trial")
      ->type_name("TIME");
  command
      ->add_option("--until", agent.until,
                   "have left by then: 4h, 18:30 or 2026-11-22T18:30; trials go on elsewhere")
      ->type_name("TIME");
  command->add_option("--drain", agent.drain, "begin to leave so long before --until (2m)")
      ->type_name("TIME");
  command->add_flag("--wait-gpus", agent.wait_gpus, kWaitGpus);
  command->add_flag("--stay", agent.stay, "wait for the next experiment with these keys");
  command->callback([&line] { line.chosen = [&line] { return agent_command(line.agent); }; });
}

void add_machines(CLI::App& app, CommandLine& line) {
  add_agent(app, line);
  CLI::App* token = add_command(app, "token", "prints the token by which machines join a sweep",
                                "TUNE_JOIN=$(tune token results/latest) tune agent");
  token->add_option("DIR", line.token.directory, "folder of the experiment, as in results/latest");
  token->add_option("--keys", line.token.keys, "instead of DIR: the file of tune run --keys")
      ->type_name("FILE");
  token->add_flag("--rotate", line.token.rotate,
                  "make a new one; the old one is no longer good, machines that have joined stay");
  token
      ->add_option("--address", line.token.addresses,
                   "where machines reach the driver, instead of its own addresses; may be given "
                   "several times, and is tried in order")
      ->type_name("HOST:PORT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  token->callback([&line] { line.chosen = [&line] { return token_command(line.token); }; });

  CLI::App* nodes =
      add_command(app, "nodes", "the machines of a running sweep", "tune nodes results/latest");
  add_directory(nodes, line.nodes_directory);
  nodes->callback(
      [&line] { line.chosen = [&line] { return nodes_command(line.nodes_directory); }; });

  CLI::App* drain =
      add_command(app, "drain", "lets a machine leave a running sweep when its trials have saved",
                  "tune drain results/latest node-3");
  add_directory(drain, line.drain.directory);
  drain
      ->add_option("NODE", line.drain.node,
                   "its name or its allocation's, as `tune nodes` has them")
      ->required();
  drain->callback([&line] { line.chosen = [&line] { return drain_command(line.drain); }; });

  CLI::App* pool =
      add_command(app, "pool", "changes how many machines an engine starts for a sweep",
                  "tune pool results/latest --max 8");
  add_directory(pool, line.pool.directory);
  pool->add_option("--max", line.pool.max, "agents at the same time from now on")->type_name("N");
  pool->add_flag("--pause", line.pool.pause, "ask for no more; those that are there stay");
  pool->add_flag("--resume", line.pool.resume, "ask for them again");
  pool->callback([&line] { line.chosen = [&line] { return pool_command(line.pool); }; });
}

// The reason why there is no command in the arguments.
std::string why_no_command(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  if (argc < 2) return fmt::format("which command? {}", join(names, ", "));
  const std::string word = argv[1];
  if (word.starts_with('-')) return fmt::format("there is no option {}", word);
  return fmt::format("there is no command '{}'{}; commands: {}", word, did_you_mean(word, names),
                     join(names, ", "));
}

// Adds the command that is asked for, by the first argument; any other word adds all commands. To
// make all takes longer than most commands need for themselves.
void add_commands(CLI::App& app, CommandLine& line, int argc, const char* const* argv) {
  struct Adding {
    std::string_view word;  // empty: several commands, or hardly ever asked for
    void (*add)(CLI::App&, CommandLine&);
  };
  constexpr Adding kAll[] = {
      {"run", add_run},
      {"validate", add_validate},
      {"import", add_import},
      {"simulate", add_simulate},
      {"resume", add_resume},
      {"", add_readers},
      {"", [](CLI::App& to, CommandLine& all) { add_orders(to, all.chosen); }},
      {"", [](CLI::App& to, CommandLine& all) { add_insight(to, all.chosen); }},
      {"export", [](CLI::App& to, CommandLine& all) { add_export(to, all.chosen); }},
      {"logs", add_logs},
      {"view", add_view},
      {"launch", add_launch},
      {"python-run", add_python_run},
      {"", add_machines},
      {"", [](CLI::App& to, CommandLine& all) { add_pages(to, all.chosen); }},
  };
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (argc == 2 && word == "--version") return;
  const auto asked = std::ranges::find(kAll, word, &Adding::word);
  if (!word.empty() && asked != std::end(kAll)) return asked->add(app, line);
  for (const Adding& one : kAll) one.add(app, line);
}

int parse_and_run(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app("Searches for the best configuration of a training.", "tune");
  app.set_version_flag("--version", fmt::format("tune {}", build_version()));
  app.require_subcommand(1);
  app.footer(
      "Example:\n  tune run sweep.yaml\n  tune best results/latest\n"
      "Every command has --help.");
  add_commands(app, line, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const auto commands = app.get_subcommands();
    throw Error(
        ErrorCode::kBadInput,
        commands.empty()
            ? fmt::format("{}; see tune --help", why_no_command(app, argc, argv))
            : fmt::format("{}; see tune {} --help", error.what(), commands.front()->get_name()));
  }
  return line.chosen();
}

}  // namespace

int command_line(int argc, const char* const* argv) {
  const auto tell = [](const std::string& what) {
    write_or_give_up(STDERR_FILENO, fmt::format("error: {}\n", what));
  };
  try {
    const int code = parse_and_run(argc, argv);
    if (std::fflush(stdout) == 0) return code;
    tell("writing to stdout failed");
  } catch (const Error& error) {
    std::fflush(stdout);
    tell(error.what());
    return exit_code(error.code());
  } catch (const std::exception& error) {
    tell(error.what());
  }
  return 3;
}

}  // namespace tune
