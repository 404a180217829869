// Follower: an experiment's folder as loggers follow it, while it runs and afterwards: its trials,
// their results line by line, their ends. Reads only, takes no lock, and never speaks to the
// driver: the folder is the queue between them, so that a slow logger slows nobody. One thread uses
// it at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tune/results/tail.h"
#include "tune/results/trial_stories.h"

namespace tune {

struct FollowedTrial {
  std::uint32_t number = 0;
  std::string id;
  std::filesystem::path directory;
  TrialStory story = {};
  std::uint64_t iterations = 0;  // lines of result.json that were told
};

// The reader of what is followed. The calls for one trial come in order.
class FolderListener {
 public:
  virtual ~FolderListener() = default;
  // `line` is a JSON object; the results of a trial are told from its first one on. After a restore
  // they are told again from there, also those that have not changed; `where` names the file.
  virtual void result(const FollowedTrial& trial, std::string_view line,
                      const std::string& where) = 0;
  // After the newest results, and when the story has changed.
  virtual void trial_is_read(const FollowedTrial& trial) = 0;
};

class Follower {
 public:
  explicit Follower(std::filesystem::path experiment) : experiment_(std::move(experiment)) {}

  // Tells what is new; whether something was. Returns early when `ends` says so, between two
  // trials. A trial whose results are damaged (Error kBadInput, of the file or of the listener) is
  // told up to there, and stands in problems(). Throws Error (kIo) when a file cannot be read, and
  // what else the listener throws.
  bool poll(FolderListener& listener, const std::function<bool()>& ends);

  const std::vector<std::string>& problems() const { return problems_; }  // the first few

 private:
  struct Followed {
    TailSeen results;
    std::uint64_t iterations = 0;
    int looks_left = 0;  // of a trial that does not run
    bool is_damaged = false;
  };
  void list_trials();
  bool read_events();
  void take_event(std::string_view line);
  bool read_trial(std::uint32_t number, FolderListener& listener);
  bool read_results(Followed& followed, FollowedTrial& trial, FolderListener& listener);
  void complain(const std::string& what);

  std::filesystem::path experiment_;
  std::string id_prefix_;  // "2f1e0_"
  TailSeen events_;
  TrialStories stories_;
  std::map<std::uint32_t, Followed> trials_;
  std::set<std::uint32_t> due_;  // to be read
  bool is_listed_ = false;
  std::vector<std::string> problems_;
};

}  // namespace tune
