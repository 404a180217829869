// The READMEs' C++ blocks that need LibTorch, with what their readers have of their own.
#include <tune/torch.h>
#include <tune/tune.h>

#include <memory>

namespace {

struct ConvNetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return x; }
};
TORCH_MODULE(ConvNet);

class WritingATrainable : public tune::Trainable {
  tune::Result step() override { return {}; }
  void setup(const tune::Config&) override {
#include "trainables/torch/opening_1.inc"
  }
};

class SeveralRanks : public tune::Trainable {
  void setup(const tune::Config&) override {}
  tune::Result step() override {
    ConvNet net;
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    const torch::Tensor x, y;
#include "trainables/torch/several_ranks_1.inc"
    return {};
  }
};

class ModelsFromPython : public tune::TrainingOperator {
  void setup(const tune::Config&) override {
#include "trainables/torch/models_from_python_1.inc"
  }
};

torch::Tensor compiled_model(const tune::Analysis& analysis, const torch::Tensor& x) {
#include "trainables/torch/models_from_python_2.inc"
  return output;
}

void torch_trainer() {
  static std::shared_ptr<tune::Dataset> images, others;
#include "trainables/torch/torchtrainer_1.inc"
}

}  // namespace

// So that they count as used.
void readme_torch_snippets() {
  tune::restore<WritingATrainable>("");
  tune::restore<SeveralRanks>("");
  torch_trainer();
  tune::TorchTrainer<ModelsFromPython>::as_trainable();
  compiled_model(tune::Analysis::load(""), {});
}
