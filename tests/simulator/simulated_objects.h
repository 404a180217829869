// Checkpoints in an object store: the real ObjectCarrier of an agent, with files of its node and a
// store that is slow, away and never half-hearted: a request is carried out or not.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/agent/object_carrier.h"
#include "simulator/world.h"

namespace tune::simulator {

class SimulatedObjects {
 public:
  SimulatedObjects(World& world, Where where);
  ~SimulatedObjects();

  ObjectCarrier& carrier();

 private:
  struct Files;
  struct Store;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ObjectCarrier> carrier_;
};

// What the driver's side does, a moment later (tune/drive/object_removals.h).
void remove_objects_of(World& world, TrialNumber trial, const CheckpointId& id);

}  // namespace tune::simulator
