// A program with a scheduler, a searcher and a callback of its own: all trials pause after each
// step, and the best half goes on; the configurations are a row of numbers; what the callback is
// told stands in the file "told".
#include <tune/tune.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

class Parabola : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override { x_ = config.get<double>("x"); }
  tune::Result step() override {
    if (const char* pause_ms = std::getenv("PAUSE_MS")) {
      usleep(1000 * static_cast<unsigned>(std::atoi(pause_ms)));
    }
    ++steps_;
    return {{"score", steps_ - (x_ - 0.25) * (x_ - 0.25)}, {"steps", steps_}};
  }
  void save(const std::filesystem::path& folder) override {
    std::ofstream(folder / "steps") << steps_;
  }
  void load(const std::filesystem::path& folder) override {
    std::ifstream(folder / "steps") >> steps_;
  }

 private:
  double x_ = 0;
  int steps_ = 0;
};

class HalveTogether : public tune::TrialScheduler {
 public:
  explicit HalveTogether(int max_steps) : max_steps_(max_steps) {}

  void configure(const tune::Objective& experiment) override { objective_ = experiment; }
  tune::Objective objective() const override { return objective_; }

  tune::Milestone add_trial(tune::TrialNumber trial) override {
    state_.running.push_back(trial);
    return {"training_iteration", 1};
  }

  tune::Decision result(tune::TrialNumber trial, const tune::ResultView& result) override {
    if (result.iteration() >= static_cast<std::uint64_t>(max_steps_)) {
      return tune::Decision::stop("it has done all steps");
    }
    std::erase(state_.running, trial);
    state_.paused.push_back({trial, result.iteration(), result.number(objective_.metric).value()});
    return tune::Decision::pause("it waits for the others");
  }

  std::optional<tune::TrialNumber> choose(const tune::Candidates& candidates) const override {
    for (const tune::Candidate& candidate : candidates.list()) {
      if (!candidate.paused) return candidate.trial;
    }
    if (!state_.chosen.empty()) return state_.chosen.front();
    if (!state_.running.empty() || state_.paused.empty()) return std::nullopt;
    return best_half().front();
  }

  tune::Milestone resume_trial(tune::TrialNumber trial) override {
    if (state_.chosen.empty()) {
      state_.chosen = best_half();
      state_.step = state_.paused.front().step + 1;
      state_.paused.clear();  // the others stay behind
    }
    std::erase(state_.chosen, trial);
    state_.running.push_back(trial);
    return {"training_iteration", static_cast<double>(state_.step)};
  }

  void end_trial(tune::TrialNumber trial, tune::TrialEnd, const tune::Reported*) override {
    std::erase(state_.running, trial);
    std::erase(state_.chosen, trial);
    std::erase_if(state_.paused, [&](const Paused& one) { return one.trial == trial; });
  }

  bool pauses() const override { return true; }
  std::vector<std::string> status_lines() const override { return {"Halving together"}; }
  std::string save() const override { return tune::encoded(state_); }
  void restore(std::string_view state) override { state_ = tune::decoded<State>(state); }

 private:
  struct Paused {
    tune::TrialNumber trial;
    std::uint64_t step = 0;
    double score = 0;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.trial, s.step, s.score);
    }
  };
  struct State {
    std::vector<tune::TrialNumber> running;
    std::vector<Paused> paused;
    std::vector<tune::TrialNumber> chosen;  // to go on, not resumed yet
    std::uint64_t step = 1;                 // that the running ones go up to
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.running, s.paused, s.chosen, s.step);
    }
  };

  std::vector<tune::TrialNumber> best_half() const {
    std::vector<Paused> waiting = state_.paused;
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const Paused& a, const Paused& b) { return a.score > b.score; });
    waiting.resize(std::max<std::size_t>(1, waiting.size() / 2));
    std::vector<tune::TrialNumber> best;
    for (const Paused& one : waiting) best.push_back(one.trial);
    return best;
  }

  int max_steps_;
  tune::Objective objective_;
  State state_;
};

class RowOfNumbers : public tune::Searcher {
 public:
  void configure(const tune::SearcherSetup& setup) override { left_ = setup.num_samples; }
  std::optional<std::uint64_t> total() const override { return left_; }
  std::optional<tune::Config> suggest(tune::TrialNumber trial) override {
    if (trial.value >= left_) return std::nullopt;
    return tune::Config{{"x", 0.2 * trial.value}};
  }
  std::string save() const override { return tune::encoded(left_); }
  void restore(std::string_view state) override { left_ = tune::decoded<std::uint64_t>(state); }

 private:
  std::uint64_t left_ = 0;
};

class Told : public tune::Callback {
 public:
  void trial_started(const tune::CallbackTrial& trial) override {
    tell("started " + std::to_string(trial.number));
  }
  void result(const tune::CallbackTrial& trial, const tune::Result& result) override {
    tell("result " + std::to_string(trial.number) + " " + result.at("steps").dump());
  }
  void checkpoint(const tune::CallbackTrial&, const std::filesystem::path&,
                  std::uint64_t) override {
    throw std::runtime_error("no checkpoints, please");
  }
  void trial_ended(const tune::CallbackTrial& trial, tune::TrialStatus) override {
    tell("ended " + std::to_string(trial.number));
  }
  void sweep_ended(const std::filesystem::path&) override { tell("over"); }

 private:
  static void tell(const std::string& line) {
    std::ofstream("told", std::ios::app) << line << std::endl;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const tune::Analysis analysis = tune::run<Parabola>(
      tune::options_from_args(argc, argv,
                              {
                                  .name = "own",
                                  .num_samples = 4,
                                  .metric = "score",
                                  .scheduler = tune::scheduler<HalveTogether>(4),
                                  .stop = {{"training_iteration", 9}},
                                  .seed = 1,
                                  .searcher = tune::searcher<RowOfNumbers>(),
                                  .callbacks = {std::make_shared<Told>()},
                              }));
  std::cout << analysis.best_config().dump() << "\n";
  for (const auto& trial : analysis.trials()) {
    std::cout << trial.last_result().get<int>("steps") << " ";
  }
  std::cout << "\n";
}
