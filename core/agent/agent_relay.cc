#include "core/agent/agent_relay.h"

#include <fmt/format.h>

namespace tune {
namespace {

// The same host at another port.
std::string relay_address(const std::string& driver_address, std::uint32_t port) {
  return fmt::format("{}:{}", driver_address.substr(0, driver_address.rfind(':')), port);
}

}  // namespace

AgentRelay::AgentRelay(AgentTime now, const JoinToken& token, const std::string& driver_address,
                       const SetupExperiment& experiment)
    : experiment_id_(experiment.experiment_id),
      experiment_directory_(experiment.experiment_directory),
      address_(relay_address(driver_address, experiment.joined.relay_port)),
      reach_until_(now + kReach),
      link_(token, address_, experiment_id_) {
  link_.order([](RelayClient& client, RelayClient::Time) { client.greet(); });
}

std::string AgentRelay::why_unfit(AgentTime now) const {
  if (!why_no_plugin_.empty()) return why_no_plugin_;
  if (is_reached_ || now < reach_until_) return {};
  return fmt::format(
      "it does not see the experiment's folder {}, and {}, which carries checkpoints and output "
      "to that folder, has not answered for {} s: share the folder with this machine at the same "
      "path, or open that port of the driver's host to it",
      experiment_directory_, address_,
      std::chrono::seconds(kReach / std::chrono::seconds(1)).count());
}

void AgentRelay::look(const JoinToken& token, const std::string& driver_address,
                      std::uint32_t port) {
  address_ = relay_address(driver_address, port);
  link_.connect(token, address_);
}

void AgentRelay::fetch_plugin(const JoinedSetup& setup) {
  fetches_plugin_ = true;
  plugin_of_driver_ = setup.plugin;
  plugin_ = folder() / kFetchedPlugin / std::filesystem::path(setup.plugin).filename();
  link_.order([copy = setup.plugin_copy](RelayClient& client, RelayClient::Time) {
    client.fetch_plugin(copy);
  });
}

// ---- The machine's actions ----------------------------------------------------------------------

void AgentRelay::act(const StoreCheckpoint& action) {
  link_.order(
      [saved = action.saved](RelayClient& client, RelayClient::Time) { client.store(saved); });
}

void AgentRelay::act(const FetchCheckpoint& action) {
  link_.order([action](RelayClient& client, RelayClient::Time) {
    client.fetch(action.trial, action.attempt, action.checkpoint);
  });
}

void AgentRelay::act(const GiveUpCheckpoints& action) {
  link_.order([action](RelayClient& client, RelayClient::Time) {
    client.give_up(action.trial, action.attempt);
  });
}

void AgentRelay::act(const GiveUpRelay&) {
  link_.order([](RelayClient& client, RelayClient::Time) { client.give_up_all(); });
}

void AgentRelay::follow(const WorkerLaunch& launch) {
  followed_.try_emplace(attempt_key(launch.trial, launch.attempt));
  link_.order([trial = launch.trial, ranks = launch.ranks](RelayClient& client, RelayClient::Time) {
    client.follow(trial, ranks);
  });
}

void AgentRelay::conclude(AgentMachine& machine, AgentTime now, const AttemptEnded& ended) {
  link_.remove(restored_place(experiment_id_, ended.trial, ended.attempt).place);
  const auto followed = followed_.find(attempt_key(ended.trial, ended.attempt));
  if (followed == followed_.end()) return machine.on_concluded(now, ended);
  followed->second = ended;
  link_.order(
      [trial = ended.trial, attempt = ended.attempt](RelayClient& client, RelayClient::Time at) {
        client.finish_output(at, trial, attempt);
      });
}

// ---- Outcomes -----------------------------------------------------------------------------------

std::vector<std::string> AgentRelay::take_outcomes(AgentMachine& machine, AgentTime now) {
  std::vector<std::string> notices;
  for (const RelayOutcome& outcome : link_.take_outcomes()) {
    if (std::holds_alternative<RelayReached>(outcome)) {
      is_reached_ = true;
    } else if (const auto* stored = std::get_if<RelayStored>(&outcome)) {
      const bool is_stored = stored->error.empty() && !stored->is_newer;
      machine.on_stored(now, stored->saved, is_stored, stored->error);
    } else if (const auto* fetched = std::get_if<RelayFetched>(&outcome)) {
      machine.on_fetched(now, fetched->trial, fetched->attempt, fetched->error,
                         fetched->is_of_agent);
    } else if (const auto* plugin = std::get_if<RelayPluginFetched>(&outcome)) {
      fetches_plugin_ = false;
      if (!plugin->error.empty()) {
        why_no_plugin_ = fmt::format("it has no plugin {}, and fetching the driver's copy of it "
                                     "failed: {}",
                                     plugin_of_driver_, plugin->error);
      }
    } else if (const auto* done = std::get_if<RelayOutputDone>(&outcome)) {
      const auto ended = followed_.extract(attempt_key(done->trial, done->attempt));
      if (!ended.empty()) machine.on_concluded(now, ended.mapped());
    } else {
      notices.push_back(std::get<RelayNotice>(outcome).text);
    }
  }
  return notices;
}

}  // namespace tune
