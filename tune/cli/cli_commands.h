// The commands of the `tune` program, given their parsed arguments. All return an exit code and
// throw Error. Used by cli.cc and its tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tune {

// The things to do when the run is over, beside what a sweep says.
struct EndArguments {
  std::string program;
  std::string webhook;
  bool bell = false;
};

struct RunArguments {
  std::string sweep;
  // Shorthands as (path, option as written, value): {"seed", "--seed", "7"}.
  struct Shorthand {
    std::string path;
    std::string option;
    std::string value;
  };
  std::vector<Shorthand> shorthands;
  std::vector<std::string> sets;
  std::vector<std::string> warm_start;  // folders; none: those of the sweep
  bool fresh = false;
  bool quiet = false;
  bool wait_gpus = false;
  bool dry = false;  // run nothing, print the first command lines
  bool detach = false;
  std::string keys;  // a file with the keys by which machines join; empty: the experiment's own
  EndArguments on_end = {};
};
int run_command(const RunArguments& arguments);

struct ValidateArguments {
  std::string sweep;
  std::vector<std::string> sets;
  std::optional<std::uint64_t> configs;  // print so many configurations
  bool pool = false;                     // print what its engine would be given
};
int validate_command(const ValidateArguments& arguments);

// Prints a sweep of another tool as a sweep of tune.
int import_command(const std::string& file);

struct ViewArguments {
  std::string directory = "results";
  std::optional<std::uint16_t> port;
  std::string port_file;
  std::string address;      // empty: loopback
  std::string certificate;  // of TLS; empty, as is the key: none
  std::string key;
  bool control = false;  // the page may change sweeps that run
};
// Returns only by an Error: this process becomes the server.
int view_command(const ViewArguments& arguments);

struct SimulateArguments {
  std::vector<std::string> sweeps;
  std::vector<std::string> sets;
  std::string tasks;               // a folder of task files, or
  std::string from;                // an experiment's folder
  std::vector<std::string> names;  // of tasks, or of folders of them; empty: all
  std::string metric;              // of sweeps that name none; empty: the task's first with a mode
  std::uint32_t workers = 4;
  double start_cost = 0;  // of a launch, in steps
  double trainings = 0;  // time budget, in median trainings of all workers together; 0: the sweep's
  std::uint32_t seeds = 1;
  std::string references;  // a JSON file with those of some tasks; empty: all are found
  bool json = false;
};
int simulate_command(const SimulateArguments& arguments);

struct ResumeArguments {
  std::string directory;
  std::optional<std::int64_t> num_samples;  // more than before, or -1 for no end
  std::optional<double> time_budget_s;      // more than before, or 0 for no end
  bool errored = false;
  bool quiet = false;
  bool wait_gpus = false;
  std::string listen;  // where the driver is to be found from now on; empty: where it was
  bool detach = false;
  EndArguments on_end = {};
};
int resume_command(const ResumeArguments& arguments);

int status_command(const std::string& directory);

struct ResultsArguments {
  std::string directory;
  std::string csv;  // a file, "-" for stdout; empty: not asked for
  bool json = false;
};
int results_command(const ResultsArguments& arguments);

struct BestArguments {
  std::string directory;
  std::string metric;  // this and the next: empty for the experiment's
  std::string mode;
  std::string scope = "last";
  bool json = false;
  bool checkpoint = false;
};
int best_command(const BestArguments& arguments);

struct ScheduleArguments {
  std::string directory;
  std::string trial;
  bool json = false;
};
int schedule_command(const ScheduleArguments& arguments);

struct LogsArguments {
  std::string directory;
  std::string trial;
  bool follow = false;
  bool errors = false;  // stderr instead of stdout
  std::uint32_t rank = 0;
};
int logs_command(const LogsArguments& arguments);

struct LaunchArguments {
  std::string ranks = "1";  // of each node; "gpu": one a GPU of this node
  int nodes = 1;
  int node = 0;
  std::string master_address = {};   // empty: 127.0.0.1, on one node only
  int master_port = 29500;           // 0: one that is free, on one node only
  bool local_rank_argument = false;  // --local-rank=N is added to the program's arguments
  std::vector<std::string> program;
};
// The exit code is that of the first rank that failed, 128 + n when signal n ended it, or ended
// this; 0 when all ranks ended with 0.
int launch_command(const LaunchArguments& arguments);

// The driver of a tune.run in a Python process, which starts it with the order on a descriptor
// (trainables/python/tune/_driver.py). Not for people.
int python_run_command(int order_descriptor);

// The trial folder of an experiment that `trial` means: its id, its number or the end of its id.
// Throws Error (kBadInput) naming the trials there are.
std::filesystem::path find_trial(const std::filesystem::path& directory, const std::string& trial);

}  // namespace tune
