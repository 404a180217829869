// ObjectCheckpoints: an experiment's checkpoints in an object store (core/object_folder.h), for
// programs that have its folder: the driver, and later readers. Every call waits for the store,
// and tries again for some seconds where that may help.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "core/agent_contract.h"
#include "core/platform/s3_store.h"

namespace tune {

class ObjectCheckpoints {
 public:
  // Throws Error (kBadInput) when `address` is not one.
  explicit ObjectCheckpoints(const std::string& address) : store_({address}), address_(address) {}

  // That it can be written, listed and read with these credentials. Throws Error (kBadInput).
  void prove();
  // The names of a trial's complete checkpoints. Throws ObjectError.
  std::set<std::string> names(const std::string& trial_id);
  // Puts a checkpoint into that folder, under its name. Throws Error (kIo).
  void fetch(const std::string& trial_id, const std::string& name,
             const std::filesystem::path& trial_directory);

 private:
  S3Store store_;
  std::string address_;
};

// The place for agents. The endpoint and region are this process's; credentials never travel.
ObjectPlace object_place(const std::string& address);

}  // namespace tune
