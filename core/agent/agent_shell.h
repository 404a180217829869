// AgentShell: the edge around AgentMachine: descriptors in, actions out. Its loop and actions are
// in agent.cc, what it says and hears beside its trials in agent_driver.cc.
#pragma once

#include <sys/types.h>

#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/agent_machine.h"
#include "core/agent/agent_relay.h"
#include "core/agent/children.h"
#include "core/agent/driver_search.h"
#include "core/agent/group_links.h"
#include "core/agent/group_meeting.h"
#include "core/agent/held_worker.h"
#include "core/agent/memory_limits.h"
#include "core/agent/usage_watch.h"
#include "core/agent/zygote_process.h"
#include "core/platform/file_worker.h"
#include "core/platform/system_clock.h"
#include "core/platform/transport.h"

namespace tune {

struct Participation;

class AgentShell {
 public:
  explicit AgentShell(const AgentOptions& options);
  JoinedEnd run();  // empty for an agent that ends with its driver

 private:
  void turn();
  AgentTime sleep_time() const;
  void take_signals();
  void take_ended_children();
  void end_stray(pid_t worker);
  void take_zygote_messages();
  void take_commands();
  void take_waiting();
  void take(Command command);
  void set_up(const SetupExperiment& setup);
  void look_at_folder(SetupExperiment setup);
  void leave_folder();
  bool awaits_proof() const;
  void on_promoted(const CheckpointSaved& saved, const std::string& error);
  void tell_promoted(const std::string& error);
  void hear_driver();
  void end_stay_if_due();
  void take_part();
  void take_part(const Participation& part);
  void carry_objects();
  void begin_part(const std::filesystem::path& folder, const std::string& zygote_log);
  void look_at_relay();
  void conclude(const AttemptEnded& ended, std::uint32_t node);
  DriverSearch::Parts search_parts() { return {machine_, *endpoint_, *files_}; }
  void read_workers(int epoll);
  void read_events(WorkerId id, HeldWorker& worker);
  void rest(WorkerId id, const HeldWorker& worker);
  void end_rests();
  void perform();
  void tell_of_memory(const std::string& why_unlimited);

  void act(TellDriver& action) { endpoint().send(action.event); }
  void act(TellWorker& action);
  void act(RestWorker& action);
  void act(SpawnWorker& action);
  void act(SignalWorker& action);
  void act(PromoteCheckpoint& action);
  void act(ForgetWorker& action) { usage_.remove(action.worker), workers_.erase(action.worker); }
  void act(DropCheckpoint& action);
  void act(ConcludeAttempt& action);
  void act(StartZygote& action);
  void act(OfGroupLinks auto& action) { links_.act(now_, action); }
  void act(auto& action) { relay_->act(action); }
  void execute_zygote(ZygoteProcess::Log log);
  void act(EndZygote&) {
    zygote_.end();
    ends_unborn_zygote_ = is_zygote_awaited_;
  }

  // Connected at the first need: a zygote that is forked must find neither socket nor thread.
  AgentEndpoint& endpoint();
  std::filesystem::path trial_directory(TrialNumber trial) const {
    return std::filesystem::path(experiment_.experiment_directory) /
           trial_id(experiment_.experiment_id, trial);
  }

  const AgentOptions& options_;
  SystemClock clock_;
  AgentTime now_;
  AgentMachine machine_;
  ZygoteProcess zygote_;
  bool zygote_was_forked_ = false;
  bool is_zygote_awaited_ = false;   // its log is being opened
  bool ends_unborn_zygote_ = false;  // as soon as it is there
  FileDescriptor signals_;
  FileDescriptor workers_epoll_;  // ranks alone
  FileDescriptor groups_epoll_;   // ranks of groups
  std::optional<AgentEndpoint> endpoint_;
  std::optional<FileWorker> files_;
  std::optional<MemoryLimits> memory_;
  UsageWatch usage_{options_.resources.gpus};
  bool memory_told_ = false;  // what keeps limits from being set
  bool driver_gone_ = false;
  SetupExperiment experiment_;
  std::map<WorkerId, HeldWorker> workers_;
  std::vector<WorkerId> resting_;  // all until
  AgentTime rest_end_{};           // this
  GroupMeeting meeting_;
  GroupLinks links_{machine_, meeting_};
  Strays strays_;
  std::vector<AgentAction> actions_;

  // The zygote is started as the options say, or as a driver that was joined does.
  std::vector<std::string> zygote_command_ = options_.zygote_command;
  std::map<std::string, std::string> zygote_environment_ = options_.zygote_environment;
  std::string zygote_log_ = options_.zygote_log;
  std::optional<JoinOptions> join_;  // of an own agent that outlives its driver
  bool stay_is_over_ = false;
  std::optional<DriverSearch> search_;
  bool is_unfit_ = false;
  bool takes_part_ = false;
  std::optional<AgentRelay> relay_;  // the experiment's folder is not seen

  // Another driver may have that folder elsewhere, so each one's proof is read, beside the loop.
  std::string seen_folder_;         // empty: none is seen
  std::uint64_t proven_epoch_ = 0;  // of the driver whose proof was found in it
  bool is_looking_ = false;         // whether a proof is there: the driver's commands wait
  bool has_lost_folder_ = false;
  std::deque<Command> waiting_;
  struct Promoted {
    CheckpointSaved saved;
    std::string error;
  };
  std::vector<Promoted> promoted_;  // to be told when the driver's proof is found
};

}  // namespace tune
