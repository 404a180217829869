#include "tune/drive/driver.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "core/agent/checkpoint_files.h"
#include "core/error.h"
#include "core/fitting.h"
#include "core/platform/files.h"
#include "core/platform/node.h"
#include "core/platform/side_output.h"
#include "core/platform/side_work.h"
#include "core/platform/system_clock.h"
#include "core/platform/transport.h"
#include "tune/control/experiment_setup.h"
#include "tune/control/silence_watch.h"
#include "tune/drive/door.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/driver_processes.h"
#include "tune/drive/driver_store.h"
#include "tune/drive/end_notice.h"
#include "tune/drive/experiment_start.h"
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
#include "tune/results/experiment_status.h"
#include "tune/results/file_logger.h"
#include "tune/results/last_results.h"
#include "tune/results/news.h"
#include "tune/results/record_channel.h"
#include "tune/results/results_csv.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/pool_value.h"

namespace tune {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr milliseconds kFlushEvery{200};  // heartbeats and resends of the transport
constexpr seconds kAgentEnd{30};
constexpr seconds kPoolEnd{20};  // for an engine to end its allocations
// The limit on records that wait to be written; beyond it agents' events wait, too.
constexpr std::size_t kMaxWaitingBytes = 32u << 20;
constexpr std::size_t kMaxRemovals = 1000;  // of checkpoints, that wait
constexpr milliseconds kLoggersEnd{10'000}, kLoggersEndAtOnce{500};
constexpr milliseconds kAtOnce{2500};  // for the agent after a second signal; workers have 2 s
// The kernel sends it when a Python process that waits for this driver is gone (_driver.py).
constexpr int kCallerGoneSignal = SIGUSR1;

class Driver : private TurnEdges {
 public:
  Driver(RunRequest request, NodeResources node, ExperimentFolder folder);
  RunOutcome run();

 private:
  void start();
  void claim_resources();
  void open_store();
  void take_over(std::uint64_t epoch);
  void loop();
  void wait_for_input();
  void read_input();
  void act();
  void on(const EndAgent& action);
  void on(const StartStore& action);
  void on(const Say& action) { say(action.text); }
  void on(const GiveUp& action);
  void on(const Dismiss& action) { door_->dismiss(action.agent); }
  void open_door();
  void look_at_pool();
  void say(const std::string& text);
  bool may_show() const;
  void show(bool final);
  void end_agents();
  void close(RunState state);
  void finish_files();
  void finish_loggers(bool at_once);
  void write_table(LastResults& last);
  void give_up(RunState state = RunState::kInterrupted);
  void withdraw();
  void try_to(const std::string& doing, const std::function<void()>& what);

  // As a turn needs them
  nanoseconds now() const override { return clock_.monotonic(); }
  WallTime wall() const override { return clock_.wall(); }
  const Peers& peers() const override { return endpoint_->peers(); }
  void acknowledge(AgentNumber agent, Link::Position through) override {
    endpoint_->acknowledge(agent, through);
  }
  void send(AgentNumber agent, const Command& command) override { endpoint_->send(agent, command); }
  void flush_commands() override { endpoint_->flush(now()); }
  void ask(std::uint64_t number, Searcher::Question make) override {
    proposals_.ask(number, std::move(make));
  }
  bool has_room() const override { return file_work_.has_room() && removals_.has_room(); }
  void write_results() override;
  void remove(const RemoveCheckpoint& checkpoint) override;
  void remove_unrecorded(const Trial& trial, AttemptNumber lost) override;
  void flush_results(std::future<std::string> state) override;
  std::optional<std::string> flushed_results() override;
  void answer(const OrderAnswer& answer) override {
    requests_->answer(answer);
    keep_num_samples(controller().num_samples(), spec_, folder_, file_work_);
  }
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
  SideWork file_work_{kMaxWaitingBytes};
  SideWork removals_{kMaxRemovals};
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
  std::optional<Door> door_;          // for machines that join
  std::optional<Pool> pool_;          // that an engine starts
  DriverMachine machine_;
  std::optional<Turns> turns_;
  LoggerThreads loggers_;  // other tools' files

  SilenceWatch silence_watch_;
  std::shared_ptr<ProgressReporter> reporter_;
  RunRecord record_;

  std::future<std::string> flushed_;  // the log files' state, which is on the disk
  nanoseconds last_flushed_{};
  bool has_shown_ = false;
  bool own_agent_ended_ = false;
  bool launched_ = false;      // this driver has launched a trial
  bool has_given_up_ = false;  // after a signal
};

Driver::Driver(RunRequest request, NodeResources node, ExperimentFolder folder)
    : request_(std::move(request)),
      node_(std::move(node)),
      folder_(std::move(folder)),
      logger_(folder_.absolute(), spec_, file_work_),
      events_(folder_.absolute(), spec_, file_work_),
      machine_({.ends_with_agent = !takes_machines(spec_.options),
                .store_patience = from_seconds(spec_.options.store_patience_s),
                .lease = from_seconds(spec_.options.lease_s)}),
      silence_watch_(experiment_id_of(spec_)),
      reporter_(request_.reporter) {
  records_.add_keeper(logger_);
  records_.add_keeper(last_results_);
  records_.add_keeper(events_);
}

// ---- Start --------------------------------------------------------------------------------------

void Driver::start() {
  runtime_.emplace();
  claim_resources();
  const AgentProcess::Options agent = own_agent(request_, node_, folder_, *runtime_);
  // Before any thread or socket of ours: a zygote in process must find the program as it stood.
  agent_process_ = std::make_unique<AgentProcess>(agent);
  folder_.keep_alive();

  signals_ = std::make_unique<SignalWatch>(
      std::vector<int>{SIGINT, SIGTERM, SIGHUP, kCallerGoneSignal}, last_resort(folder_.path()));
  ControllerSetup setup = controller_setup(spec_, folder_.absolute());
  object_removals_ = ObjectRemovals::open(spec_, setup.experiment.objects);
  open_store();
  if (takes_machines(spec_.options)) {
    door_.emplace(spec_, folder_.absolute(), request_.keys);
    door_->complete(setup.experiment.joined, agent.zygote);
  }
  if (spec_.options.pool.is_given()) {
    pool_.emplace(spec_, folder_.absolute(), [this](const std::string& text) { say(text); });
  }
  experiment_.emplace(store_->store(), std::move(setup), &records_);
  news_.emplace(spec_, controller().objective(), folder_.path(), reporter_);
  records_.add_watcher([this](const Record& record) {
    silence_watch_.record(record, machine_.experiment_time(now()));
    if (const std::string warning = news_->record(record); !warning.empty()) say(warning);
  });
  experiment_->replay();
  if (!request_.notice.empty()) say(request_.notice);
  if (experiment_->is_new() && !is_new()) {
    say("the journal is empty: the experiment begins anew");
  }
  const std::uint64_t epoch = experiment_->next_epoch();
  endpoint_ = std::make_unique<DriverEndpoint>(agent.driver_address, epoch);
  requests_.emplace(runtime_->path());
  requests_->take_orders(*experiment_, experiment_id_of(spec_), machine_);
  record_.requests = requests_->path();
  open_door();
  folder_.write_spec(spec_);
  folder_.write_record(record_);
  take_over(epoch);
  start_loggers(spec_, folder_.absolute(), folder_.path(), loggers_);
}

// The token is for the person alone: what is said goes into the journal.
void Driver::open_door() {
  if (!door_) return;
  door_->open(*endpoint_, *requests_, controller().nodes());
  if (!spec_.options.listen.empty()) reporter_->notice(door_->invitation());
  if (!pool_) return;
  pool_->open(*door_);
  requests_->answer_by("pool",
                       [this](const Value& asked) { return pool_->order(asked, machine_); });
}

// A pool's driver takes nothing: its own agent only loads the trainable, to refuse a bad one.
void Driver::claim_resources() {
  if (spec_.options.pool.is_given() && !spec_.options.pool.local) {
    node_.cpu_units = 0;
    node_.gpus.clear();
    return;
  }
  node_ = claimed_node(*runtime_, folder_.absolute(), spec_, node_);
}

void Driver::open_store() {
  record_.driver_pid = static_cast<std::uint32_t>(getpid());
  record_.hostname = hostname();
  record_.prefix = store_prefix_of(spec_);
  DriverStore::Options options;
  options.address = spec_.options.store;
  options.prefix = record_.prefix;
  options.unsafe = spec_.options.store_unsafe;
  options.is_new = is_new();
  options.server.runtime_directory = runtime_->path();
  options.server.data_directory = folder_.absolute() / "store";
  options.server.lock_descriptor = folder_.lock_descriptor();
  options.notice = [this](const std::string& text) { say(text); };
  store_.emplace(std::move(options));
  record_.store = store_->address();
}

// Only the driver that has the epoch removes files: before that, an older driver may still record
// them.
void Driver::take_over(std::uint64_t epoch) {
  turns_.emplace(*experiment_, machine_, static_cast<TurnEdges&>(*this));
  turns_->take_over(driver_started(spec_, epoch, request_.retry_errored));
  if (door_) door_->expect(controller(), machine_, now());
  keep_num_samples(controller().num_samples(), spec_, folder_, file_work_);
  machine_.on_agent_started(agent_process_->identity(), now());
  turns_->run();
  store_->end_start();
}

// ---- Loop ---------------------------------------------------------------------------------------

RunOutcome Driver::run() {
  try {
    start();
    loop();
    finish_files();
    const bool stranded = controller().phase() == Phase::kInterrupted;
    if (stranded && !controller().failure().empty()) {
      throw Error(ErrorCode::kProcess, controller().failure());
    }
  } catch (const SupersededError&) {
    agent_process_->end_now();  // the folder is the other driver's now
    throw;
  } catch (const Error& error) {
    give_up();
    if (!has_begun() || !folder_.is_in_place()) throw;
    throw Error(error.code(), fmt::format("{}; what was done is kept, resume it with: {}",
                                          error.what(), how_to_resume(folder_.path())));
  } catch (...) {
    give_up();
    throw;
  }
  if (controller().phase() == Phase::kFailed) {
    const std::string why = controller().failure();
    if (launched_ && door_) end_agents();
    // An experiment without any trial may go on once the input is mended.
    give_up(launched_ ? RunState::kFailed : RunState::kInterrupted);
    if (launched_) show(true);
    throw Error(ErrorCode::kBadInput, with_places(spec_, why));
  }
  const bool finished = controller().phase() == Phase::kFinished;
  close(finished ? RunState::kFinished : RunState::kInterrupted);
  RunOutcome outcome;
  outcome.directory = folder_.path();
  outcome.errored = controller().counts()[static_cast<std::size_t>(TrialStatus::kError)];
  if (!finished) outcome.signal = machine_.signal();
  return outcome;
}

void Driver::loop() {
  while (!controller().is_over()) {
    wait_for_input();
    read_input();
    if (machine_.ends_at_once()) return;
    turns_->run();
    act();
    if (has_given_up_) return;
    if (now() - last_flushed_ >= kFlushEvery) {
      check_place(folder_);
      file_work_.check();
      if (door_) door_->look(now());
      look_at_pool();
      for (const std::string& refused : endpoint_->take_refused()) say(refused);
      for (const std::string& notice : loggers_.take_notices()) say(notice);
      endpoint_->flush(now());
      last_flushed_ = now();
    }
    if (machine_.show_is_due(now()) && may_show()) show(false);
  }
  turns_->run();  // what was said meanwhile
}

// It decides by the journal: when all that it has decided before is there.
void Driver::look_at_pool() {
  if (!pool_ || machine_.store_is_silent() || machine_.has_pool_events()) return;
  pool_->look(controller(), machine_, *endpoint_, now());
  if (pool_->why_given_up().empty()) return;
  throw Error(ErrorCode::kBadInput, with_places(spec_, "pool: " + pool_->why_given_up()));
}

void Driver::wait_for_input() {
  const std::int64_t wait =
      machine_.idle_time(now(), controller().next_deadline(), peers()).count();
  pollfd watched[] = {{endpoint_->descriptor(), POLLIN, 0},
                      {signals_->descriptor(), POLLIN, 0},
                      {own_agent_ended_ ? -1 : agent_process_->exit_descriptor(), POLLIN, 0},
                      {store_->exit_descriptor(), POLLIN, 0},
                      {proposals_.descriptor(), POLLIN, 0},
                      {requests_->descriptor(), POLLIN, 0},
                      {machine_.store_is_silent() ? store_->answer_descriptor() : -1, POLLIN, 0}};
  const timespec timeout{wait / 1'000'000'000, wait % 1'000'000'000};
  ppoll(watched, std::size(watched), &timeout, nullptr);
}

// Signals are read after the events of agents: a signal that was sent to every process is there
// when the first attempt is reported to have ended by it.
void Driver::read_input() {
  const std::string end = agent_process_->wait(milliseconds(0));
  for (Peers::Told& told : endpoint_->receive(now())) machine_.on_told(std::move(told));
  if (auto proposed = proposals_.take()) machine_.on_proposed(std::move(*proposed));
  for (const int signal : signals_->take()) {
    if (signal == kCallerGoneSignal) {
      machine_.on_caller_gone(SIGTERM);
      say("the process that waits for this run is gone: running trials save and end");
      continue;
    }
    if (!machine_.on_signal(signal)) return;
    say(fmt::format("{}: running trials save and end; once more ends at once",
                    signal_name(signal)));
  }
  if (!end.empty()) machine_.on_agent_ended(agent_process_->identity(), end);
  own_agent_ended_ = !end.empty();
  requests_->look();
  if (const std::string how = store_->take_end(); !how.empty()) machine_.on_server_ended(how);
  machine_.on_time(now(), peers());
}

void Driver::act() {
  for (const DriverAction& action : machine_.take_actions()) {
    std::visit([this](const auto& one) { on(one); }, action);
  }
}

void Driver::on(const EndAgent&) {
  kill(agent_process_->pid(), SIGKILL);  // its workers end with it
}

// A machine that can start no process now is treated like a server that ends at once.
void Driver::on(const StartStore&) {
  try {
    store_->start_again();
  } catch (const SupersededError&) {
    throw;
  } catch (const Error& error) {
    machine_.on_server_ended(error.what());
  }
}

// After a signal the only message is that the experiment was interrupted.
void Driver::on(const GiveUp& action) {
  has_given_up_ = machine_.signal() != 0;
  if (has_given_up_) return reporter_->notice(fmt::format("ending without it: {}", action.how));
  if (action.why == GiveUp::Why::kStore) {
    throw Error(ErrorCode::kStore, fmt::format("writing the journal: {}", action.how));
  }
  throw Error(ErrorCode::kProcess,
              fmt::format("running trials: the agent of this node is gone ({}), see {}", action.how,
                          (folder_.path() / "zygote.log").string()));
}

// ---- A turn -------------------------------------------------------------------------------------

void Driver::write_results() {
  records_.flush();
  const bool runs = controller().counts()[static_cast<std::size_t>(TrialStatus::kRunning)] > 0;
  if (launched_ || !runs) return;
  launched_ = true;
  if (is_new()) folder_.link_latest();
}

void Driver::remove(const RemoveCheckpoint& checkpoint) {
  const std::filesystem::path trial = logger_.trial_directory(checkpoint.trial);
  removals_.add(1, [trial, id = checkpoint.checkpoint] { remove_checkpoint(trial, id); });
  if (object_removals_) object_removals_->remove(checkpoint.trial, checkpoint.checkpoint);
}

void Driver::remove_unrecorded(const Trial& trial, AttemptNumber lost) {
  const std::filesystem::path folder = logger_.trial_directory(trial.number);
  removals_.add(1, [folder, records = trial.checkpoints, lost] {
    tune::remove_unrecorded(folder, records, lost);
  });
  if (object_removals_) object_removals_->remove_unrecorded(trial, lost);
}

// The snapshot stands for the turns that asked for the removals: once it is stored no turn asks for
// them again.
void Driver::flush_results(std::future<std::string> state) {
  const auto removed = std::make_shared<std::promise<void>>();
  removals_.add(0, [removed] { removed->set_value(); });
  flushed_ =
      std::async(std::launch::async, [state = std::move(state), removals = removed->get_future(),
                                      directory = folder_.absolute()]() mutable {
        std::string text = state.get();
        removals.get();
        flush_file_system(directory);
        return text;
      });
}

std::optional<std::string> Driver::flushed_results() {
  if (flushed_.wait_for(seconds(0)) != std::future_status::ready) return std::nullopt;
  file_work_.check();  // the reason when there is no state
  removals_.check();
  return flushed_.get();
}

// Shown at once, whether or not the store answers; it goes into events.jsonl with the next turn.
void Driver::say(const std::string& text) {
  reporter_->notice(text);
  machine_.on_notice(text);
}

// An unusable plugin is refused before there is a table of trials, however long it loads.
bool Driver::may_show() const {
  return has_shown_ || controller().has_ready_node();
}

void Driver::show(bool final) {
  ExperimentStatus status = experiment_status(spec_, controller(), machine_.experiment_time(now()));
  status.wall = clock_.wall();
  status.directory = folder_.path();
  add_own_node(node_, status);
  for (const std::string& line : silence_watch_.look(status.running_for)) say(line);
  reporter_->status(status, final);
  has_shown_ = true;
  machine_.on_shown(now());
}

// ---- End ----------------------------------------------------------------------------------------

// Also those that have joined, and what an engine has started: a sweep that is over leaves nobody.
void Driver::end_agents() {
  // An agent that was not heard of yet, or after a second signal, just ends with the pipe.
  const bool at_once = machine_.ends_at_once();
  if (!at_once && peers().size() > 0) {
    for (std::size_t agent = 0; agent < peers().size(); ++agent) {
      endpoint_->send(AgentNumber{static_cast<std::uint32_t>(agent)}, Shutdown{});
    }
    endpoint_->flush(now());
    agent_process_->wait(kAgentEnd);
    if (door_) door_->part(controller().nodes());
  }
  if (pool_) pool_->end(controller().pool(), at_once ? kAtOnce : kPoolEnd);
}

void Driver::close(RunState state) {
  store_->begin_end();
  end_agents();
  const bool at_once = machine_.ends_at_once();
  agent_process_->end_now(at_once ? kAtOnce : AgentProcess::kEndLimit);
  check_place(folder_);
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
void Driver::give_up(RunState state) {
  if (agent_process_) agent_process_->end_now();
  if (!folder_.is_in_place() || !folder_.taken_by().empty()) return;
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
void Driver::finish_loggers(bool at_once) {
  loggers_.finish(at_once ? kLoggersEndAtOnce : kLoggersEnd);
  for (const std::string& notice : loggers_.take_notices()) reporter_->notice(notice);
}

// Waits until all work beside the loop is done.
void Driver::finish_files() {
  records_.flush();
  file_work_.finish();
  removals_.finish();
}

void Driver::write_table(LastResults& last) {
  write_results_csv(folder_.absolute() / "results.csv", spec_, controller().trials(), last);
}

void Driver::withdraw() {
  file_work_.stop();
  loggers_.finish(milliseconds(0));
  if (store_) {
    try_to(fmt::format("removing the keys {}:*: ", record_.prefix), [this] { store_->withdraw(); });
  }
  store_.reset();
  folder_.withdraw();
}

// Runs one step of the end, whose failure must not prevent the other steps.
void Driver::try_to(const std::string& doing, const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    reporter_->notice(fmt::format("while ending: {}{}", doing, error.what()));
  }
}

}  // namespace

RunOutcome run_experiment(RunRequest request) {
  const NodeResources node = checked_node(request);
  ExperimentFolder folder = start_experiment(request);
  const OnEnd on_end = request.spec.options.on_end;
  const std::filesystem::path directory = folder.path();
  const auto notice = [it = request.reporter](const std::string& text) { it->notice(text); };
  Driver driver(std::move(request), node, std::move(folder));
  return run_and_tell(on_end, directory, notice, [&] { return driver.run(); });
}

}  // namespace tune
