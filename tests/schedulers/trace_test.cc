// Schedulers against traces of other tools' (tests/data/schedulers/make_traces.py writes them).
#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "schedulers/asha.h"
#include "tune/testing/reports.h"

using namespace tune;
using namespace tune::testing;

namespace {

const std::string kTraces = TUNE_SOURCE_DIR "/tests/data/schedulers/";

// The words of a line.
class Words {
 public:
  explicit Words(const std::string& line) : in_(line) {}
  template <class T>
  T next() {
    T value{};
    in_ >> value;
    REQUIRE(!in_.fail());
    return value;
  }

 private:
  std::istringstream in_;
};

const char* word(Decision::Kind kind) {
  const char* words[] = {"continue", "pause", "stop"};
  return words[static_cast<int>(kind)];
}

// The scheduler with the trials that wait, asked what the trace was asked.
class Replayed {
 public:
  Replayed(const SchedulerSpec& spec, Mode mode) : scheduler_(spec.make()) {
    scheduler_->configure({"m", mode, 1});
  }

  // A place is free: its best use, as far as the trace has new trials.
  void launch(std::uint32_t trial, double until) {
    if (trial == added_) {
      scheduler_->add_trial({added_++});
      pending_.insert({trial});
    }
    const auto chosen = scheduler_->choose({pending_, paused_, true});
    REQUIRE(chosen == TrialNumber{trial});
    if (paused_.erase({trial}) > 0) CHECK(scheduler_->resume_trial({trial}).value == until);
    pending_.erase({trial});
    ++launches_;
  }
  void report(std::uint32_t trial, std::uint64_t time, double value, const std::string& expected) {
    const Reported reported = testing::report(trial, time, value);
    const Decision decision = scheduler_->result({trial}, reported);
    REQUIRE(std::string(word(decision.kind)) == expected);
    if (decision.kind == Decision::Kind::kPause) paused_.insert({trial});
    if (decision.kind == Decision::Kind::kStop) {
      scheduler_->end_trial({trial}, TrialEnd::kStopped, &reported);
    }
  }
  // Where the trace leaves a place free, or has no new trial.
  void none_may_go_on() const {
    if (paused_.empty()) return;
    CHECK_FALSE(scheduler_->choose({pending_, paused_, true}).has_value());
  }
  std::size_t launches() const { return launches_; }

 private:
  std::unique_ptr<TrialScheduler> scheduler_;
  std::set<TrialNumber> pending_, paused_;
  std::uint32_t added_ = 0;
  std::size_t launches_ = 0;
};

}  // namespace

TEST_CASE("promotion decides as Syne Tune's does with the paper's cut-off") {
  std::ifstream file(kTraces + "syne_tune_promotion.txt");
  REQUIRE(file.good());
  std::unique_ptr<Replayed> replayed;
  std::size_t launches = 0;
  for (std::string line; std::getline(file, line);) {
    CAPTURE(line);
    Words words(line);
    const auto what = words.next<std::string>();
    if (what == "sweep") {
      if (replayed) replayed->none_may_go_on();
      AshaOptions options{.type = AshaType::kPromote};
      options.reduction_factor = words.next<double>();
      options.max_t = words.next<double>();
      const bool is_max = words.next<std::string>() == "max";
      replayed = std::make_unique<Replayed>(asha(options), is_max ? Mode::kMax : Mode::kMin);
    } else if (what == "launch") {
      const auto trial = words.next<std::uint32_t>();
      replayed->launch(trial, words.next<double>());
      ++launches;
    } else {
      const auto trial = words.next<std::uint32_t>();
      const auto time = words.next<std::uint64_t>();
      const auto value = words.next<double>();
      replayed->report(trial, time, value, words.next<std::string>());
    }
  }
  replayed->none_may_go_on();
  CHECK(launches > 300);
}
