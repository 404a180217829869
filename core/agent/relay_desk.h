// RelayDesk: the driver's side of the relay, for all agents that do not see the experiment's
// folder: it takes their checkpoints and output into the folder, and gives checkpoints and the
// plugin out of it.
// Pure but for the files behind its interface.
//
// Its state of an agent may be lost at any time, as when the driver dies: the agent says again
// what it wants.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/folder_pull.h"
#include "core/agent/relay_files.h"
#include "core/relay_contract.h"

namespace tune {

class RelayDesk {
 public:
  using Time = FolderPull::Time;
  // So many checkpoints come at once, whatever the number of agents: a bound on memory, with
  // FolderPull::kMaxAsked. Others wait their turn.
  static constexpr std::size_t kMaxPulls = 8;
  static constexpr Time kSilence = std::chrono::seconds(30);    // then an agent's turn is over
  static constexpr Time kForgotten = std::chrono::minutes(10);  // the same for all it said

  RelayDesk(RelayFiles& files, std::string experiment_id)
      : files_(files), experiment_id_(std::move(experiment_id)) {}

  void on_request(Time now, const std::string& agent, const RelayRequest& request);
  // Call it when everything that has come is told.
  void on_time(Time now);
  // Answers since the last call, in order, with the agent that each is for.
  std::vector<std::pair<std::string, RelayAnswer>> take_answers();

 private:
  struct Offer {  // an agent's newest
    OfferFolder said;
    Time heard{};
    std::optional<FolderPull> pull;      // while it has its turn
    std::optional<FolderStored> answer;  // when it is over
  };
  struct Peer {
    Time heard{};
    std::optional<Offer> offer;
    std::optional<FetchFolder> fetch;  // the newest
    FolderFound found;                 // the answer to it
  };

  void hear(Time now, const std::string& agent, const RelayHello& hello);
  void hear(Time now, const std::string& agent, const OfferFolder& offered);
  void hear(Time now, const std::string& agent, const FetchFolder& fetch);
  void hear(Time now, const std::string& agent, const RelayOutput& output);
  void hear(Time now, const std::string& agent, const WantPiece& wanted);
  void hear(Time now, const std::string& agent, const RelayPiece& piece);
  void begin_next(Time now);
  void ask(Time now, const std::string& agent, Offer& offer);
  void commit(const std::string& agent, Offer& offer);
  void remove_older_parts(const OfferFolder& offered);
  void join(const std::string& agent, Offer& offer);
  void end(const std::string& agent, Offer& offer, const std::string& error,
           bool is_of_trial = false);
  void drop(Offer& offer);
  void answer(const std::string& agent, RelayAnswer answer);
  RelayPlace place_of(const OfferFolder& offered) const;
  std::string folder_of(const FetchFolder& fetch) const;

  RelayFiles& files_;
  std::string experiment_id_;
  std::map<std::string, Peer> peers_;
  std::deque<std::string> waiting_;  // agents, for a turn
  std::size_t pulls_ = 0;
  std::vector<std::pair<std::string, RelayAnswer>> answers_;
};

}  // namespace tune
