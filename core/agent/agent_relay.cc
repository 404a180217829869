#include "core/agent/agent_relay.h"

#include <unistd.h>

#include <iterator>
#include <random>

#include <fmt/format.h>

#include "core/spawn.h"

namespace tune {
namespace {

// The same host at another port.
std::string relay_address(const std::string& driver_address, std::uint32_t port) {
  return fmt::format("{}:{}", driver_address.substr(0, driver_address.rfind(':')), port);
}

}  // namespace

AgentRelay::AgentRelay(AgentTime now, const JoinToken& token, const Driver& driver,
                       const SetupExperiment& experiment)
    : experiment_id_(experiment.experiment_id),
      experiment_directory_(experiment.experiment_directory),
      object_address_(experiment.objects.address),
      address_(relay_address(driver.address, experiment.joined.relay_port)),
      reach_until_(now + kReach) {
  link_.emplace(token, address_, experiment_id_, driver.mark);
  folder_ = link_->folder();
  zygote_log_ = folder_ / "zygote.log";
  ++awaited_;
  link_->order([](RelayClient& client, RelayClient::Time) { client.greet(); });
  if (!experiment.objects.is_given()) return;
  prove_objects(experiment);
  objects_->order([](ObjectCarrier& carrier) { carrier.keep_stored(); });
}

AgentRelay::AgentRelay(AgentTime now, const SetupExperiment& experiment,
                       const std::string& zygote_log)
    : experiment_id_(experiment.experiment_id),
      experiment_directory_(experiment.experiment_directory),
      object_address_(experiment.objects.address),
      folder_(experiment.experiment_directory),
      zygote_log_(zygote_log),
      reach_until_(now + kReach) {
  if (zygote_log.empty()) {
    objects_.emplace(experiment.objects, folder_, experiment_id_);
  } else {
    prove_objects(experiment);
  }
}

void AgentRelay::prove_objects(const SetupExperiment& experiment) {
  objects_.emplace(experiment.objects, folder_, experiment_id_);
  ++awaited_;
  std::random_device random;
  const std::string name =
      fmt::format(".proof-{:08x}{:08x}", random(), static_cast<std::uint32_t>(::getpid()));
  objects_->order([name](ObjectCarrier& carrier) { carrier.prove(name); });
}

std::string AgentRelay::why_unfit(AgentTime now) const {
  if (!why_no_plugin_.empty()) return why_no_plugin_;
  if (!why_refused_.empty()) {
    return fmt::format("it cannot use the experiment's object store: {}{}", why_refused_,
                       is_of_clock_ ? ""
                                    : ": give this machine the credentials for it, in "
                                      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or "
                                      "~/.aws/credentials");
  }
  if (is_reached() || now < reach_until_) return {};
  const auto waited = kReach / std::chrono::seconds(1);
  if (objects_ && !link_) {
    return fmt::format("the experiment's object store {} has not answered for {} s",
                       object_address_, waited);
  }
  return fmt::format(
      "it does not see the experiment's folder {}, and {}, which carries {} to that folder, has "
      "not answered for {} s: share the folder with this machine at the same path, or open that "
      "port of the driver's host to it{}",
      experiment_directory_, address_, objects_ ? "output" : "checkpoints and output", waited,
      objects_ ? fmt::format("; or the object store {} has not answered", object_address_) : "");
}

void AgentRelay::look(const JoinToken& token, const std::string& driver_address,
                      std::uint32_t port) {
  if (!link_) return;
  address_ = relay_address(driver_address, port);
  link_->connect(token, address_);
}

void AgentRelay::fetch_plugin(const JoinedSetup& setup) {
  fetches_plugin_ = true;
  plugin_of_driver_ = setup.plugin;
  plugin_fingerprint_ = setup.plugin_fingerprint;
  plugin_ = link_->fetch_plugin(setup.plugin_copy, std::filesystem::path(setup.plugin).filename());
}

// ---- The machine's actions ----------------------------------------------------------------------

void AgentRelay::act(const StoreCheckpoint& action) {
  const auto store = [action](auto& carrier) { carrier.store(action.saved, action.share); };
  if (objects_) return objects_->order(store);
  link_->order([store](RelayClient& client, RelayClient::Time) { store(client); });
}

void AgentRelay::act(const FetchCheckpoint& action) {
  const auto fetch = [action](auto& carrier) {
    carrier.fetch(action.trial, action.attempt, action.checkpoint, action.node);
  };
  if (objects_) return objects_->order(fetch);
  link_->order([fetch](RelayClient& client, RelayClient::Time) { fetch(client); });
}

void AgentRelay::act(const GiveUpCheckpoints& action) {
  const auto give_up = [action](auto& carrier) { carrier.give_up(action.trial, action.attempt); };
  if (objects_) return objects_->order(give_up);
  link_->order([give_up](RelayClient& client, RelayClient::Time) { give_up(client); });
}

void AgentRelay::act(const GiveUpRelay&) {
  if (objects_) objects_->order([](ObjectCarrier& carrier) { carrier.give_up_all(); });
  if (link_) {
    link_->order([](RelayClient& client, RelayClient::Time) { client.give_up_all(); });
  }
}

void AgentRelay::act(const ReadTail& action) {
  if (!link_) return;
  link_->read_tail(action, folder_ / trial_id(experiment_id_, action.trial) /
                               rank_file_name("stderr", action.rank));
}

void AgentRelay::follow(const StartWorker& start) {
  if (!link_) return;
  followed_.try_emplace(attempt_key(start.launch.trial, start.launch.attempt));
  const auto ranks =
      static_cast<std::uint32_t>(std::stoul(start.environment.at("LOCAL_WORLD_SIZE")));
  link_->order([trial = start.launch.trial, ranks, first = start.rank](
                   RelayClient& client, RelayClient::Time) { client.follow(trial, ranks, first); });
}

void AgentRelay::conclude(AgentMachine& machine, AgentTime now, const AttemptEnded& ended,
                          std::uint32_t node) {
  const std::string restored =
      restored_place(experiment_id_, ended.trial, ended.attempt, node).place;
  if (objects_) objects_->remove(restored);
  if (!link_) return machine.on_concluded(now, ended);
  const auto end = [trial = ended.trial, is_kept = ended.is_kept](auto& carrier) {
    carrier.on_ended(trial, is_kept);
  };
  if (objects_) {
    objects_->order(end);
  } else {
    link_->remove(restored);
    link_->order([end](RelayClient& client, RelayClient::Time) { end(client); });
  }
  const auto followed = followed_.find(attempt_key(ended.trial, ended.attempt));
  if (followed == followed_.end()) return machine.on_concluded(now, ended);
  followed->second = ended;
  link_->order(
      [trial = ended.trial, attempt = ended.attempt](RelayClient& client, RelayClient::Time at) {
        client.finish_output(at, trial, attempt);
      });
}

// ---- Outcomes -----------------------------------------------------------------------------------

std::vector<std::string> AgentRelay::take_outcomes(AgentMachine& machine, AgentTime now) {
  std::vector<std::string> notices;
  std::vector<RelayOutcome> outcomes;
  if (link_) outcomes = link_->take_outcomes();
  if (objects_) {
    std::vector<RelayOutcome> more = objects_->take_outcomes();
    std::move(more.begin(), more.end(), std::back_inserter(outcomes));
  }
  for (const RelayOutcome& outcome : outcomes) {
    if (std::holds_alternative<RelayReached>(outcome)) {
      --awaited_;
    } else if (const auto* refused = std::get_if<RelayRefused>(&outcome)) {
      why_refused_ = refused->why;
      is_of_clock_ = refused->is_of_clock;
    } else if (const auto* stored = std::get_if<RelayStored>(&outcome)) {
      const bool is_stored = stored->error.empty() && !stored->is_newer;
      machine.on_stored(now, stored->saved, is_stored, stored->error, stored->is_of_trial);
    } else if (const auto* fetched = std::get_if<RelayFetched>(&outcome)) {
      machine.on_fetched(now, fetched->trial, fetched->attempt, fetched->error,
                         fetched->is_of_agent);
    } else if (const auto* plugin = std::get_if<RelayPluginFetched>(&outcome)) {
      fetches_plugin_ = false;
      if (!plugin->error.empty()) {
        why_no_plugin_ = fmt::format(
            "it has no plugin {}, and fetching the driver's copy of it "
            "failed: {}",
            plugin_of_driver_, plugin->error);
      } else if (plugin->fingerprint != plugin_fingerprint_) {
        why_no_plugin_ = fmt::format(
            "it has no plugin {}, and the copy of it in {} is another "
            "file: put the plugin there",
            plugin_of_driver_, experiment_directory_);
      }
    } else if (const auto* tail = std::get_if<RelayTail>(&outcome)) {
      machine.on_tail(now, {tail->trial, tail->attempt, tail->rank}, tail->text);
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
