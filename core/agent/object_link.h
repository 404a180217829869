// ObjectLink: an agent's checkpoints to and from an object store (object_carrier.h) in a thread of
// its own, at low priority beside the trials that train there. The agent's loop gives it orders and
// takes their outcomes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/agent/object_carrier.h"
#include "core/agent_contract.h"

namespace tune {

class ObjectLink {
 public:
  using Order = std::function<void(ObjectCarrier&)>;
  // Checkpoints are written below `folder`. Throws Error (kBadInput, kProcess).
  ObjectLink(const ObjectPlace& place, const std::filesystem::path& folder,
             const std::string& experiment_id);
  ~ObjectLink();  // what is on its way stays half there, without a manifest

  void order(Order order);
  void remove(const std::string& folder);  // of this machine
  int descriptor() const;                  // readable while there are outcomes
  std::vector<RelayOutcome> take_outcomes();

 private:
  struct Keeper;
  std::unique_ptr<Keeper> keeper_;
};

}  // namespace tune
