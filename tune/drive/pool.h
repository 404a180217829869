// Pool: the engine of an experiment at work. It runs the engine's commands beside the loop, tells
// PoolMachine what they said, and carries out what that decides.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/platform/transport.h"
#include "tune/control/controller.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/engine_calls.h"
#include "tune/drive/engine_words.h"
#include "tune/drive/pool_machine.h"
#include "tune/spec/experiment_spec.h"
#include "tune/spec/pool_words.h"

namespace tune {

class Door;

// The engine of a sweep as it is here and now. Throws Error (kBadInput), beginning with the key
// "pool", when it could never start anything: its program is missing, it refuses the request, no
// host can be reached. Hosts that cannot are left out; `notice` says so.
struct CheckedEngine {
  EngineWords words;
  EnginePlace place;
  std::string notice = {};  // for people; empty: none
};
struct EngineCheck {
  // Its agents may hold trials: an engine that refuses or does not answer now may do so later, and
  // is told as a notice. A program that is missing is an error all the same.
  bool is_resumed = false;
  const Clock& clock = EngineCalls::system_clock();
};
CheckedEngine checked_engine(const ExperimentSpec& spec, const EngineCheck& check = {});

// Where the files of a pool are: in the experiment's folder, or in another one that nodes see.
struct PoolFiles {
  PoolFiles(const ExperimentSpec& spec, const std::filesystem::path& experiment);
  bool are_elsewhere() const { return folder != own; }
  std::filesystem::path log(const std::string& name) const { return folder / (name + ".log"); }
  std::filesystem::path own;  // in the experiment's folder
  std::filesystem::path folder;
  std::filesystem::path script;
  std::filesystem::path join_file;
};
// The script that starts an agent. Pure.
std::string agent_script(const ExperimentSpec& spec, const PoolFiles& files,
                         const std::string& program);
// tune, as the nodes find it.
std::string agent_program(const PoolOptions& pool);
// The placeholders of an experiment's engine; those of one allocation are empty.
PoolValues pool_values(const ExperimentSpec& spec, const PoolFiles& files);

class Pool {
 public:
  using Say = std::function<void(const std::string& text)>;

  // `engine`: checked_engine() of the spec.
  Pool(const ExperimentSpec& spec, const std::filesystem::path& experiment, CheckedEngine engine,
       Say say, const Clock& clock = EngineCalls::system_clock());

  // The driver listens: writes the files that agents are started with. Throws Error when the folder
  // that nodes see cannot be made.
  void open(Door& door);
  // Call it about every DriverMachine::kLookEvery when all events are in the journal.
  void look(const Controller& controller, DriverMachine& machine, DriverEndpoint& endpoint,
            std::chrono::nanoseconds now);
  // A user's order (`tune pool`), for the journal; the answer is for the user.
  std::string order(const Value& request, DriverMachine& machine) const;
  // A user's order to drain a node (`tune drain`), whose host has no other agent then; the answer
  // is for the user. Nothing: it is on no host that the pool names.
  std::optional<std::string> drain(const Value& request, const Controller& controller,
                                   DriverMachine& machine) const;
  // Not empty: nothing it started has ever worked, and no trial can begin.
  const std::string& why_given_up() const { return why_given_up_; }
  // Ends every allocation there may be, and waits for that, all in all so long. What the engine has
  // not answered by then is told by name.
  void end(const PoolBook& book, std::chrono::nanoseconds patience);

 private:
  PoolScene scene_of(const Controller& controller, const Peers& peers,
                     std::chrono::nanoseconds now) const;
  PoolValues values_of(PoolBook::Number number, const std::string& id,
                       const std::string& host) const;
  std::string name_of(PoolBook::Number number) const;
  void write_files();
  void prepare();
  void take_prepared(const std::string& why_not);
  void keep_log(const AllocationChanged& end);
  void finish(const PoolBook& book, const std::map<PoolBook::Number, std::string>& ids,
              const std::function<std::chrono::nanoseconds(int eighths)>& until);
  void tell_given_up(const std::map<PoolBook::Number, std::string>& ids);
  void take_answers();
  void take_list(const EngineAnswer& answer);
  void tell_log(const EngineAnswer& answer);
  void on(const StartAllocation& action);
  void on(const ListAllocations& action);
  void on(const StopAllocation& action);
  void on(const DrainNode& action);
  void on(const TakeForGone& action);
  void on(const ShowLog& action);
  void on(const PoolNotice& action) { say_(action.text); }
  void on(const PoolGivesUp& action) { why_given_up_ = action.why; }

  const ExperimentSpec& spec_;
  PoolFiles files_;
  CheckedEngine engine_;
  std::string prefix_;
  PoolValues common_;
  bool needs_id_;  // to stop an allocation
  Say say_;
  PoolMachine machine_;
  const Clock& clock_;
  EngineCalls calls_;
  std::chrono::nanoseconds now_{};  // experiment time of the look
  const Door* door_ = nullptr;
  std::uint64_t prepared_ = 0;  // tokens that were there
  std::chrono::nanoseconds prepare_after_{};
  std::string not_prepared_;         // why, the last time; empty: it was
  DriverMachine* driver_ = nullptr;  // during a look
  DriverEndpoint* endpoint_ = nullptr;
  std::set<std::string> hosts_had_;  // by allocations of this driver, or of the one before
  std::size_t lists_open_ = 0;       // of one question to several hosts
  std::vector<ListedAllocation> listed_;
  std::set<std::string> silent_hosts_;
  std::string not_listed_;  // why they are silent
  std::string why_given_up_;
};

}  // namespace tune
