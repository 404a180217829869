// Trains a ResNet-18 with data augmentation, batch normalisation over all ranks, mixed precision
// and a warm-up of the learning rate, on all GPUs there are, else with two workers on CPUs.
//
//   resnet18 [key=value]...       such as: resnet18 epochs=5 images=/data/flowers
//
//   images      fashion_mnist, generated, or a folder with `train` and `val`, each with a folder of
//               images for each class; by default fashion_mnist
//   samples     2048    images of Fashion-MNIST, or generated ones, to train with
//   epochs      2
//   width       16      of the first stage; 64 is the one of the paper
//   batch_size  32      of each worker
//   lr          0.1     for 256 samples a step, scaled to those there are
//   fp16                mixed precision; true where there are GPUs
//   workers             one a GPU, or 2
#include <tune/torch.h>
#include <tune/tune.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fashion_mnist_tensors.h"
#include "resnet.h"

namespace {

namespace fs = std::filesystem;
namespace transforms = tune::transforms;

// Images that can be learnt: each class has a pattern of its own, seen through noise.
LabelledImages generated_images(std::size_t count, std::uint64_t seed) {
  constexpr std::size_t kSide = LabelledImages::kSide;
  constexpr std::size_t kPatch = 4;  // pixels of one grey
  LabelledImages images;
  for (std::size_t i = 0; i < count; ++i) {
    tune::RandomStream noise(seed, "generated image", i);
    const std::int64_t label = noise.integer(0, 10);
    tune::RandomStream pattern(0, "pattern", static_cast<std::uint64_t>(label));
    double greys[kSide / kPatch][kSide / kPatch];
    for (auto& row : greys) {
      for (double& grey : row) grey = 255 * pattern.uniform();
    }
    for (std::size_t pixel = 0; pixel < kSide * kSide; ++pixel) {
      const double grey = greys[pixel / kSide / kPatch][pixel % kSide / kPatch];
      images.pixels.push_back(
          static_cast<std::uint8_t>(std::clamp(grey + 64 * noise.normal(), 0.0, 255.0)));
    }
    images.labels.push_back(static_cast<std::uint8_t>(label));
  }
  return images;
}

// Grey images in memory, each transformed when it is asked for.
class GreyImages : public tune::Dataset {
 public:
  GreyImages(const LabelledImages& images, tune::ImageTransform transform, std::uint64_t seed = 0)
      : images_(to_tensors(images)), transform_(std::move(transform)), seed_(seed) {}

  std::int64_t size() const override { return images_.size(); }
  void set_epoch(std::int64_t epoch) override { epoch_ = epoch; }
  tune::Batch get(std::int64_t index) const override {
    tune::RandomStream random(seed_ + static_cast<std::uint64_t>(epoch_), "augmentation",
                              static_cast<std::uint64_t>(index));
    return {transform_(images_.data[index], random), images_.target[index]};
  }

 private:
  tune::Batch images_;
  tune::ImageTransform transform_;
  std::uint64_t seed_;
  std::int64_t epoch_ = 0;
};

class ResNetOperator : public tune::TrainingOperator {
 public:
  void setup(const tune::Config& config) override {
    tune::DataParts data{
        .batch_size = config.get<std::int64_t>("batch_size"), .drop_last = true, .workers = 1};
    ResNetOptions options{.classes = 10, .width = config.get<std::int64_t>("width")};
    options.norm = norm_layer_2d();
    const auto images = config.get<std::string>("images");
    if (images == "fashion_mnist" || images == "generated") {
      add_small_images(data, config, images == "generated");
      options.channels = 1;
      options.small_images = true;
    } else {
      options.classes = add_folders(data, images);
    }
    ResNet18 net(options);
    const auto samples_a_step = static_cast<double>(data.batch_size * world_size());
    auto optimizer = std::make_shared<torch::optim::SGD>(
        net->parameters(), torch::optim::SGDOptions(config.get<double>("lr"))
                               .momentum(0.9)
                               .weight_decay(5e-4)
                               .nesterov(true));
    const auto epochs = config.get<std::int64_t>("epochs");
    const std::int64_t steps = data.train->size() / static_cast<std::int64_t>(samples_a_step);
    register_training(
        {.models = {net},
         .optimizers = {optimizer},
         .schedulers = {tune::warm_up(std::max<std::int64_t>(1, steps), 0.1,
                                      tune::cosine(std::max<std::int64_t>(1, epochs * steps)))},
         .criterion = torch::nn::CrossEntropyLoss(),
         .scheduler_step = tune::SchedulerStep::kBatch,
         .lr_scaling = tune::LearningRateScaling::by(samples_a_step / 256)});
    register_data(data);
  }

 private:
  // Gives the number of classes.
  static std::int64_t add_folders(tune::DataParts& data, const fs::path& root) {
    const auto normalize = transforms::normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
    auto train = std::make_shared<tune::ImageFolder>(
        root / "train", transforms::compose({transforms::random_resized_crop(224),
                                             transforms::random_horizontal_flip(),
                                             transforms::to_tensor(), normalize}));
    data.validation = std::make_shared<tune::ImageFolder>(
        root / "val", transforms::compose({transforms::resize(256), transforms::center_crop(224),
                                           transforms::to_tensor(), normalize}));
    const auto classes = static_cast<std::int64_t>(train->classes().size());
    data.train = std::move(train);
    return classes;
  }

  static void add_small_images(tune::DataParts& data, const tune::Config& config, bool generated) {
    const auto samples = config.get<std::size_t>("samples");
    const std::size_t others = std::max<std::size_t>(1, samples / 4);
    const auto plain =
        transforms::compose({transforms::to_tensor(), transforms::normalize({0.286}, {0.353})});
    const auto augmented = generated
                               ? transforms::compose({transforms::random_crop(28, 2), plain})
                               : transforms::compose({transforms::random_crop(28, 2),
                                                      transforms::random_horizontal_flip(), plain});
    data.train = std::make_shared<GreyImages>(
        generated ? generated_images(samples, 1) : fashion_mnist_training(samples), augmented);
    data.validation = std::make_shared<GreyImages>(
        generated ? generated_images(others, 2) : fashion_mnist_test(others), plain);
  }
};

tune::Error bad_input(const std::string& word, const std::string& wanted) {
  return {tune::ErrorCode::kBadInput, word + ": " + wanted + " is wanted"};
}

template <class Number>
Number parse_number(const std::string& word, std::string_view text, const char* wanted) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) throw bad_input(word, wanted);
  return number;
}

// The value behind key= in `word`, of the type of the key's default.
tune::Value parse_value(const std::string& word, std::string_view text, tune::Value::Type type) {
  switch (type) {
    case tune::Value::Type::kBool:
      if (text != "true" && text != "false") throw bad_input(word, "true or false");
      return text == "true";
    case tune::Value::Type::kInt:
      return parse_number<std::int64_t>(word, text, "an integer");
    case tune::Value::Type::kFloat:
      return parse_number<double>(word, text, "a number");
    default:
      return text;
  }
}

tune::Config parse(int argc, char** argv, int gpus) {
  tune::Config config = {{"images", "fashion_mnist"},
                         {"samples", 2048},
                         {"epochs", 2},
                         {"width", 16},
                         {"batch_size", 32},
                         {"lr", 0.1},
                         {"fp16", gpus > 0},
                         {"workers", gpus > 0 ? gpus : 2}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = std::min(word.find('='), word.size());
    const tune::Value* preset = equals == 0 ? nullptr : config.find(word.substr(0, equals));
    if (equals == word.size() || preset == nullptr) {
      throw bad_input(word, "key=value with a key that the top of resnet18.cc names");
    }
    config.set(word.substr(0, equals), parse_value(word, word.substr(equals + 1), preset->type()));
  }
  return config;
}

}  // namespace

int main(int argc, char** argv) try {
  const int gpus = tune::gpu_count();
  const tune::Config config = parse(argc, argv, gpus);
  tune::TorchTrainer<ResNetOperator> trainer({.num_workers = config.get<int>("workers"),
                                              .use_gpu = gpus > 0,
                                              .use_fp16 = config.get<bool>("fp16"),
                                              .config = config});
  const auto epochs = config.get<std::int64_t>("epochs");
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    std::cout << trainer.train().dump() << "\n" << trainer.validate().dump() << std::endl;
  }
  trainer.save("resnet18_model");
} catch (const tune::Error& error) {
  std::cerr << "error: " << error.what() << "\n";
  return tune::exit_code(error.code());
}
