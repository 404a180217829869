// DriverSearch: how an agent that outlives its driver finds drivers: the first by its token, each
// later one at the same address, or by the token in the experiment's join file, which that driver
// has written.
//
// A driver that comes back may have another port, or another host. A listening agent would be found
// by it, but nodes never listen. So an agent that hears none reads the join file again and again,
// beside its loop. The file is gone when a driver has ended in order: then no other is to come. Nor
// is one where the experiment's folder is gone, if the agent has seen it.
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

// The token to connect by, of those that files hold for one experiment. Pure.
//
// A token that was not there before is the newest. Of others any may be the right one, so each is
// tried in turn. The simpler way, by the times of the files, fails where clocks differ: a file of
// this machine whose clock is hours ahead would for ever be newer than the one that a driver writes
// elsewhere.
class TokenChoice {
 public:
  static constexpr AgentTime kTryEach = std::chrono::seconds(10);

  explicit TokenChoice(JoinToken first)
      : first_(std::move(first)), current_(first_), known_{first_} {}
  const JoinToken& current() const { return current_; }
  // Nothing: the current one.
  std::optional<JoinToken> next(AgentTime now, const std::vector<JoinToken>& found);
  void take(AgentTime now, const JoinToken& token);

 private:
  JoinToken first_;
  JoinToken current_;
  AgentTime taken_{};
  std::vector<JoinToken> known_;
};

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
  DriverSearch(const JoinOptions& join, AgentTime now, bool sees_folder = false);

  // Once a turn of the agent's loop.
  void look(AgentTime now, const Parts& parts);
  // The first driver is found. False: it was already.
  bool on_found(const SetupExperiment& setup);
  // What stands at the experiment's path is another folder, and tells nothing of its end.
  void on_folder_not_seen() { may_see_folder_ = false; }
  void take_token(AgentTime now, const std::string& text, const Parts& parts);

  const std::string& failure() const { return failure_; }  // there is no driver for it
  const JoinToken& token() const { return tokens_.current(); }

  // The tokens in these files that are of that experiment.
  static std::vector<JoinToken> tokens_in(const std::vector<std::filesystem::path>& files,
                                          const JoinToken& own);

 private:
  void look_for_first(AgentTime now, const AgentEndpoint& endpoint);
  void look_at_files(AgentTime now, const Parts& parts);
  void take_found(AgentTime now, const Parts& parts);
  void connect_by(AgentTime now, const JoinToken& token, AgentEndpoint& endpoint);
  void look_at_another(AgentTime now, const Parts& parts);

  const JoinOptions& join_;
  bool sees_folder_;  // for certain
  bool may_see_folder_ = true;
  TokenChoice tokens_;
  std::optional<AgentTime> find_until_;  // nothing: it was found
  std::uint64_t epoch_ = 0;              // of the driver that was heard last
  std::filesystem::path experiment_;
  JoinedSetup setup_;
  // In the files.
  struct Found {
    std::vector<JoinToken> tokens;
    bool is_over = false;
  };
  AgentTime looked_{};
  bool looks_ = false;  // beside the loop
  std::optional<Found> found_;
  std::string failure_;
  std::string another_;  // experiment that answers, and was told of
};

}  // namespace tune
