// DriverShell: one run of one experiment, the edges around DriverMachine and Controller: processes,
// sockets, files and signals. Its start and loop are in driver.cc, its end in driver_end.cc.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "core/platform/process.h"
#include "core/platform/runtime_directory.h"
#include "core/platform/side_work.h"
#include "core/platform/system_clock.h"
#include "core/platform/transport.h"
#include "tune/control/silence_watch.h"
#include "tune/drive/door.h"
#include "tune/drive/driver.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/driver_processes.h"
#include "tune/drive/driver_store.h"
#include "tune/drive/file_size_signal.h"
#include "tune/drive/journaled_controller.h"
#include "tune/drive/object_removals.h"
#include "tune/drive/pool.h"
#include "tune/drive/proposal_work.h"
#include "tune/drive/requests.h"
#include "tune/drive/turn.h"
#include "tune/export/loggers.h"
#include "tune/results/events_log.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/file_logger.h"
#include "tune/results/last_results.h"
#include "tune/results/news.h"
#include "tune/results/record_channel.h"

namespace tune {

class DriverShell : private TurnEdges {
 public:
  DriverShell(RunRequest request, NodeResources node, ExperimentFolder folder);
  RunOutcome run();

 private:
  void start();
  void start_agent();
  void claim_resources();
  void open_store();
  void take_over(std::uint64_t epoch);
  void miss_former_agents();
  void let_agent_stay();
  void loop();
  struct MayHaveEnded {
    bool own_agent, store;
  };
  MayHaveEnded wait_for_input();
  void read_input(MayHaveEnded who);
  void act();
  void on(const EndAgent& action);
  void on(const StartStore&) { store_->start_again(); }
  void on(const Say& action) { say(action.text); }
  void on(const GiveUp& action);
  void on(const Dismiss& action) { door_->dismiss(action.agent); }
  void open_door();
  void look_at_pool();
  void say(const std::string& text);
  void say_early(const std::string& text);
  bool may_show() const;
  void show(bool final);
  void end_agents();
  void end_own_agent(std::chrono::milliseconds limit = AgentProcess::kEndLimit);
  bool leave_own_agent();
  void close(RunState state);
  void finish_files();
  void finish_loggers(bool at_once);
  void write_table(LastResults& last);
  void give_up(RunState state = RunState::kInterrupted);
  void withdraw();
  void try_to(const std::string& doing, const std::function<void()>& what);

  // As a turn needs them
  void check_owner() override;
  std::chrono::nanoseconds now() const override { return clock_.monotonic(); }
  WallTime wall() const override { return clock_.wall(); }
  const Peers& peers() const override { return endpoint_->peers(); }
  void acknowledge(AgentNumber agent, Link::Position through) override {
    endpoint_->acknowledge(agent, through);
  }
  void send(AgentNumber agent, const Command& command) override { endpoint_->send(agent, command); }
  void flush_commands() override { endpoint_->flush(now()); }
  void ask(const Asking::Question& question, Searcher::Question make) override {
    proposals_.ask(question, std::move(make));
  }
  bool has_room() const override { return file_work_.has_room() && removals_.has_room(); }
  void write_results() override;
  void remove(const RemoveCheckpoint& checkpoint) override;
  void remove_unrecorded(const Trial& trial, AttemptNumber lost) override;
  void flush_results(std::future<std::string> state) override;
  std::optional<std::string> flushed_results() override;
  void answer(const OrderAnswer& answer) override;
  void show_notice(const std::string& text) override { reporter_->notice(text); }

  const Controller& controller() const { return experiment_->controller(); }
  bool is_new() const { return request_.resume.empty(); }
  bool has_begun() const { return launched_ || !is_new(); }  // with this driver or an earlier one

  RunRequest request_;
  ExperimentSpec& spec_ = request_.spec;
  NodeResources node_;
  ExperimentFolder folder_;
  NoFileSizeSignal no_file_size_signal_;
  std::optional<RuntimeDirectory> runtime_;
  SystemClock clock_;

  // In the order they are started; ended in reverse.
  std::unique_ptr<AgentProcess> agent_process_;
  std::unique_ptr<SignalWatch> signals_;
  std::optional<DriverStore> store_;
  SideWork file_work_;
  SideWork removals_;
  std::unique_ptr<ObjectRemovals> object_removals_;  // null: checkpoints are in the folder
  ProposalWork proposals_;
  FileLogger logger_;
  EventsLog events_;
  LastResults last_results_;
  RecordChannel records_;
  std::optional<News> news_;
  std::optional<JournaledController> experiment_;
  std::unique_ptr<DriverEndpoint> endpoint_;
  std::optional<Requests> requests_;  // of other commands
  std::optional<Door> door_;          // for agents that outlive this driver
  std::optional<Pool> pool_;          // that an engine starts
  DriverMachine machine_;
  std::optional<Turns> turns_;
  LoggerThreads loggers_;  // other tools' files

  SilenceWatch silence_watch_;
  std::shared_ptr<ProgressReporter> reporter_;
  RunRecord record_;

  std::future<std::string> flushed_;  // the log files' state, which is on the disk
  std::chrono::nanoseconds last_flushed_{};
  bool has_shown_ = false;
  bool own_agent_ended_ = false;
  bool launched_ = false;      // this driver has launched a trial
  bool has_given_up_ = false;  // after a signal
};

}  // namespace tune
