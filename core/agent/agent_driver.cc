#include <fmt/format.h>

#include "core/agent/agent_shell.h"
#include "core/agent/joining.h"
#include "core/agent/own_stay.h"
#include "core/agent/worker_command.h"
#include "core/error.h"
#include "core/platform/node_claims.h"

namespace tune {

// An order to end, and the token by which to come back, wait for no file system.
void AgentShell::take_commands() {
  for (Command& command : endpoint_->receive()) {
    const auto* token = std::get_if<NewToken>(&command);
    if (token != nullptr && search_) search_->take_token(now_, token->token, search_parts());
    if (std::holds_alternative<Shutdown>(command)) {
      take(std::move(command));
    } else {
      waiting_.push_back(std::move(command));
    }
  }
  take_waiting();
}

void AgentShell::take_waiting() {
  while (!waiting_.empty() && !is_looking_) {
    Command command = std::move(waiting_.front());
    waiting_.pop_front();
    take(std::move(command));
  }
}

void AgentShell::take(Command command) {
  const auto* setup = std::get_if<Apart<SetupExperiment>>(&command);
  if (setup != nullptr && !seen_folder_.empty()) return look_at_folder(std::move(**setup));
  if (setup != nullptr) return set_up(**setup);
  machine_.on_command(now_, std::move(command));
  perform();
}

void AgentShell::set_up(const SetupExperiment& setup) {
  const bool is_guest = options_.join.has_value();
  experiment_ = as_found_by(options_, setup);
  links_.set_up(setup.joined, is_guest ? endpoint_->address() : "");
  if (!is_guest) carry_objects();
  if (relay_ && takes_part_) experiment_.experiment_directory = relay_->folder();
  const bool is_first = search_ && search_->on_found(experiment_);
  if (is_first && !is_guest) seen_folder_ = setup.experiment_directory;
  if (is_first) proven_epoch_ = endpoint_->driver_epoch();
  machine_.on_command(now_, setup);
  perform();
  if (is_first && is_guest) take_part();
}

// ---- A later driver's folder --------------------------------------------------------------------

// It may be a copy on another host. Then what is written here never gets there, and to say that it
// is stored would let that driver remove what it has.
void AgentShell::look_at_folder(SetupExperiment setup) {
  is_looking_ = true;
  files_->give([this, setup, former = seen_folder_, epoch = endpoint_->driver_epoch()] {
    const bool is_seen = sees_still(former, setup);
    return [this, setup, epoch, is_seen] {
      is_looking_ = false;
      if (is_seen) {
        proven_epoch_ = epoch;
        set_up(setup);
      } else {
        leave_folder();
      }
      take_waiting();
    };
  });
}

// The trials' processes write there, so they end. The agent joins anew, and uses the relay.
void AgentShell::leave_folder() {
  has_lost_folder_ = true;
  machine_.on_command(
      now_,
      Shutdown{"its driver has the experiment's folder where this machine does not see it", true});
  tell_promoted("this machine does not see the experiment's folder any more");
  perform();
}

bool AgentShell::awaits_proof() const {
  const bool is_other = endpoint_->driver_epoch() != proven_epoch_;
  return !seen_folder_.empty() && search_ && is_other && machine_.stays();
}

void AgentShell::on_promoted(const CheckpointSaved& saved, const std::string& error) {
  promoted_.push_back({saved, error});
  if (has_lost_folder_) return tell_promoted("this machine does not see the experiment's folder");
  if (!awaits_proof()) tell_promoted({});
}

// `error`: whatever became of each.
void AgentShell::tell_promoted(const std::string& error) {
  for (const Promoted& one : std::exchange(promoted_, {})) {
    machine_.on_promoted(now_, one.saved, error.empty() ? one.error : error);
  }
}

// One that outlives its driver hears where it listens; from then on that driver is one of several.
void AgentShell::hear_driver() {
  if (const auto token = token_of_driver(options_.driver_alive_fd)) {
    join_ = JoinOptions{.token = *token, .name = options_.stays_as};
    search_.emplace(*join_, now_, true);
    endpoint_->join_by(*token);
    files_->give([folder = options_.runtime_directory] {
      show_that_it_stays(folder);
      return [] {};
    });
    return;
  }
  driver_gone_ = true;
  if (!search_) {
    machine_.on_driver_gone(now_);
    return perform();
  }
  files_->give([folder = options_.runtime_directory] {
    take_claim_over(folder);
    return [] {};
  });
}

void AgentShell::end_stay_if_due() {
  if (!join_ || machine_.stays() || std::exchange(stay_is_over_, true)) return;
  files_->give([folder = options_.runtime_directory] {
    show_that_it_ends(folder);
    return [] {};
  });
}

// The driver's own agent sees the experiment's folder, and the driver has proved the store.
void AgentShell::carry_objects() {
  if (!experiment_.objects.is_given() || relay_) return;
  relay_.emplace(now_, experiment_, "");
  takes_part_ = true;
  machine_.on_own_folder(relay_->folder(), false);
}

// ---- Joining ------------------------------------------------------------------------------------

// The experiment is known: looks, beside the loop, whether this machine can take part.
void AgentShell::take_part() {
  is_looking_ = true;
  files_->give([this, folder = experiment_.experiment_directory, setup = experiment_.joined] {
    const Participation part = prepare_to_join(folder, setup, options_.hostname);
    return [this, folder, part] {
      is_looking_ = false;
      if (part.sees_folder) {
        seen_folder_ = folder;
      } else {
        search_->on_folder_not_seen();
      }
      take_part(part);
      perform();
      take_waiting();
    };
  });
}

void AgentShell::take_part(const Participation& part) {
  is_unfit_ = !part.unfit.empty();
  if (is_unfit_) return machine_.on_unfit(now_, part.unfit);
  for (const std::string& note : part.notes) endpoint_->send(Warning{note});
  const JoinedSetup& setup = experiment_.joined;
  zygote_command_ = part.zygote_command;
  zygote_environment_ = zygote_environment_on(options_.resources, setup.worker_environment);
  if (part.sees_folder && !experiment_.objects.is_given()) {
    return begin_part(seen_folder_, part.zygote_log);
  }
  try {
    if (part.sees_folder) {
      relay_.emplace(now_, experiment_, part.zygote_log);
    } else {
      const AgentRelay::Driver driver{endpoint_->address(), endpoint_->mark()};
      relay_.emplace(now_, search_->token(), driver, experiment_);
    }
    if (part.fetches_plugin) relay_->fetch_plugin(setup);
  } catch (const Error& error) {
    is_unfit_ = true;
    machine_.on_unfit(now_, error.what());
  }
}

void AgentShell::begin_part(const std::filesystem::path& folder, const std::string& zygote_log) {
  takes_part_ = true;
  zygote_log_ = zygote_log;
  if (options_.join->say) options_.join->say("joined the experiment in " + folder.string());
  memory_.emplace(experiment_.joined.trial_memory_bytes);
  tell_of_memory(memory_->why_not());
  machine_.start(now_);
}

// This machine takes part when the relay is known to work.
void AgentShell::look_at_relay() {
  if (search_) relay_->look(search_->token(), endpoint_->address(), experiment_.joined.relay_port);
  for (const std::string& notice : relay_->take_outcomes(machine_, now_)) {
    endpoint_->send(Warning{fmt::format("{}: {}", options_.hostname, notice)});
  }
  const std::string why = relay_->why_unfit(now_);
  if (!takes_part_ && !is_unfit_ && relay_->is_ready() && why.empty()) {
    const std::string folder = std::exchange(experiment_.experiment_directory, relay_->folder());
    machine_.on_own_folder(relay_->folder(), !relay_->sees_experiment());
    if (!relay_->plugin().empty()) zygote_command_ = worker_command(relay_->plugin());
    begin_part(folder, relay_->zygote_log());
  } else if (!is_unfit_ && !why.empty()) {
    is_unfit_ = true;
    machine_.on_unfit(now_, why);
  }
  perform();
}

}  // namespace tune
