// EngineWords: an engine as the command lines that start, list and stop its allocations, and how
// their output is read. Pure: tune/drive/pool.h runs them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/drive/pool_machine.h"
#include "tune/spec/pool_options.h"
#include "tune/spec/pool_words.h"

namespace tune {

// The form in which a list is printed.
enum class ListForm : std::uint8_t {
  kLines,       // NAME|ID|STATE|REASON|HOST a line; all after NAME may be missing
  kHtcondor,    // "NAME, ID, STATE, SLOT@HOST, REASON" a line
  kPbs,         // qstat -f: "Job Id: 7.server", then "    Job_Name = ..." and so on
  kGridEngine,  // qstat -r: a line each with the id and the state, below it "Full jobname: ..."
  kProcesses,   // pgrep -fa: "PID COMMAND ... NAME ..."
  kKubernetes,  // kubectl get: a line each for Jobs and their pods
};
enum class IdForm : std::uint8_t {
  kLastWord,  // the last word of the last line that start prints, up to a ';'
  kNumber,    // the first whole number in it
  kNone,      // start prints none: the list has it
};

struct EngineWords {
  // With placeholders (tune/spec/pool_words.h).
  std::vector<std::string> check;  // before all, refuses what could never start; empty: none
  std::vector<std::string> start;
  std::vector<std::string> list;
  std::vector<std::string> stop;
  ListForm list_form = ListForm::kLines;
  IdForm id_form = IdForm::kLastWord;
  // The text of ${exclude} for these hosts; none: the engine cannot be told to leave a host out.
  std::function<std::string(const std::vector<std::string>& hosts)> exclusion = {};
  bool list_by_host = false;          // the list is asked for on each host, by ${host}
  std::vector<std::string> hosts;     // one allocation on each; empty: the engine chooses
  std::string environment_note = {};  // for people, at the start; empty: none
  // Of engines whose nodes do not see the experiment's folder. Run when the driver listens, and
  // whenever the join file has changed; empty: none.
  std::vector<std::string> prepare = {};
  // Prints the last words of an allocation, and keeps all in ${log}; empty: they are there.
  std::vector<std::string> last_words = {};
  std::vector<std::string> finish = {};  // run after the last allocation; empty: none
  bool finish_by_host = false;           // on each host where one was, by ${host}
  // The file kInputFile of `check` and `start`; none: they read nothing.
  std::function<std::string(const PoolValues&)> manifest = {};
  std::vector<std::string> show = {};  // prints that file as it goes to the engine; empty: as it is
};

// A command's word for the file that it is to read (tune/drive/engine_calls.h).
inline constexpr const char* kInputFile = "/dev/stdin";

// The second argument of an agent's script in a step that has all that its job has of the node.
inline constexpr const char* kWholeNode = "whole";

// The facts that an engine's words depend on, beside the options.
struct EnginePlace {
  NodeResources node;                  // of an agent; CPUs in units
  std::string user;                    // its login name
  std::string job;                     // of Slurm, when this runs in one; empty: it does not
  std::vector<std::string> job_hosts;  // of that job
  int driver_port = 0;                 // where the driver listens, for a tunnel
  int tunnel_port = 0;                 // where agents find it then, on their own machine
  int relay_port = 0;                  // where it takes their checkpoints
  std::string script = {};             // that starts an agent, for nodes that do not see its file
};
EngineWords engine_words(const PoolOptions& pool, const EnginePlace& place);
// The words for a program that lives as long as its agent. What it says of itself stands where its
// agent's output does: nobody waits for its end.
std::vector<std::string> started_apart(const std::vector<std::string>& program);

// The id in what start has printed; empty: there is none.
std::string id_of(IdForm form, std::string_view output);
// The allocations in a list whose names begin with the prefix; other lines are of others.
std::vector<ListedAllocation> listed_in(ListForm form, std::string_view output,
                                        std::string_view prefix);

// PENDING, Q, idle ... of any engine. Nothing: an unknown word. In a list it stands for an
// allocation that is there and waits, and is told to the user.
std::optional<AllocationState> state_of_word(std::string_view word);

// The port that agents find one of the driver's at through a tunnel.
int tunnel_port_of(int driver_port);

}  // namespace tune
