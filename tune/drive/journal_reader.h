// JournalReader: the journal of an experiment's folder for those who only look. While a driver runs
// it is read in the driver's store; else a server of its own reads a copy. Looking takes no lock
// and writes nothing into the folder, so whoever may read it may look.
#pragma once

#include <filesystem>
#include <memory>

#include "core/platform/redis_server.h"
#include "core/platform/redis_store.h"
#include "core/platform/runtime_directory.h"
#include "tune/results/experiment_folder.h"

namespace tune {

class JournalReader {
 public:
  enum class From {
    kDriver,  // its store, while it runs
    kCopy,    // unless the store is not private
  };
  // Throws Error (kBadInput) when the experiment has not begun, or its scheduler, searcher or
  // functions are a program's own, without which a journal cannot be understood; Error (kStore,
  // kIo) when its store cannot be read, that of a driver that runs for 30 s.
  explicit JournalReader(const std::filesystem::path& directory, From from = From::kDriver);

  Store& store() { return *store_; }
  const RunRecord& record() const { return record_; }

 private:
  void connect(const std::filesystem::path& directory, bool is_private);
  void read_copy(const std::filesystem::path& directory);

  RunRecord record_;
  std::unique_ptr<RuntimeDirectory> runtime_;
  std::unique_ptr<RedisServer> server_;
  std::unique_ptr<RedisStore> store_;
};

}  // namespace tune
