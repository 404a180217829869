#include "tune/drive/driver.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
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
#include "tune/control/experiment_setup.h"
#include "tune/drive/driver_shell.h"
#include "tune/drive/end_notice.h"
#include "tune/drive/experiment_start.h"
#include "tune/results/experiment_status.h"
#include "tune/results/own_agent.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/pool_value.h"

namespace tune {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kFlushEvery{200};  // heartbeats and resends of the transport
// The limit on records that wait to be written; beyond it agents' events wait, too.
constexpr std::size_t kMaxWaitingBytes = 32u << 20;
constexpr std::size_t kMaxRemovals = 1000;  // of checkpoints, that wait
// The kernel sends it when a Python process that waits for this driver is gone (_driver.py).
constexpr int kCallerGoneSignal = SIGUSR1;

}  // namespace

DriverShell::DriverShell(RunRequest request, NodeResources node, ExperimentFolder folder)
    : request_(std::move(request)),
      node_(std::move(node)),
      folder_(std::move(folder)),
      file_work_(kMaxWaitingBytes),
      removals_(kMaxRemovals),
      logger_(folder_.absolute(), spec_, file_work_),
      events_(folder_.absolute(), spec_, file_work_),
      machine_({.ends_with_agent = !takes_machines(spec_.options),
                .store_patience = from_seconds(spec_.options.store_patience_s),
                .lease = from_seconds(spec_.options.lease_s)}),
      silence_watch_(experiment_id_of(spec_)),
      reporter_(request_.reporter) {
  for (SideWork* work : {&file_work_, &removals_}) {
    work->before_each([this] { tune::check_owner(folder_); });
  }
  records_.add_keeper(logger_);
  records_.add_keeper(last_results_);
  records_.add_keeper(events_);
}

// ---- Start --------------------------------------------------------------------------------------

void DriverShell::start() {
  runtime_.emplace();
  if (const std::string how = folder_.taken_over(); !how.empty()) say_early(how);
  start_agent();
  folder_.keep_alive();

  signals_ = std::make_unique<SignalWatch>(
      std::vector<int>{SIGINT, SIGTERM, SIGHUP, kCallerGoneSignal}, last_resort(folder_.path()));
  ControllerSetup setup = controller_setup(spec_, folder_.absolute());
  object_removals_ = ObjectRemovals::open(spec_, setup.experiment.objects);
  open_store();
  if (awaits_agents(spec_.options)) {
    door_.emplace(spec_, folder_.absolute(), request_.keys);
    door_->complete(setup.experiment.joined, zygote_of(request_, node_));
  }
  if (spec_.options.pool.is_given()) {
    pool_.emplace(spec_, folder_.absolute(), checked_engine(spec_, {.is_resumed = !is_new()}),
                  [this](const std::string& text) { say(text); });
  }
  experiment_.emplace(store_->store(), std::move(setup), &records_);
  news_.emplace(spec_, controller().objective(), folder_.path(), reporter_);
  records_.add_watcher([this](const Record& record) {
    silence_watch_.record(record, machine_.experiment_time(now()));
    if (const std::string warning = news_->record(record); !warning.empty()) say(warning);
  });
  experiment_->replay();
  for (const std::string& notice : request_.notices) say(notice);
  if (experiment_->is_new() && !is_new()) {
    say("the journal is empty: the experiment begins anew");
  }
  const std::uint64_t epoch = experiment_->next_epoch();
  endpoint_ = std::make_unique<DriverEndpoint>(address_in(*runtime_), epoch);
  requests_.emplace(runtime_->path());
  requests_->take_orders(*experiment_, experiment_id_of(spec_), machine_);
  record_.requests = requests_->path();
  open_door();
  tune::check_owner(folder_);
  folder_.write_spec(spec_);
  folder_.write_record(record_);
  take_over(epoch);
  let_agent_stay();
  start_loggers(spec_, folder_.absolute(), folder_.path(), loggers_);
}

// Before any thread or socket of ours: a zygote in process must find the program as it stood.
void DriverShell::start_agent() {
  const auto former = is_new() ? std::nullopt : OwnAgent::of(folder_.absolute());
  if (former) {
    const auto notice = [this](const std::string& text) { say_early(text); };
    if (auto kept = kept_agent(*former, folder_, spec_.options, notice)) {
      agent_process_ = std::make_unique<AgentProcess>(std::move(*kept), former->identity());
      return turn_away(request_.zygote);
    }
  }
  claim_resources();
  agent_process_ = std::make_unique<AgentProcess>(own_agent(request_, node_, folder_, *runtime_));
}

// The token is for the person alone: what is said goes into the journal.
void DriverShell::open_door() {
  if (!door_) return;
  door_->open(*endpoint_, *requests_, controller().nodes());
  if (!spec_.options.listen.empty()) reporter_->notice(door_->invitation());
  if (!pool_) return;
  pool_->open(*door_);
  requests_->answer_by("pool",
                       [this](const Value& asked) { return pool_->order(asked, machine_); });
  requests_->answer_by("drain", [this](const Value& asked) {
    const auto answer = pool_->drain(asked, controller(), machine_);
    return answer ? *answer : door_->drain(asked, controller().nodes());
  });
}

// A pool's driver takes nothing: its own agent only loads the trainable, to refuse a bad one.
void DriverShell::claim_resources() {
  if (spec_.options.pool.is_given() && !spec_.options.pool.local) {
    node_.cpu_units = 0;
    node_.gpus.clear();
    return;
  }
  ClaimRequest claim = claim_of(folder_.absolute(), spec_, node_);
  claim.notice = [this](const std::string& text) { say_early(text); };
  claim.meanwhile = [this] { show_life(folder_); };
  node_ = claim_node(*runtime_, claim);
}

void DriverShell::open_store() {
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
void DriverShell::take_over(std::uint64_t epoch) {
  turns_.emplace(*experiment_, machine_, static_cast<TurnEdges&>(*this));
  turns_->take_over(driver_started(spec_, epoch, request_.retry_errored));
  if (door_) door_->expect(epoch, controller(), machine_, now());
  keep_num_samples(controller().num_samples(), spec_, folder_, file_work_);
  machine_.on_agent_started(agent_process_->identity(), now());
  miss_former_agents();
  turns_->run();
  store_->end_start();
}

// No second own agent is started on a host where one lives: others that the journal has are gone.
void DriverShell::miss_former_agents() {
  const Nodes& nodes = controller().nodes();
  for (const AgentNumber agent : nodes.all()) {
    const AgentHello& hello = nodes.hello(agent);
    const bool is_of_here = hello.own && hello.hostname == record_.hostname;
    if (!is_of_here || hello.identity == agent_process_->identity()) continue;
    machine_.on_agent_ended(hello.identity, "it has ended while no driver was there");
  }
}

// It finds this driver, and the next one finds it.
void DriverShell::let_agent_stay() {
  if (!agent_process_->awaits_token()) return;
  const OwnAgent sign(agent_process_->pid(), agent_process_->identity(), runtime_->path());
  sign.write(folder_.absolute());
  agent_process_->tell(door_->token());
}

// ---- Loop ---------------------------------------------------------------------------------------

RunOutcome DriverShell::run() {
  try {
    start();
    loop();
    finish_files();
    const bool stranded = controller().phase() == Phase::kInterrupted;
    if (stranded && !controller().failure().empty()) {
      throw Error(ErrorCode::kProcess, controller().failure());
    }
  } catch (const SupersededError&) {
    if (agent_process_) end_own_agent();  // the folder is the other driver's now
    throw;
  } catch (const Error& error) {
    const bool goes_on = leave_own_agent();
    give_up();
    const bool is_unreadable = error.code() == ErrorCode::kProtocol;
    if (!has_begun() || is_unreadable) throw;  // a resume would end in the same way
    check_place(folder_);                      // the reason for the error where it is gone
    throw Error(error.code(),
                fmt::format("{}; what was done is kept{}, resume it with: {}", error.what(),
                            goes_on ? " and its trials go on meanwhile" : "",
                            how_to_resume(folder_.path())));
  } catch (...) {
    leave_own_agent();
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

void DriverShell::loop() {
  while (!controller().is_over()) {
    read_input(wait_for_input());
    if (machine_.ends_at_once()) return;
    turns_->run();
    act();
    if (has_given_up_) return;
    if (now() - last_flushed_ >= kFlushEvery) {
      if (folder_.seems_lost()) check_place(folder_);
      file_work_.check();
      if (door_) door_->look(controller().nodes(), now());
      look_at_pool();
      for (const std::string& refused : endpoint_->take_refused()) say(refused);
      if (door_) {
        for (const std::string& refused : door_->take_refused()) say(refused);
      }
      for (const std::string& notice : loggers_.take_notices()) say(notice);
      endpoint_->flush(now());
      last_flushed_ = now();
    }
    if (machine_.show_is_due(now()) && may_show()) show(false);
  }
  turns_->run();  // what was said meanwhile
}

// It decides by the journal: when all that it has decided before is there.
void DriverShell::look_at_pool() {
  if (!pool_ || machine_.store_is_silent() || machine_.has_pool_events()) return;
  pool_->look(controller(), machine_, *endpoint_, now());
  if (pool_->why_given_up().empty()) return;
  throw Error(ErrorCode::kBadInput, with_places(spec_, "pool: " + pool_->why_given_up()));
}

DriverShell::MayHaveEnded DriverShell::wait_for_input() {
  const std::int64_t wait =
      machine_.idle_time(now(), controller().next_deadline(), peers()).count();
  const int own_agent = own_agent_ended_ ? -1 : agent_process_->exit_descriptor();
  pollfd watched[] = {{own_agent, POLLIN, 0},
                      {store_->exit_descriptor(), POLLIN, 0},
                      {machine_.room_for_told() > 0 ? endpoint_->descriptor() : -1, POLLIN, 0},
                      {signals_->descriptor(), POLLIN, 0},
                      {proposals_.descriptor(), POLLIN, 0},
                      {requests_->descriptor(), POLLIN, 0},
                      {door_ ? door_->descriptor() : -1, POLLIN, 0},
                      {machine_.store_is_silent() ? store_->answer_descriptor() : -1, POLLIN, 0}};
  const timespec timeout{wait / 1'000'000'000, wait % 1'000'000'000};
  ppoll(watched, std::size(watched), &timeout, nullptr);
  const auto may_have_ended = [](const pollfd& one) { return one.fd < 0 || one.revents != 0; };
  return {.own_agent = may_have_ended(watched[0]), .store = may_have_ended(watched[1])};
}

// Signals are read after the events of agents: a signal that was sent to every process is there
// when the first attempt is reported to have ended by it.
void DriverShell::read_input(MayHaveEnded who) {
  std::string end;
  if (who.own_agent) end = agent_process_->wait(milliseconds(0));
  std::vector<Peers::Told> all = endpoint_->receive(now(), machine_.room_for_told());
  if (door_) {
    all = door_->checked(std::move(all));
    machine_.hold_told(door_->is_looking());
  }
  for (Peers::Told& told : all) machine_.on_told(std::move(told));
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
  own_agent_ended_ = !end.empty();
  const bool may_have_told_more = door_ && door_->is_looking();
  if (own_agent_ended_ && !may_have_told_more) {
    machine_.on_agent_ended(agent_process_->identity(), end);
  }
  requests_->look();
  const std::string how = who.store ? store_->take_end() : std::string();
  if (!how.empty()) machine_.on_server_ended(how);
  machine_.on_time(now(), peers());
}

void DriverShell::act() {
  for (const DriverAction& action : machine_.take_actions()) {
    std::visit([this](const auto& one) { on(one); }, action);
  }
}

void DriverShell::on(const EndAgent&) {
  agent_process_->signal(SIGKILL);  // its workers end with it
}

// After a signal the only message is that the experiment was interrupted.
void DriverShell::on(const GiveUp& action) {
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

// The epoch fences the journal where drivers share a server; two private ones know nothing of each
// other, and would write one append-only file.
void DriverShell::check_owner() {
  if (folder_.is_surely_held()) return;
  refuse_taken(folder_);
  if (!store_->is_private()) return;
  throw StoreSilentError("the lock is silent", fmt::format("the file system of {} does not answer",
                                                           folder_.path().string()));
}

void DriverShell::write_results() {
  records_.flush();
  const bool runs = controller().counts()[static_cast<std::size_t>(TrialStatus::kRunning)] > 0;
  if (launched_ || !runs) return;
  launched_ = true;
  if (is_new()) file_work_.add(0, [this] { folder_.link_latest(); });
}

void DriverShell::remove(const RemoveCheckpoint& checkpoint) {
  const std::filesystem::path trial = logger_.trial_directory(checkpoint.trial);
  removals_.add(1, [trial, id = checkpoint.checkpoint] { remove_checkpoint(trial, id); });
  if (object_removals_) object_removals_->remove(checkpoint.trial, checkpoint.checkpoint);
}

void DriverShell::remove_unrecorded(const Trial& trial, AttemptNumber lost) {
  const std::filesystem::path folder = logger_.trial_directory(trial.number);
  removals_.add(1, [folder, records = trial.checkpoints, lost] {
    tune::remove_unrecorded(folder, records, lost);
  });
  if (object_removals_) object_removals_->remove_unrecorded(trial, lost);
}

// The snapshot stands for the turns that asked for the removals: once it is stored no turn asks for
// them again.
void DriverShell::flush_results(std::future<std::string> state) {
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

std::optional<std::string> DriverShell::flushed_results() {
  if (flushed_.wait_for(milliseconds(0)) != std::future_status::ready) return std::nullopt;
  file_work_.check();  // the reason when there is no state
  removals_.check();
  return flushed_.get();
}

void DriverShell::answer(const OrderAnswer& answer) {
  requests_->answer(answer);
  keep_num_samples(controller().num_samples(), spec_, folder_, file_work_);
}

// Shown at once, whether or not the store answers; it goes into events.jsonl with the next turn.
void DriverShell::say(const std::string& text) {
  reporter_->notice(text);
  machine_.on_notice(text);
}

// The reporter may make a thread: not before the agent is forked. Where nobody reads the line is in
// events.jsonl.
void DriverShell::say_early(const std::string& text) {
  write_if_it_fits(STDERR_FILENO, text + "\n");
  machine_.on_notice(text);
}

// An unusable plugin is refused before there is a table of trials, however long it loads.
bool DriverShell::may_show() const {
  return has_shown_ || controller().has_ready_node();
}

void DriverShell::show(bool final) {
  ExperimentStatus status = experiment_status(spec_, controller(), machine_.experiment_time(now()));
  status.wall = clock_.wall();
  status.directory = folder_.path();
  add_own_node(node_, status);
  const bool store_is_silent = machine_.store_is_silent();
  for (const std::string& line : silence_watch_.look(status.running_for, store_is_silent)) {
    say(line);
  }
  reporter_->status(status, final);
  has_shown_ = true;
  machine_.on_shown(now());
}

RunOutcome run_experiment(RunRequest request) {
  check_addresses(request);
  const NodeResources node = checked_node(request);
  ExperimentFolder folder = start_experiment(request);
  const OnEnd on_end = request.spec.options.on_end;
  const std::filesystem::path directory = folder.path();
  const auto notice = [it = request.reporter](const std::string& text) { it->notice(text); };
  DriverShell driver(std::move(request), node, std::move(folder));
  return run_and_tell(on_end, directory, notice, [&] { return driver.run(); });
}

}  // namespace tune
