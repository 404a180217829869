// KeptCheckpoints: what a machine that does not see the experiment's folder keeps of checkpoints
// that it has stored: the newest of each trial that runs here, and of the few that were paused here
// or failed last. A trial that goes on here begins with it, and nothing is carried. Pure but for
// the files.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "core/agent/relay_files.h"
#include "core/contract_values.h"
#include "core/ids.h"

namespace tune {

class KeptCheckpoints {
 public:
  static constexpr std::size_t kMostWaiting = 4;  // trials

  KeptCheckpoints(RelayFiles& files, std::string experiment_id)
      : files_(files), experiment_id_(std::move(experiment_id)) {}

  // It stands here under its name, and is stored. An older one of its trial goes.
  void keep(const CheckpointOrigin& checkpoint);
  // An attempt has ended here.
  void on_ended(TrialNumber trial, bool is_kept);
  // An attempt of the trial begins here with that checkpoint. True: it was kept, and stands at the
  // place now. Else nothing of the trial is kept any more.
  bool give(TrialNumber trial, const CheckpointOrigin& checkpoint, const RelayPlace& place);

 private:
  void drop(TrialNumber trial);
  std::string folder_of(const CheckpointOrigin& checkpoint) const {
    return checkpoint_place(experiment_id_, checkpoint).place;
  }

  RelayFiles& files_;
  std::string experiment_id_;
  std::map<TrialNumber, CheckpointOrigin> kept_;
  std::deque<TrialNumber> waiting_;  // of these, the oldest first
};

}  // namespace tune
