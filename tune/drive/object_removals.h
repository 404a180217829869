// ObjectRemovals: removes checkpoints that no record needs from an object store, in a thread of its
// own. The driver never waits for it: what is not removed, as the store is away, waits here, and
// what waits in vain is found by the next look over all of them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/agent_contract.h"
#include "core/checkpoint_name.h"
#include "core/trial.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class ObjectRemovals {
 public:
  static constexpr std::size_t kMaxWaiting = 10'000;

  // For an experiment that keeps its checkpoints in an object store, else null. Asks the store for
  // a proof, before there is a trial, and completes what agents have to know of it. Throws Error
  // (kBadInput).
  static std::unique_ptr<ObjectRemovals> open(const ExperimentSpec& spec, ObjectPlace& place);
  ObjectRemovals(const ObjectPlace& place, std::string experiment_id);
  ~ObjectRemovals();  // what waits is left

  void remove(TrialNumber trial, const CheckpointId& checkpoint);
  // Every checkpoint of the trial's attempts up to `through`, complete or not, without a record.
  void remove_unrecorded(const Trial& trial, AttemptNumber through);
  // No attempt is left: removes all that has no record, and waits for it. False: that took too
  // long.
  bool finish(const std::deque<Trial>& trials, bool at_once);

 private:
  struct Keeper;
  std::unique_ptr<Keeper> keeper_;
};

// Of these objects those of checkpoints that are nobody's: of attempts up to `through` of their
// trial, and not recorded. Pure.
struct TrialObjects {
  std::set<std::string> recorded;  // names of checkpoints
  AttemptNumber through;
};
std::vector<std::string> unrecorded_objects(const std::vector<std::string>& names,
                                            const std::map<std::string, TrialObjects>& trials);

}  // namespace tune
