#include "schedulers/pbt_replay.h"

#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/wire.h"
#include "schedulers/metric_scheduler.h"

namespace tune {

namespace {

constexpr const char* kTime = "training_iteration";

class PbtReplay : public TrialScheduler {
 public:
  explicit PbtReplay(std::vector<ScheduleStep> schedule) : schedule_(std::move(schedule)) {}

  void configure(const Objective& experiment) override { objective_ = experiment; }
  Objective objective() const override { return objective_; }
  bool takes_several_objectives() const override { return true; }  // it judges none

  Milestone add_trial(TrialNumber trial) override {
    if (next_.size() <= trial.value) next_.resize(trial.value + 1, first());
    return next_stop(trial);
  }
  Decision result(TrialNumber trial, const ResultView& result) override;
  Milestone resume_trial(TrialNumber trial) override {
    ++next_[trial.value];
    ++played_;
    return next_stop(trial);
  }
  std::optional<ResumedAs> resumed_as(TrialNumber trial) override;
  void end_trial(TrialNumber, TrialEnd, const Reported*) override {}
  bool pauses() const override { return true; }
  bool replaces() const override { return true; }
  std::vector<std::string> status_lines() const override {
    return {fmt::format("PopulationBasedTraining replay: {} steps, {} played", schedule_.size(),
                        played_)};
  }
  std::string save() const override {
    return encoded(State{kName, schedule_.size(), played_, next_});
  }
  void restore(std::string_view state) override;

 private:
  static constexpr const char* kName = "pbt_replay";
  struct State {
    std::string name;
    std::uint64_t steps = 0;
    std::uint64_t played = 0;
    std::vector<std::uint32_t> next;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.name, s.steps, s.played, s.next);
    }
  };

  std::uint32_t first() const { return schedule_.front().iteration == 0 ? 1 : 0; }
  Milestone next_stop(TrialNumber trial) const {
    const std::uint32_t next = next_[trial.value];
    if (next >= schedule_.size()) return {};
    return {kTime, static_cast<double>(schedule_[next].iteration)};
  }

  std::vector<ScheduleStep> schedule_;
  Objective objective_;
  std::vector<std::uint32_t> next_;  // step of each trial
  std::uint64_t played_ = 0;
};

Decision PbtReplay::result(TrialNumber trial, const ResultView& result) {
  const std::uint32_t next = next_[trial.value];
  if (next >= schedule_.size() || result.iteration() < schedule_[next].iteration) {
    return Decision::go_on(next_stop(trial));
  }
  return Decision::pause(fmt::format("step {} of the schedule comes at iteration {}", next + 1,
                                     schedule_[next].iteration));
}

// The step that resume_trial has just passed.
std::optional<ResumedAs> PbtReplay::resumed_as(TrialNumber trial) {
  const ScheduleStep& step = schedule_[next_[trial.value] - 1];
  return ResumedAs{{trial, step.config},
                   fmt::format("step {} of the schedule", next_[trial.value])};
}

void PbtReplay::restore(std::string_view bytes) {
  State state = decoded<State>(bytes);
  if (state.name != kName) refuse_scheduler_state(kName, "it was saved by another scheduler");
  if (state.steps != schedule_.size()) {
    refuse_scheduler_state(kName, "it was saved with another schedule");
  }
  for (const std::uint32_t next : state.next) {
    if (next > schedule_.size()) refuse_scheduler_state(kName, "a step is not in the schedule");
  }
  played_ = state.played;
  next_ = std::move(state.next);
}

[[noreturn]] void refuse_schedule(const std::string& why) {
  throw Error(ErrorCode::kBadInput, "scheduler pbt_replay: schedule: " + why);
}

}  // namespace

SchedulerSpec pbt_replay(PbtReplayOptions options) {
  if (options.schedule.empty())
    refuse_schedule("it has no step: `tune schedule DIR TRIAL` prints one");
  Value::List steps;
  for (std::size_t i = 0; i < options.schedule.size(); ++i) {
    const ScheduleStep& step = options.schedule[i];
    if (i > 0 && step.iteration <= options.schedule[i - 1].iteration) {
      refuse_schedule(fmt::format("step {} is at iteration {}, not after the one before, at {}",
                                  i + 1, step.iteration, options.schedule[i - 1].iteration));
    }
    steps.push_back(Value{{"iteration", step.iteration}, {"config", step.config}});
  }
  const Config parameters{{"schedule", Value::make_list(std::move(steps))}};
  return SchedulerSpec("pbt_replay", parameters, [schedule = std::move(options.schedule)] {
    return std::make_unique<PbtReplay>(schedule);
  });
}

SchedulerSpec pbt_replay_from_config(const Config& parameters) {
  PbtReplayOptions options;
  const Value* steps = parameters.find("schedule");
  if (steps != nullptr && !steps->is_list()) {
    refuse_schedule("expected a list, as in [{iteration: 0, config: {lr: 0.1}}]");
  }
  if (steps == nullptr) return pbt_replay(options);
  for (const Value& step : steps->list()) {
    if (!step.is_map() || step.map().size() != 2 || !step.contains("iteration") ||
        !step.contains("config")) {
      refuse_schedule(fmt::format("step {} is {}: expected {{iteration: 4, config: {{lr: 0.1}}}}",
                                  options.schedule.size() + 1, step.dump()));
    }
    options.schedule.push_back({step.get<std::uint64_t>("iteration"), step.get<Config>("config")});
  }
  return pbt_replay(std::move(options));
}

}  // namespace tune
