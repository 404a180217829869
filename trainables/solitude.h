// Solitude: one rank of a group works alone for a while, and the others wait for it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <thread>

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

// While it lives: knows whether another rank of this process's group is alone. For those that wait
// for ranks which they cannot hear, as no group stands yet. `sees` must not block.
class SolitudeWitness {
 public:
  explicit SolitudeWitness(std::function<bool()> sees);
  ~SolitudeWitness();
  SolitudeWitness(const SolitudeWitness&) = delete;
  SolitudeWitness& operator=(const SolitudeWitness&) = delete;

 private:
  friend std::optional<bool> is_another_alone();
  std::function<bool()> sees_;
  const SolitudeWitness* former_;
  pid_t process_;
  std::thread::id thread_;
};

// The sight of the newest witness. Nothing: there is none, or it is of another thread or process.
std::optional<bool> is_another_alone();

}  // namespace tune
