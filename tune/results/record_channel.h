// RecordChannel: the one way on which records leave the controller. Each goes to every listener, in
// the order in which they were added: to keepers (files, the memory for results.csv), whose states
// are in the journal's snapshots, and to watchers (the console).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/results/logger.h"

namespace tune {

class RecordChannel : public Logger {
 public:
  // A keeper is told every record, on a resume again. A snapshot knows keepers by their place:
  // later versions of tune add theirs at the end.
  void add_keeper(Logger& keeper) { keepers_.push_back(&keeper); }
  // A watcher is told new records only.
  using Watcher = std::function<void(const Record&)>;
  void add_watcher(Watcher watcher) { watchers_.push_back(std::move(watcher)); }

  void record(const Record& record, const Telling& telling) override;
  void flush() override;
  // The future may be deferred: get() waits for every keeper.
  std::future<std::string> save() override;
  void restore(std::string_view state) override;

 private:
  std::vector<Logger*> keepers_;
  std::vector<Watcher> watchers_;
};

}  // namespace tune
