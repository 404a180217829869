// One rank of an attempt whose work a program does: the shell around a WorkerMachine that starts
// the program, reads its reports, passes on verdicts and sees it off. One thread, one loop: the
// program's end, the agent's words and the reports are noticed whatever it waits for.
//
// A blocking Session (trainables/session.h) around the program is shorter, and fails: while it
// waits for a verdict it does not see that the program has died, and while it waits for a report it
// does not see that the trial is to stop. A program that never reads cannot be told to come to a
// step boundary; it has to be ended where it stands.
//
// Rank 0 of a group reports. Another rank's program need not: this process then follows rank 0's
// words and says that it has finished a step when the next word comes. One that says hello takes
// part in each step.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/command_spec.h"
#include "core/worker_contract.h"
#include "trainables/channel.h"
#include "trainables/command/line_buffer.h"
#include "trainables/command/program.h"
#include "trainables/command/report_file.h"
#include "trainables/command/report_lines.h"
#include "trainables/worker_machine.h"

namespace tune {

class CommandSession {
 public:
  // All must outlive it. Throws AttemptFailure for settings that do not fit.
  CommandSession(const CommandSettings& settings, const StartWorker& start, Channel& channel,
                 int agent_socket);

  // Until the attempt is over and nothing of the program is left. Throws AttemptFailure when it has
  // failed; then abandon() is to follow.
  void run();
  // Ends the program after a failure.
  void abandon();

  WorkerEnded last_word() const { return machine_.last_word(); }
  bool was_told_to_end() const { return was_told_to_end_; }  // by a signal of the agent

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  enum class Ending {
    kNone,
    kByItself,    // it may still end by itself, until next_step_
    kTerminated,  // SIGTERM was sent; SIGKILL follows then
  };

  // ---- The loop
  void turn();
  void poll_all();
  bool is_over();
  bool is_rank_held() const { return listens_ || saving_; }
  void take_words();
  void take_lines();
  bool take_line();
  void read_more();
  void take_output(const std::string& bytes);
  void take_rests();
  void take_signals();
  void note_end();
  bool has_failed_alone() const;
  bool is_end_due();
  bool may_end_with_all();

  // ---- The program's words
  void hear(ProgramWord word);
  void hear(Result result);
  void hear(Hello hello);
  void hear(Saved saved);
  void hear(SaveFailed failed);
  void answer(std::string_view line);

  // ---- The machine's actions
  void perform();
  void act(SayToAgent& action);
  void act(PrepareCheckpoint& action);
  void act(WriteCheckpoint& action);
  void act(WriteBeside&) {}  // only after on_copied: a program writes while it stands still
  void act(ListenToAgent& action);
  void act(BeginStep& action);
  void act(LeaveAttempt& action);
  void act(FailAttempt& action);
  void act(ExitWorker& action);
  void obey(const WorkerCommand& command);
  void take_commands();
  void stop_in_step();
  void follow();

  // ---- Begin and end
  void start_program();
  void conclude();
  void warn_without_reports();
  void leave(Duration own_time);
  void press(Time now);
  [[noreturn]] void fail(const char* key, const std::string& why) const;

  bool is_passive() const { return start_.rank > 0 && !speaks_; }
  bool is_from_scratch() const { return settings_.command.restart == CommandRestart::kFromScratch; }
  Duration grace() const;

  const CommandSettings& settings_;
  const StartWorker& start_;
  Channel& channel_;
  int agent_socket_;
  WorkerMachine machine_;
  std::vector<WorkerAction> actions_;
  std::deque<WorkerCommand> commands_;  // of the agent, not taken yet
  FileDescriptor signals_;

  std::optional<std::filesystem::path> checkpoint_;
  ReportLines report_lines_;
  Program program_;
  LineBuffer output_;
  LineBuffer descriptor_;
  std::optional<ReportFile> file_;
  std::string bytes_;

  bool listens_ = false;     // the machine waits for the agent's word
  bool follows_ = false;     // a passive rank is in a step
  bool saving_ = false;      // the program was told to save
  bool speaks_ = false;      // the program has said hello
  bool can_save_ = false;    // and that it saves
  bool says_done_ = false;   // its last report has done: true
  bool marks_ = false;       // the checkpoint being written is only the mark of a pause
  bool is_drained_ = false;  // the program has ended and all that it wrote is read
  bool was_told_to_end_ = false;
  std::uint64_t reports_ = 0;
  std::uint64_t to_skip_ = 0;  // reports that are known from before a pause
  Ending ending_ = Ending::kNone;
  std::optional<Time> fails_at_;  // unless the agent ends it by then
  Time next_step_ = Time::max();  // of the ending
};

}  // namespace tune
