#include "tune/drive/object_removals.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "core/checkpoint_name.h"
#include "core/object_folder.h"
#include "core/platform/deaf_thread.h"
#include "core/platform/s3_store.h"
#include "tune/results/object_checkpoints.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kRemovalPause{1000}, kLongestRemovalPause{60'000};
constexpr milliseconds kRemovalsEnd{20'000}, kRemovalsEndAtOnce{500};
constexpr int kRemovalTries = 8;  // of a removal; what stays is found by the next look

}  // namespace

std::vector<std::string> unrecorded_objects(const std::vector<std::string>& names,
                                            const std::map<std::string, TrialObjects>& trials) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const std::size_t slash = name.find('/');
    const auto trial = trials.find(name.substr(0, slash));
    if (slash == name.npos || trial == trials.end()) continue;
    const std::string checkpoint = name.substr(slash + 1, name.find('/', slash + 1) - slash - 1);
    const auto id = checkpoint_of_name(checkpoint);
    const auto& [recorded, through] = trial->second;
    if (id && id->attempt <= through && !recorded.contains(checkpoint)) found.push_back(name);
  }
  return found;
}

struct ObjectRemovals::Keeper {
  Keeper(const ObjectPlace& place, std::string experiment)
      : store({place.address, place.endpoint, place.region}),
        experiment_id(std::move(experiment)) {}

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      woken.wait(lock, [this] { return ends || !folders.empty() || !trials.empty(); });
      if (ends) return;
      const auto due = std::exchange(folders, {});
      const auto looked_at = std::exchange(trials, {});
      is_busy = true;
      lock.unlock();
      for (const std::string& folder : due) {
        tried([&] { remove_folder(store, folder); });
      }
      if (!looked_at.empty()) {
        tried([&] { remove_objects(store, unrecorded_objects(names_of(looked_at), looked_at)); });
      }
      lock.lock();
      is_busy = false;
      done.notify_all();
    }
  }

  // One listing of all, where several trials are asked about: a resume asks about each.
  std::vector<std::string> names_of(const std::map<std::string, TrialObjects>& of) {
    return all_names(store, of.size() == 1 ? of.begin()->first + "/" : "");
  }

  template <class What>
  void tried(What what) {
    milliseconds pause = kRemovalPause;
    for (int tries = 0; tries < kRemovalTries; ++tries) {
      try {
        return what();
      } catch (const ObjectError& error) {
        if (!error.may_pass()) return;
      }
      std::unique_lock lock(mutex);
      if (woken.wait_for(lock, pause, [this] { return ends; })) return;
      pause = std::min(2 * pause, kLongestRemovalPause);
    }
  }

  S3Store store;
  std::string experiment_id;
  std::mutex mutex;  // of all that follows
  std::condition_variable woken, done;
  std::deque<std::string> folders;
  std::map<std::string, TrialObjects> trials;  // by id
  bool is_busy = false;
  bool ends = false;
  std::thread thread;
};

std::unique_ptr<ObjectRemovals> ObjectRemovals::open(const ExperimentSpec& spec,
                                                     ObjectPlace& place) {
  const std::string address =
      object_address(spec.options.checkpoint_storage, store_prefix_of(spec));
  if (address.empty()) return nullptr;
  ObjectCheckpoints(address).prove();
  place = object_place(address);
  return std::make_unique<ObjectRemovals>(place, experiment_id_of(spec));
}

ObjectRemovals::ObjectRemovals(const ObjectPlace& place, std::string experiment_id)
    : keeper_(std::make_unique<Keeper>(place, std::move(experiment_id))) {
  keeper_->thread = deaf_thread([keeper = keeper_.get()] { keeper->work(); });
}

ObjectRemovals::~ObjectRemovals() {
  {
    const std::lock_guard lock(keeper_->mutex);
    keeper_->ends = true;
  }
  keeper_->store.abandon();
  keeper_->woken.notify_all();
  keeper_->thread.join();
}

void ObjectRemovals::remove(TrialNumber trial, const CheckpointId& checkpoint) {
  const std::lock_guard lock(keeper_->mutex);
  if (keeper_->folders.size() >= kMaxWaiting) return;
  keeper_->folders.push_back(trial_id(keeper_->experiment_id, trial) + "/" +
                             checkpoint_name(checkpoint.iteration, checkpoint.attempt));
  keeper_->woken.notify_all();
}

void ObjectRemovals::remove_unrecorded(const Trial& trial, AttemptNumber through) {
  TrialObjects objects{{}, through};
  for (const CheckpointRecord& record : trial.checkpoints) {
    if (!record.origin) {
      objects.recorded.insert(checkpoint_name(record.iteration, record.attempt));
    }
  }
  const std::lock_guard lock(keeper_->mutex);
  keeper_->trials[trial_id(keeper_->experiment_id, trial.number)] = std::move(objects);
  keeper_->woken.notify_all();
}

bool ObjectRemovals::finish(const std::deque<Trial>& trials, bool at_once) {
  for (const Trial& trial : trials) remove_unrecorded(trial, AttemptNumber{UINT32_MAX});
  const milliseconds limit = at_once ? kRemovalsEndAtOnce : kRemovalsEnd;
  std::unique_lock lock(keeper_->mutex);
  return keeper_->done.wait_for(lock, limit, [this] {
    return !keeper_->is_busy && keeper_->folders.empty() && keeper_->trials.empty();
  });
}

}  // namespace tune
