// Solitude: one rank of a group works alone for a while, and the others wait for it.
#pragma once

#include <functional>

namespace tune {

// While a Solitude lives, this process is alone; a second one within it changes nothing. Main
// thread only.
class Solitude {
 public:
  Solitude();
  ~Solitude();
  Solitude(const Solitude&) = delete;
  Solitude& operator=(const Solitude&) = delete;
};

// While it lives: hears when this process begins (true) and ceases (false) to be alone. For code
// that would otherwise wait for this rank too briefly. `told` must not throw. Main thread only.
class SolitudeListener {
 public:
  explicit SolitudeListener(std::function<void(bool begins)> told);
  ~SolitudeListener();
  SolitudeListener(const SolitudeListener&) = delete;
  SolitudeListener& operator=(const SolitudeListener&) = delete;

  void hear(bool begins) const { told_(begins); }

 private:
  std::function<void(bool)> told_;
};

}  // namespace tune
