// RelayLink: an agent's side of the relay (relay_client.h) in a thread of its own, at low priority
// beside the trials that train there. The agent's loop gives it orders and takes their outcomes.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/agent/agent_actions.h"
#include "core/agent/relay_client.h"
#include "core/join_token.h"

namespace tune {

class RelayLink {
 public:
  using Order = std::function<void(RelayClient&, RelayClient::Time now)>;
  // Makes a folder for this agent alone, which goes with it. `mark` is the experiment's, as its
  // driver said it: only a host with that mark takes anything. Throws Error (kIo, kProcess).
  RelayLink(const JoinToken& token, const std::string& address, const std::string& experiment_id,
            const std::string& mark = {});
  ~RelayLink();

  const std::filesystem::path& folder() const;
  void connect(const JoinToken& token, const std::string& address);  // from now on
  void order(Order order);
  // Fetches the experiment's folder `copy`, which holds the plugin alone. Returns the path that the
  // plugin gets on this machine.
  std::filesystem::path fetch_plugin(const std::string& copy, const std::string& file_name);
  void remove(const std::string& folder);  // of this side
  void read_tail(const ReadTail& of, const std::filesystem::path& file);
  int descriptor() const;  // readable while there are outcomes
  std::vector<RelayOutcome> take_outcomes();

 private:
  struct Keeper;
  std::unique_ptr<Keeper> keeper_;
};

}  // namespace tune
