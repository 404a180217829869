// ImportanceReader: the importance of one experiment's parameters, found again and again while the
// experiment grows. A trial's files are read when it is new or has changed, not each time: of a
// hundred thousand trials they take seconds. It keeps about 300 bytes a trial.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/trial.h"
#include "tune/results/importance.h"
#include "tune/results/ranked_trial.h"

namespace tune {

class ImportanceReader {
 public:
  // The caller's knowledge of a trial; another `change` means that its files have changed.
  struct Known {
    std::uint32_t number = 0;
    std::uint64_t change = 0;
    TrialStatus status = TrialStatus::kPending;
    bool was_cut_short = false;  // TrialStory's
  };
  struct Question {
    std::filesystem::path directory;
    std::string id_prefix;  // of the trials' folders: "2f1e0_"
    std::string metric;
    Mode mode = Mode::kMax;
    bool has_replaced = false;  // trials that go on with another configuration
    std::vector<Known> trials;
  };

  // The numbers of Analysis::importance. Throws Error (kBadInput), saying why, as that does. A
  // reader is for one experiment and metric.
  Importance find(const Question& question);
  std::size_t trials_read() const { return trials_read_; }  // ever

 private:
  struct Kept {
    std::uint64_t change = 0;
    RankedTrial trial;
  };

  std::optional<Encoding> encoding_;
  std::map<std::uint32_t, Kept> kept_;
  std::size_t trials_read_ = 0;
};

}  // namespace tune
