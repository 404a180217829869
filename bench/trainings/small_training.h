// What the small trainings have in common: weights with the state of their optimizer, random draws,
// and a checkpoint of all of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "trainables/registry.h"
#include "trainables/trainable.h"

namespace tune::bench {

class SmallTraining : public Trainable {
 public:
  void save(const std::filesystem::path& directory) override {
    std::ofstream out(directory / "state");
    out << std::hexfloat << steps_ << ' ' << weights_.size();
    for (const std::vector<double>* values : {&weights_, &first_, &second_}) {
      for (const double value : *values) out << ' ' << value;
    }
    out << ' ' << random_;
    out.exceptions(std::ios::failbit | std::ios::badbit);
    out.flush();
  }
  void load(const std::filesystem::path& directory) override {
    std::ifstream in(directory / "state");
    in.exceptions(std::ios::failbit | std::ios::badbit);
    std::size_t count = 0;
    in >> steps_ >> count;
    resize(count);
    std::string text;  // as streams do not read hexfloat
    for (std::vector<double>* values : {&weights_, &first_, &second_}) {
      for (double& value : *values) {
        in >> text;
        value = std::stod(text);
      }
    }
    in >> random_;
  }

 protected:
  void resize(std::size_t count) {
    weights_.assign(count, 0);
    first_.assign(count, 0);
    second_.assign(count, 0);
  }
  std::size_t any_of(std::size_t count) { return random_() % count; }

  std::uint64_t steps_ = 0;
  std::vector<double> weights_;
  std::vector<double> first_;   // momentum
  std::vector<double> second_;  // mean squares of gradients, if the optimizer has them
  std::mt19937 random_{1};
};

}  // namespace tune::bench
