#include <functional>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/drive/driver_shell.h"
#include "tune/drive/experiment_start.h"
#include "tune/results/own_agent.h"
#include "tune/results/results_csv.h"

namespace tune {

namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kAgentEnd{30};
constexpr std::chrono::seconds kPoolEnd{20};  // for an engine to end its allocations
constexpr milliseconds kFilesEnd{2000};       // after that a person is told
constexpr milliseconds kLoggersEnd{10'000}, kLoggersEndAtOnce{500};
constexpr milliseconds kAtOnce{2500};  // for the agent after a second signal; workers have 2 s

}  // namespace

// Also those that have joined, and what an engine has started: a sweep that is over leaves nobody.
// The driver's own agent, if it was not heard of yet, ends with its socket.
void DriverShell::end_agents() {
  const bool at_once = machine_.ends_at_once();
  for (std::size_t agent = 0; agent < peers().size(); ++agent) {
    endpoint_->send(AgentNumber{static_cast<std::uint32_t>(agent)}, Shutdown{{}, false, at_once});
  }
  endpoint_->flush(now());
  if (door_ && !door_->await_keys(kFilesEnd)) {
    show_notice("waiting until the new join key is written: the experiment's disk does not answer");
  }
  if (door_) door_->close();
  if (!at_once && peers().size() > 0) {
    if (door_) door_->part(controller().nodes());
    agent_process_->wait(kAgentEnd);
  }
  if (pool_) pool_->end(controller().pool(), at_once ? kAtOnce : kPoolEnd);
}

// One that outlives its driver does not end by its socket.
void DriverShell::end_own_agent(milliseconds limit) {
  if (agent_process_->outlives_driver()) {
    const std::string identity = agent_process_->identity();
    const auto number = endpoint_ ? peers().number_of(identity) : std::nullopt;
    if (number) endpoint_->send(*number, Shutdown{{}, false, true});
    if (number) endpoint_->flush(now());
    if (!number) limit = milliseconds(0);  // it has not begun, or cannot be told
  }
  agent_process_->end_now(limit);
}

// This driver cannot go on, and another one may: an agent that outlives it is left to that.
bool DriverShell::leave_own_agent() {
  if (!agent_process_ || !agent_process_->may_be_left()) return false;
  const bool is_over = turns_ && controller().is_over();
  const bool stays =
      has_begun() && folder_.is_ours() && !is_over && agent_process_->wait({}).empty();
  if (stays) agent_process_->let_go();
  if (stays) agent_process_.reset();
  return stays;
}

void DriverShell::close(RunState state) {
  store_->begin_end();
  end_agents();
  const bool at_once = machine_.ends_at_once();
  end_own_agent(at_once ? kAtOnce : AgentProcess::kEndLimit);
  check_place(folder_);
  OwnAgent::remove(folder_.absolute());
  if (object_removals_ && !object_removals_->finish(controller().trials(), at_once)) {
    say("some checkpoints that no trial needs stay in the object store: it did not remove them");
  }
  write_table(last_results_);
  record_.state = state;
  folder_.write_record(record_);
  finish_loggers(at_once);
  show(true);
  if (state == RunState::kInterrupted) {
    reporter_->notice(fmt::format("interrupted; resume with: {}", how_to_resume(folder_.path())));
  }
}

// The experiment cannot go on: end every process, keep the state. An experiment in which no trial
// began leaves no folder behind, so that the same name can be used once the input is mended.
void DriverShell::give_up(RunState state) {
  if (agent_process_) end_own_agent();
  if (!folder_.is_ours()) return;
  if (!has_begun() && door_ && endpoint_) end_agents();
  if (!has_begun()) return withdraw();
  if (!endpoint_) return;  // the journal was not read: the present table is better
  record_.state = state;
  LastResults unknown;  // the table comes from the files where these know less
  LastResults* last = &last_results_;
  try {
    finish_files();
  } catch (const Error&) {
    last = &unknown;
  }
  // Each on its own: a full disk may have room for the other.
  try_to("", [&] { write_table(*last); });
  try_to("", [this] { folder_.write_record(record_); });
  finish_loggers(true);
}

// They read what is in the files.
void DriverShell::finish_loggers(bool at_once) {
  loggers_.finish(at_once ? kLoggersEndAtOnce : kLoggersEnd);
  for (const std::string& notice : loggers_.take_notices()) reporter_->notice(notice);
}

// Waits until all work beside the loop is done.
void DriverShell::finish_files() {
  records_.flush();
  for (SideWork* work : {&file_work_, &removals_}) {
    if (!work->rests_within(kFilesEnd)) {
      show_notice(
          "waiting until the last files are written and removed: the experiment's disk does not "
          "answer");
    }
    work->finish();
  }
}

void DriverShell::write_table(LastResults& last) {
  write_results_csv(folder_.absolute() / "results.csv", spec_, controller().trials(), last);
}

void DriverShell::withdraw() {
  file_work_.stop();
  loggers_.finish(milliseconds(0));
  if (store_) {
    try_to(fmt::format("removing the keys {}:*: ", record_.prefix), [this] { store_->withdraw(); });
  }
  store_.reset();
  folder_.withdraw();
}

// Runs one step of the end, whose failure must not prevent the other steps.
void DriverShell::try_to(const std::string& doing, const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    reporter_->notice(fmt::format("while ending: {}{}", doing, error.what()));
  }
}

}  // namespace tune
