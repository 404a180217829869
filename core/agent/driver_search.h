// DriverSearch: how an agent that has joined finds its drivers: the first by its token, each later one
// at the same address, or by the token in the experiment's join file, which that driver has written.
//
// A driver that comes back may have another port, or another host. A listening agent would be found by
// it, but nodes never listen. So an agent that hears none reads the join file again and again, beside
// its loop. The file is gone when a driver has ended in order: then no other is to come.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/agent_machine.h"
#include "core/agent_contract.h"
#include "core/platform/file_worker.h"
#include "core/platform/transport.h"

namespace tune {

class DriverSearch {
 public:
  static constexpr AgentTime kSilence = std::chrono::seconds(3);    // before it looks for another
  static constexpr AgentTime kLookEvery = std::chrono::seconds(2);  // at the file

  // The parts outlive it.
  struct Parts {
    AgentMachine& machine;
    AgentEndpoint& endpoint;
    FileWorker& files;
  };
  DriverSearch(const JoinOptions& join, AgentTime now);

  // Once a turn of the agent's loop.
  void look(AgentTime now, const Parts& parts);
  // The first driver is found. False: it was already.
  bool on_found(const SetupExperiment& setup);
  void take_token(const std::string& text, const Parts& parts);

  const std::string& failure() const { return failure_; }  // there is no driver for it
  const JoinToken& token() const { return token_; }        // the newest

  // The newest of the tokens in these files that are of that experiment; nothing: there is none.
  static std::optional<JoinToken> newest(const std::vector<std::filesystem::path>& files,
                                         const JoinToken& own);

 private:
  void look_for_first(AgentTime now, const AgentEndpoint& endpoint);
  void look_at_files(AgentTime now, const Parts& parts);
  void take_found(AgentTime now, const Parts& parts);
  void connect_by(const JoinToken& token, AgentEndpoint& endpoint);

  const JoinOptions& join_;
  JoinToken token_;
  std::optional<AgentTime> find_until_;  // nothing: it was found
  std::uint64_t epoch_ = 0;              // of the driver that was heard last
  std::filesystem::path experiment_;
  JoinedSetup setup_;
  // In the files.
  struct Found {
    std::optional<JoinToken> token;
    bool is_over = false;
  };
  AgentTime looked_{};
  bool looks_ = false;  // beside the loop
  std::optional<Found> found_;
  std::string failure_;
};

}  // namespace tune
