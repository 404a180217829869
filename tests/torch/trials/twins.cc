// A program whose trials are two ranks that train one model. Each rank notes a hash of its weights
// after every load and every step: ranks must have the same, and so must a trial that was paused,
// killed or resumed and one that ran through.
//
//   TWINS_TAKE_TURNS   set: a scheduler pauses each trial after every second step
//
// Configuration:
//   lr         learning rate
//   step_ms    0      how long a step takes at least
//   kill_rank  -1     this rank is killed in step 4 of the first attempt
//   alone_rank -1     this rank is alone in setup for alone_ms, before it forms the group
//   alone_ms   0
//   mistake    none   of rank 1: "wider" (its model differs), "skips" (a collective in step 2)
#include <tune/torch.h>
#include <tune/tune.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;

constexpr int kBatchesPerStep = 3;

// FNV-1a over the bytes of all parameters.
std::uint64_t hash_of(const nn::Module& model) {
  std::uint64_t hash = 14695981039346656037u;
  for (const torch::Tensor& parameter : model.parameters()) {
    const torch::Tensor values = parameter.detach().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(values.const_data_ptr());
    for (std::size_t i = 0; i < values.nbytes(); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  }
  return hash;
}

nn::Sequential network(int width, std::uint64_t seed) {
  torch::manual_seed(seed);
  nn::Linear first(8, width);
  return nn::Sequential(first, nn::ReLU(), nn::Linear(width, 1));
}

struct Training {
  Training(double lr, int width, std::uint64_t seed, tune::ProcessGroup ranks)
      : group(std::move(ranks)),
        net(network(width, seed)),
        model(net, group),
        optimizer(net->parameters(), torch::optim::SGDOptions(lr).momentum(0.9)) {}

  // The loss of this rank's rows of a batch that all ranks know.
  double learn(std::uint64_t batch) {
    const auto generator = torch::make_generator<at::CPUGeneratorImpl>(batch);
    const torch::Tensor x =
        torch::randn({16, 8}, generator).slice(0, group.rank(), {}, group.size());
    const torch::Tensor loss = torch::mse_loss(model.forward(x), x.sum(1, true));
    model.zero_grad();
    model.backward(loss);
    optimizer.step();
    return loss.item<double>();
  }

  tune::ProcessGroup group;
  nn::Sequential net;
  tune::DistributedDataParallel<nn::SequentialImpl> model;
  torch::optim::SGD optimizer;
};

class Twins : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    tune::set_threads(context().cpus());
    step_time_ = std::chrono::milliseconds(config.get_or("step_ms", 0));
    kill_rank_ = config.get_or("kill_rank", -1);
    if (config.get_or("alone_rank", -1) == context().rank()) {
      const std::chrono::milliseconds time(config.get_or("alone_ms", 0));
      context().alone([&] { std::this_thread::sleep_for(time); });
    }
    if (context().rank() == 1) mistake_ = config.get_or<std::string>("mistake", "none");
    // Other weights on each rank: it is for DDP to make them equal.
    const std::uint64_t seed = context().seed() + static_cast<std::uint64_t>(context().rank());
    training_ =
        std::make_unique<Training>(config.get<double>("lr"), mistake_ == "wider" ? 17 : 16, seed,
                                   tune::ProcessGroup(tune::Rendezvous::from_environment()));
    std::ofstream(file("pid-")) << ::getpid();
  }

  tune::Result step() override {
    const std::uint64_t number = context().iteration() + 1;
    std::this_thread::sleep_for(step_time_);
    if (number == 4 && context().attempt() == 1 && kill_rank_ == context().rank()) {
      std::raise(SIGKILL);
    }
    double loss = 0;
    for (int i = 0; i < kBatchesPerStep; ++i) {
      if (mistake_ == "skips" && number == 2 && i == 1) continue;
      loss += training_->learn(number * kBatchesPerStep + static_cast<std::uint64_t>(i));
    }
    note("step", number);
    return {{"loss", loss}};
  }

  void save(const fs::path& directory) override {
    if (context().rank() != 0) return;
    tune::save_checkpoint(directory, *training_->net, training_->optimizer);
  }
  void load(const fs::path& directory) override {
    tune::load_checkpoint(directory, *training_->net, training_->optimizer);
    note("load", context().iteration());
  }

 private:
  void note(const char* what, std::uint64_t iteration) const {
    std::ofstream(file("hashes-"), std::ios::app)
        << what << ' ' << iteration << ' ' << hash_of(*training_->net) << std::endl;
  }
  fs::path file(const std::string& name) const {
    return context().trial_directory() / (name + std::to_string(context().rank()));
  }

  std::chrono::milliseconds step_time_{};
  int kill_rank_ = -1;
  std::string mistake_ = "none";
  std::unique_ptr<Training> training_;
};

// Everybody pauses after every second step.
class InTurns : public tune::TrialScheduler {
 public:
  void configure(const tune::Objective& experiment) override { objective_ = experiment; }
  tune::Objective objective() const override { return objective_; }
  tune::Milestone add_trial(tune::TrialNumber trial) override { return turn_of(trial); }
  tune::Decision result(tune::TrialNumber trial, const tune::ResultView& result) override {
    const tune::Milestone turn = turn_of(trial);
    const std::uint64_t iteration = result.iteration();
    if (static_cast<double>(iteration) < turn.value) return tune::Decision::go_on(turn);
    at_[std::to_string(trial.value)] = iteration;
    return tune::Decision::pause("it is the others' turn");
  }
  tune::Milestone resume_trial(tune::TrialNumber trial) override { return turn_of(trial); }
  void end_trial(tune::TrialNumber, tune::TrialEnd, const tune::Reported*) override {}
  bool pauses() const override { return true; }
  std::vector<std::string> status_lines() const override { return {"In turns"}; }
  std::string save() const override { return tune::encoded(at_); }
  void restore(std::string_view state) override { at_ = tune::decoded<decltype(at_)>(state); }

 private:
  tune::Milestone turn_of(tune::TrialNumber trial) {
    return {"training_iteration", static_cast<double>(at_[std::to_string(trial.value)]) + 2};
  }

  tune::Objective objective_;
  std::map<std::string, std::uint64_t> at_;  // by trial: either may go on first
};

}  // namespace

int main(int argc, char** argv) {
  tune::RunOptions defaults{
      .name = "s",
      .config = {{"lr", tune::grid_search({0.01, 0.02})}},
      .metric = "loss",
      .mode = tune::Mode::kMin,
      .stop = {{"training_iteration", 8}},
      .resources_per_trial = {.cpu = 2, .ranks = 2},
      .seed = 1,
      .cpus = 4,
  };
  if (std::getenv("TWINS_TAKE_TURNS") != nullptr) defaults.scheduler = tune::scheduler<InTurns>();
  const auto analysis = tune::run<Twins>(tune::options_from_args(argc, argv, defaults));
  return analysis.trials().empty() ? 1 : 0;
}
