#include "trainables/command/command_session.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "trainables/checkpoint_folder.h"
#include "trainables/failure.h"

namespace tune {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFileEvery{100};   // a report file is looked at
constexpr milliseconds kGroupEvery{20};   // processes that the program left behind
constexpr seconds kKillGrace{5};          // after a program had its time to end by itself
constexpr seconds kTermGrace{2};          // before the agent's SIGKILL
constexpr seconds kSignalOfAll{2};        // from the first process that it ends to the agent
// The other ranks of a group end by themselves when rank 0's program has; when it was stopped, they
// may wait for it in a collective for ever.
constexpr seconds kOtherRanks{1};

FileDescriptor watch_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched, signal);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  return FileDescriptor(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

// To the trial's file. What a full disk does not take is lost, as what a program prints there
// itself.
void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool says_done(const Result& result) {
  const Value* done = result.find("done");
  return done != nullptr && done->type() == Value::Type::kBool && done->boolean();
}

std::string how_it_ended(int status) {
  std::string text = fmt::format("the program {}{}", WIFSIGNALED(status) ? "was " : "",
                                 describe_exit(status));
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) text += ", as the kernel does to free memory";
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) text += " (a program that it starts is not there)";
  return text;
}

// A shell tells the signal that ended its last command by its exit code.
bool is_end_by_signal(int status) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

}  // namespace

CommandSession::CommandSession(const CommandSettings& settings, const StartWorker& start,
                               Channel& channel, int agent_socket)
    : settings_(settings),
      start_(start),
      channel_(channel),
      agent_socket_(agent_socket),
      machine_(start),
      signals_(watch_signals()),
      checkpoint_(existing_checkpoint(start)),
      report_lines_(settings.command) {
  if (settings.command.report == ReportSource::kFile && start.rank == 0) {
    file_.emplace(std::filesystem::path(start.trial_directory) / settings.command.report_text,
                  start.launch.attempt.value);
  }
  if (is_from_scratch()) to_skip_ = start.launch.restore_iteration;
}

void CommandSession::run() {
  if (checkpoint_) {
    machine_.on_set_up();
    perform();
  }
  machine_.on_ready();
  perform();
  while (!is_over()) turn();
}

void CommandSession::abandon() {
  if (ending_ == Ending::kNone) leave({});
  next_step_ = std::min(next_step_, Clock::now() + kKillGrace);
  while (!is_over()) turn();
}

// ---- The loop -----------------------------------------------------------------------------------

void CommandSession::turn() {
  poll_all();
  take_signals();
  if (ending_ != Ending::kNone) return press(Clock::now());
  // A hello that is there comes before the words of rank 0's next step, which may be there as well.
  if (follows_) take_words();
  take_commands();
  take_words();
  note_end();
}

void CommandSession::poll_all() {
  const bool ends = ending_ != Ending::kNone;
  const bool reads_output = ends || !is_rank_held();
  const bool reads_descriptor = ends || !listens_;
  std::array<pollfd, 5> watched{{
      {ends ? -1 : agent_socket_, POLLIN, 0},
      {signals_.get(), POLLIN, 0},
      {program_.end(), POLLIN, 0},
      {reads_output ? program_.output() : -1, POLLIN, 0},
      {reads_descriptor ? program_.descriptor() : -1, POLLIN, 0},
  }};
  Time until = next_step_;
  const Time now = Clock::now();
  if (file_ && !ends && !is_rank_held()) until = std::min(until, now + kFileEvery);
  if (ends && program_.has_ended()) until = std::min(until, now + kGroupEvery);
  // A program that has ended, read to its end, makes no descriptor readable.
  if (is_end_due()) until = std::min(until, fails_at_.value_or(now));
  const auto left = std::chrono::ceil<milliseconds>(until - now);
  const bool is_endless = until == Time::max();
  ::poll(watched.data(), watched.size(),
         is_endless ? -1 : static_cast<int>(std::clamp<long>(left.count(), 0, 60'000)));
  if (!ends) return;
  // Nobody asks for its words any more; its output belongs to the trial all the same.
  if (watched[3].revents != 0 && program_.read_output(bytes_) == Program::Read::kBytes) print(bytes_);
  if (watched[4].revents != 0) program_.read_descriptor(bytes_);
}

// Lines that are there are taken before more is read: they may have waited for a verdict, and a
// program that is far ahead of its verdicts is to meet a full pipe.
void CommandSession::take_words() {
  take_lines();
  if (ending_ != Ending::kNone) return;
  read_more();
  take_lines();
}

void CommandSession::read_more() {
  if (!is_rank_held() && program_.read_output(bytes_) == Program::Read::kBytes) take_output(bytes_);
  if (!listens_ && program_.read_descriptor(bytes_) == Program::Read::kBytes) {
    descriptor_.append(bytes_);
  }
}

void CommandSession::take_output(const std::string& bytes) {
  print(bytes);
  output_.append(bytes);
}

void CommandSession::take_lines() {
  while (ending_ == Ending::kNone && take_line()) {
  }
}

// Whether there was one, or something to read on.
bool CommandSession::take_line() {
  if (listens_) return false;
  try {
    if (const auto line = descriptor_.next()) {
      hear(report_lines_.of_descriptor(*line, descriptor_.lines()));
      return true;
    }
    if (const auto line = descriptor_.too_long()) {
      hear(report_lines_.of_descriptor(*line, descriptor_.lines() + 1));
    }
    if (saving_) return false;
    if (const auto line = output_.next()) {
      if (auto result = report_lines_.of_output(*line, output_.lines())) hear(std::move(*result));
      return true;
    }
    if (const auto line = output_.too_long()) {
      report_lines_.refuse_too_long(*line, output_.lines() + 1);
    }
    if (!file_) return false;
    if (const auto line = file_->lines().next()) {
      auto result = report_lines_.of_file(*line, file_->lines().lines());
      if (result) hear(std::move(*result));
      return true;
    }
    if (const auto line = file_->lines().too_long()) {
      report_lines_.of_file(*line, file_->lines().lines() + 1);
    }
  } catch (const Error& error) {
    fail("report", error.what());
  }
  return file_->read();
}

// Of a rank whose reports are nobody's.
bool CommandSession::has_failed_alone() const {
  return start_.rank > 0 && program_.wait_status() != 0;
}

bool CommandSession::is_end_due() {
  if (ending_ != Ending::kNone || !program_.is_started() || !program_.has_ended()) return false;
  return has_failed_alone() || (!listens_ && !is_drained_);
}

// When the program has ended and all that it wrote is taken: how did it end?
void CommandSession::note_end() {
  if (!is_end_due() || may_end_with_all()) return;
  if (has_failed_alone()) return conclude();
  bool has_more = false;
  if (!saving_ && program_.read_output(bytes_) == Program::Read::kBytes) {
    take_output(bytes_);
    has_more = true;
  }
  if (program_.read_descriptor(bytes_) == Program::Read::kBytes) {
    descriptor_.append(bytes_);
    has_more = true;
  }
  if (file_ && !saving_ && file_->read()) has_more = true;
  if (has_more) return take_lines();
  if (saving_) throw AttemptFailure("save: " + how_it_ended(program_.wait_status()) + " meanwhile");
  take_rests();
  if (is_drained_ && !listens_ && ending_ == Ending::kNone) conclude();
}

// A batch system may end all processes of a machine, this program first. Said at once, its death would
// count against the trial; a little later the agent knows that its node ends.
bool CommandSession::may_end_with_all() {
  if (!is_end_by_signal(program_.wait_status())) return false;
  if (!fails_at_) fails_at_ = Clock::now() + kSignalOfAll;
  return Clock::now() < *fails_at_;
}

// A last line may lack its end. Broken, it counts only when nothing worse has happened.
void CommandSession::take_rests() {
  try {
    if (const auto line = descriptor_.rest()) {
      return hear(report_lines_.of_descriptor(*line, descriptor_.lines()));
    }
    if (const auto line = output_.rest()) {
      if (auto result = report_lines_.of_output(*line, output_.lines())) {
        return hear(std::move(*result));
      }
    }
    if (file_) {
      if (const auto line = file_->lines().rest()) {
        auto result = report_lines_.of_file(*line, file_->lines().lines());
        if (result) return hear(std::move(*result));
      }
    }
  } catch (const Error& error) {
    if (program_.wait_status() == 0) {
      fail("report", fmt::format("{}: the program ended in the middle of it", error.what()));
    }
  }
  is_drained_ = true;
}

// A signal that is not the agent's is one that the program sends to its group, or a batch system to
// every process of a job: the agent then lets the trial save.
void CommandSession::take_signals() {
  signalfd_siginfo told{};
  while (::read(signals_.get(), &told, sizeof told) == sizeof told) {
    if (static_cast<pid_t>(told.ssi_pid) != ::getppid()) continue;
    was_told_to_end_ = true;
    ending_ = Ending::kTerminated;  // the agent signals the whole group
    next_step_ = std::min(next_step_, Clock::now() + kTermGrace);
  }
}

// ---- The program's words ------------------------------------------------------------------------

void CommandSession::hear(ProgramWord word) {
  std::visit([this](auto& one) { hear(std::move(one)); }, word);
}

void CommandSession::hear(Result result) {
  if (saving_) fail("report", "the program reports while it is to save: 'saved' comes first");
  if (is_passive()) return;
  if (settings_.command.restart == CommandRestart::kFromCheckpoint && !can_save_) {
    fail("restart", "from_checkpoint wants a program that saves: it says 'hello 1 save' on TUNE_FD "
                    "before its first report (trainables/command/README.md)");
  }
  ++reports_;
  if (to_skip_ > 0) {
    --to_skip_;
    return answer("go");
  }
  says_done_ = says_done(result);
  machine_.on_report(Clock::now().time_since_epoch(), pack(result), can_save_);
  perform();
}

void CommandSession::hear(Hello hello) {
  if (reports_ > 0 || machine_.iteration() > start_.launch.restore_iteration) {
    fail("report", start_.rank == 0 ? "the program says hello after its first report"
                                    : "this rank says hello after rank 0 has reported: all ranks "
                                      "say it before the group begins to train");
  }
  speaks_ = true;
  follows_ = false;
  can_save_ = hello.saves && !is_from_scratch();
}

void CommandSession::hear(Saved) {
  if (!saving_) fail("report", "the program says 'saved', and was not told to save");
  saving_ = false;
  in_phase("save", [&] { flush_checkpoint(checkpoint_to_write(start_, machine_.iteration())); });
  machine_.on_saved();
  perform();
}

void CommandSession::hear(SaveFailed failed) {
  throw AttemptFailure("save: " + failed.why);
}

void CommandSession::answer(std::string_view line) {
  if (!speaks_ || program_.say(std::string(line) + "\n")) return;
  fail("report", "the program said hello but does not read the answers to its reports");
}

// ---- The machine's actions ----------------------------------------------------------------------

void CommandSession::perform() {
  for (machine_.take_actions(actions_); !actions_.empty(); machine_.take_actions(actions_)) {
    for (WorkerAction& action : actions_) {
      std::visit([this](auto& one) { act(one); }, action);
    }
  }
}

void CommandSession::act(SayToAgent& action) {
  channel_.send(action.event);
}

void CommandSession::act(PrepareCheckpoint& action) {
  in_phase("save", [&] { make_fresh_folder(checkpoint_to_write(start_, action.iteration)); });
}

// A rank that takes no part has nothing to save; neither has a program that will begin anew.
void CommandSession::act(WriteCheckpoint& action) {
  const std::filesystem::path folder = checkpoint_to_write(start_, action.iteration);
  if (start_.rank > 0) {  // rank 0's may be on another machine
    in_phase("save", [&] { std::filesystem::create_directories(folder); });
  }
  if (can_save_ && !marks_) {
    saving_ = true;
    return answer("save " + folder.string());
  }
  in_phase("save", [&] { flush_checkpoint(folder); });
  machine_.on_saved();
}

void CommandSession::act(ListenToAgent& action) {
  while (auto command = channel_.poll()) commands_.push_back(std::move(*command));
  if (!commands_.empty()) {
    const WorkerCommand command = std::move(commands_.front());
    commands_.pop_front();
    obey(command);
  } else if (action.wait) {
    listens_ = true;
  } else {
    machine_.on_silence(Clock::now().time_since_epoch());
  }
}

void CommandSession::act(BeginStep&) {
  if (!program_.is_started()) {
    start_program();
  } else {
    answer("go");
  }
  follows_ = is_passive();
}

void CommandSession::act(LeaveAttempt&) {
  answer("stop");
  if (speaks_ || says_done_) {
    leave(grace());
  } else {
    leave(start_.rank > 0 ? Duration(kOtherRanks) : Duration());
  }
}

void CommandSession::act(FailAttempt& action) {
  throw AttemptFailure(action.cause, action.is_of_group);
}

void CommandSession::act(ExitWorker&) {}  // nothing is reported after the end

// A program that begins anew can be paused anywhere: what it knows is in its reports.
void CommandSession::obey(const WorkerCommand& command) {
  listens_ = false;
  const auto* stop = std::get_if<StopAttempt>(&command);
  if (stop != nullptr && stop->kind == StopKind::kPause && is_from_scratch() &&
      machine_.iteration() > 0) {
    marks_ = true;
    machine_.allow_save();
  }
  machine_.on_command(command);
}

void CommandSession::take_commands() {
  while (auto command = channel_.poll()) commands_.push_back(std::move(*command));
  while (listens_ && !commands_.empty()) {
    const WorkerCommand command = std::move(commands_.front());
    commands_.pop_front();
    obey(command);
    perform();
  }
  while (follows_ && !commands_.empty() && ending_ == Ending::kNone) follow();
  if (start_.rank == 0 && !speaks_ && !listens_) stop_in_step();
}

// A program that reads no answers is not waited for: its step boundary may be hours away, and it
// would not hear of the stop there.
void CommandSession::stop_in_step() {
  const auto stop = std::ranges::find_if(commands_, [](const WorkerCommand& command) {
    return std::holds_alternative<StopAttempt>(command);
  });
  if (stop == commands_.end() || ending_ != Ending::kNone || !program_.is_started()) return;
  const WorkerCommand command = *stop;
  commands_.clear();
  obey(command);
  perform();
}

// Rank 0 has finished the step: so has this one.
void CommandSession::follow() {
  follows_ = false;
  machine_.on_report(Clock::now().time_since_epoch(), pack(Result()), false);
  perform();
}

// ---- The end ------------------------------------------------------------------------------------

void CommandSession::conclude() {
  const int status = program_.wait_status();
  if (status != 0) {
    // A rank that ends by itself may do so for the end of another; one that a signal killed not.
    const bool is_of_group = start_.launch.ranks > 1 && WIFEXITED(status);
    throw AttemptFailure(how_it_ended(status), is_of_group);
  }
  if (is_passive()) return;  // until rank 0 ends
  warn_without_reports();
  machine_.on_returned();
  perform();
}

// Once for all trials: the text is the same.
void CommandSession::warn_without_reports() {
  if (reports_ > 0 || start_.rank > 0) return;
  const auto place = settings_.places.find("report");
  channel_.send(Warning{fmt::format("{}report: the program ended without a report: {}",
                                    place == settings_.places.end() ? "" : place->second + ": ",
                                    report_lines_.how_to_report())});
}

Duration CommandSession::grace() const {
  const Duration limit = start_.experiment.hang_timeout;  // the agent ends it after that silence
  const Duration any = settings_.grace_s > 0 ? from_seconds(settings_.grace_s)
                                             : Duration(std::chrono::hours(24 * 365));
  return limit > Duration::zero() ? std::min(any, limit / 2) : any;
}

// The program may go on for so long before it is told to end.
void CommandSession::leave(Duration own_time) {
  ending_ = Ending::kByItself;
  next_step_ = Clock::now() + own_time;
  if (own_time == Duration::zero()) press(next_step_);
}

void CommandSession::press(Time now) {
  if (now < next_step_ || !program_.is_started()) return;
  if (ending_ == Ending::kTerminated) return Program::kill_rest();
  if (program_.has_ended()) return;
  const bool had_time = speaks_ || says_done_;
  ending_ = Ending::kTerminated;
  next_step_ = now + (had_time ? std::min(grace(), Duration(kKillGrace)) : grace());
  Program::terminate();
}

// The rest of the program's group has the same time as the program itself; a child that left the
// group ends at once.
bool CommandSession::is_over() {
  if (ending_ == Ending::kNone) return false;
  if (program_.is_started()) {
    if (!program_.has_ended()) return false;
    const bool has_time = ending_ == Ending::kTerminated && Clock::now() < next_step_;
    if (has_time && Program::is_group_left()) return false;
    while (program_.read_output(bytes_) == Program::Read::kBytes) print(bytes_);
    Program::kill_rest();
  }
  return true;
}

void CommandSession::fail(const char* key, const std::string& why) const {
  const auto place = settings_.places.find(key);
  const std::string where = place == settings_.places.end() ? "" : place->second + ": ";
  throw AttemptFailure(fmt::format("{}{}: {}", where, key, why));
}

}  // namespace tune
