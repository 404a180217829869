// ObjectCarrier: an agent's checkpoints to and from an object store (core/object_folder.h), where
// the experiment keeps them there. Trials write into a folder of this machine. From there their
// checkpoints are carried to the store; the checkpoint that an attempt begins with is carried here.
// Pure but for the files and the store behind their interfaces.
//
// A store that does not answer, or refuses these credentials, is tried again and again: training
// goes on, and of the checkpoints that wait a trial's newest replaces its older one. Only when that
// lasts is a checkpoint given up.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/folder_pull.h"
#include "core/agent/kept_checkpoints.h"
#include "core/agent/relay_files.h"
#include "core/agent/relay_outcome.h"
#include "core/agent_contract.h"
#include "core/object_folder.h"

namespace tune {

class ObjectCarrier {
 public:
  using Time = FolderPull::Time;
  static constexpr Time kLongestPause = std::chrono::seconds(60);  // from 1 s, doubled each time
  static constexpr Time kTold = std::chrono::seconds(5);  // of failures, then the user is told
  static constexpr Time kStorePatience = std::chrono::minutes(30);
  static constexpr Time kFetchPatience = std::chrono::minutes(5);
  static constexpr int kTries = 5;  // of what is refused for a reason that stays

  ObjectCarrier(RelayFiles& files, ObjectStore& store, std::string experiment_id,
                std::uint64_t piece_bytes = kObjectPieceBytes)
      : files_(files),
        store_(store),
        experiment_id_(std::move(experiment_id)),
        kept_(files_, experiment_id_),
        piece_bytes_(piece_bytes) {}

  // ---- The agent's orders. Each has one outcome.
  void prove(const std::string& name) { proof_ = name; }  // that the store can be used
  // The checkpoint stands complete in the agent's folder; it goes from there when this is over,
  // unless it is kept. The part of a group's stands where its ranks have written it.
  void store(const CheckpointSaved& saved, CheckpointShare share = {});
  void fetch(TrialNumber trial, AttemptNumber attempt, const CheckpointOrigin& checkpoint,
             std::uint32_t node = 0);
  // In a folder of the agent's own, which goes with it, what is stored is kept for its trial.
  void keep_stored() { keeps_ = true; }
  void on_ended(TrialNumber trial, bool is_kept) { kept_.on_ended(trial, is_kept); }
  // Gives up the uploads and the download of this attempt.
  void give_up(TrialNumber trial, AttemptNumber attempt);
  // The same for everything, also what is ordered later: no driver is to come.
  void give_up_all();

  // Makes one request of the store, if there is one to make now. Waits for it.
  void on_time(Time now);
  bool is_idle() const { return proof_.empty() && !upload_ && waiting_.empty() && !has_fetch(); }
  Time next_look(Time now) const;  // when on_time has something to do, as far as is known
  std::vector<RelayOutcome> take_outcomes() { return std::exchange(outcomes_, {}); }

 private:
  struct Order {
    CheckpointSaved saved;
    CheckpointShare share;
  };
  struct Upload {
    Order order;
    bool is_listed = false;
    ObjectManifest manifest;
    ObjectParts parts;  // of those that are put together
    int tries = 0;
    std::optional<Time> failing_since;
  };
  struct Download {
    TrialNumber trial;
    AttemptNumber attempt;
    CheckpointOrigin checkpoint;
    std::uint32_t node = 0;
    std::optional<ObjectParts> parts;
    ObjectPosition next;
    int tries = 0;
    std::optional<Time> failing_since;
  };

  bool has_fetch() const { return download_ || !fetches_.empty(); }
  void step_proof();
  void step_download();
  void begin_download();
  void step_upload();
  void list_upload();
  void join_next();
  void has_failed(Time now, const ObjectError& error);
  void outage(Time now, const ObjectError& error);
  void end_upload(const std::string& error, bool is_newer = false, bool is_of_trial = false);
  void end_download(const std::string& error, bool is_of_agent = false);
  void drop(const Order& order, const std::string& why);
  void remove_own(const Order& order);
  std::string folder_of(const CheckpointOrigin& checkpoint) const;
  std::string own_folder(const Order& order) const;
  RelayPlace place_of(const Download& download) const;
  void notice(std::string text);

  RelayFiles& files_;
  ObjectStore& store_;
  std::string experiment_id_;
  KeptCheckpoints kept_;
  bool keeps_ = false;
  std::uint64_t piece_bytes_;
  std::string proof_;
  std::optional<Upload> upload_;
  std::deque<Order> waiting_;
  std::optional<Download> download_;
  std::deque<Download> fetches_;
  bool is_given_up_ = false;

  // An outage.
  std::optional<Time> failing_since_;
  Time pause_{};
  Time quiet_until_{};
  bool is_told_ = false;
  std::uint64_t times_told_ = 0;
  std::vector<RelayOutcome> outcomes_;
};

}  // namespace tune
