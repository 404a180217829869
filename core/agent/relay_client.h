// RelayClient: an agent's side of the relay, where its machine does not see the experiment's
// folder. Trials write into a folder of the agent's own. From there their checkpoints and output
// are carried to the experiment's folder; the checkpoint that an attempt begins with is carried
// here. Pure but for the files behind its interface.
//
// One checkpoint at a time is on its way. It is finished though newer ones come, as else nothing
// would ever arrive where saving is faster than carrying; of those that wait, a trial's newest
// replaces its older one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/folder_pull.h"
#include "core/agent/kept_checkpoints.h"
#include "core/agent/relay_files.h"
#include "core/agent/relay_outcome.h"
#include "core/agent_contract.h"
#include "core/relay_contract.h"

namespace tune {

class RelayClient {
 public:
  using Time = FolderPull::Time;
  static constexpr Time kAgain = std::chrono::seconds(3);  // without an answer it is said again
  static constexpr int kTries = 5;  // of a checkpoint that is refused; 1, 2, 4, 8 s between them
  static constexpr Time kLook = std::chrono::milliseconds(500);  // at files of output
  // Output that is behind by more is left out, but for the last kOutputKept of it.
  static constexpr std::uint64_t kOutputBehind = 8u << 20;
  static constexpr std::uint64_t kOutputKept = 1u << 20;
  static constexpr Time kOutputGrace = std::chrono::seconds(20);  // after an attempt's end
  static constexpr Time kStands =
      std::chrono::seconds(30);  // without an answer, until that is told

  RelayClient(RelayFiles& files, std::string experiment_id)
      : files_(files), experiment_id_(std::move(experiment_id)), kept_(files_, experiment_id_) {}

  // ---- The agent's orders. Each but follow() has one outcome.
  void greet() { greets_ = true; }
  // The checkpoint stands complete in the agent's folder; it goes from there when this is over,
  // unless it is kept. The part of a group's stands where its ranks have written it.
  void store(const CheckpointSaved& saved, CheckpointShare share = {});
  void fetch(TrialNumber trial, AttemptNumber attempt, const CheckpointOrigin& checkpoint,
             std::uint32_t node = 0);
  void fetch_plugin(const std::string& copy);  // JoinedSetup::plugin_copy
  // Carries the output of `ranks` from now on, those of this node.
  void follow(TrialNumber trial, std::uint32_t ranks, std::uint32_t first_rank = 0);
  void finish_output(Time now, TrialNumber trial, AttemptNumber attempt);
  void on_ended(TrialNumber trial, bool is_kept) { kept_.on_ended(trial, is_kept); }
  // Gives up the uploads and the download of this attempt.
  void give_up(TrialNumber trial, AttemptNumber attempt);
  // The same for everything, also what is ordered later: no driver is to come.
  void give_up_all();

  void on_answer(Time now, const RelayAnswer& answer);
  void on_time(Time now);
  std::vector<RelayRequest> take_requests() { return std::exchange(requests_, {}); }
  std::vector<RelayOutcome> take_outcomes() { return std::exchange(outcomes_, {}); }

 private:
  struct Order {
    CheckpointSaved saved;
    CheckpointShare share;
  };
  struct Store {
    Order order;
    OfferFolder offer;  // its number is 0 until it is listed
    int tries = 0;
    Time next{};  // when it is offered, or offered again
  };
  struct Fetch {
    TrialNumber trial;
    AttemptNumber attempt;
    FetchFolder said;
    RelayPlace place;                // where it is put
    std::optional<FolderPull> pull;  // what is there is known
    Time next{};
  };
  struct Stream {                        // a file of output
    std::uint64_t sent = 0;              // of the agent's file
    std::optional<std::uint64_t> after;  // size of the experiment's file; nothing: not known
    RelayOutput asked;                   // number 0: nothing is on its way
    std::uint64_t carries = 0;           // of the agent's file, in that
    Time next{};
  };
  struct Output {
    std::map<std::string, Stream> streams;                  // by name
    std::vector<std::pair<AttemptNumber, Time>> finishing;  // attempts, and until when
    std::uint32_t attempts = 0;                             // followed, whose output is not done
  };

  void hear(Time now, const RelayHello& hello);
  void hear(Time now, const FolderStored& stored);
  void hear(Time now, const FolderFound& found);
  void hear(Time now, const OutputTaken& taken);
  void hear(Time now, const WantPiece& wanted);
  void hear(Time now, const RelayPiece& piece);
  void offer(Time now);
  void end_store(const std::string& error, bool is_newer = false, bool is_of_trial = false);
  void drop(const Order& order, const std::string& why);
  std::string own_folder(const Order& order) const;
  void remove_own(const Order& order);
  void ask(Time now);
  void end_fetch(const std::string& error, bool is_of_agent = false);
  void end(const Fetch& fetch, const std::string& error, bool is_of_agent = false);
  bool look(Time now, TrialNumber trial, Output& output);
  bool has_come(TrialNumber trial, const std::string& name, const Stream& stream);
  void forget(TrialNumber trial);
  void tell_of_rest(TrialNumber trial, const Output& output);
  void send_output(Time now, TrialNumber trial, const std::string& name, Stream& stream);
  template <class Kind>
  void say(Kind request) {
    requests_.emplace_back(std::in_place_type<Kind>, std::move(request));
  }
  template <class Kind>
  void end(Kind outcome) {
    outcomes_.emplace_back(std::in_place_type<Kind>, std::move(outcome));
  }
  void notice(const std::string& text);
  bool waits_for_answer() const;
  std::string trial_folder(TrialNumber trial) const { return trial_id(experiment_id_, trial); }
  RelayPlace place_of(const CheckpointSaved& saved) const {
    return checkpoint_place(experiment_id_, {saved.trial, saved.iteration, saved.attempt});
  }

  RelayFiles& files_;
  std::string experiment_id_;
  KeptCheckpoints kept_;
  std::uint64_t last_number_ = 0;
  bool greets_ = false;
  bool is_given_up_ = false;
  Time greet_at_{};
  std::optional<Store> store_;
  std::deque<Order> waiting_;
  std::optional<Fetch> fetch_;
  std::deque<Fetch> fetches_;
  std::map<TrialNumber, Output> outputs_;  // of trials that run here, or whose output is behind
  std::optional<Time> unheard_since_;      // with something on its way
  std::vector<std::string> told_;
  bool rest_is_told_ = false;
  std::vector<RelayRequest> requests_;
  std::vector<RelayOutcome> outcomes_;
};

}  // namespace tune
