// tune::run: the front door of a program. Returns when every trial is over.
//
// Trials fork from the program as it stands at the call: data it loaded is shared, captured
// variables work. Where it cannot be forked (other threads, CUDA initialised) it is executed again
// for the trials, up to the same call; one warning says so. Call it from the main thread.
//
// Throws Error (kBadInput and others, see core/error.h), TrialError when all trials ended and some
// failed (unless raise_on_failed_trial is false), InterruptedError after SIGINT, SIGTERM or SIGHUP.
// Uncaught, the message is printed and the exit code is that of the command line.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "core/error.h"
#include "trainables/registry.h"
#include "tune/results/analysis.h"
#include "tune/spec/run_options.h"

namespace tune {

// The experiment was interrupted by a signal and can be resumed.
class InterruptedError : public Error {
 public:
  InterruptedError(int signal, const std::string& message)
      : Error(ErrorCode::kInterrupted, message), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

Analysis run_entry(TrainableEntry entry, RunOptions options);
// Sets up and loads a trainable from a checkpoint in this process.
void restore_trainable(Trainable& trainable, const Analysis& analysis);

template <class T>
  requires std::is_base_of_v<Trainable, T>
Analysis run(RunOptions options) {
  return run_entry(trainable_entry<T>(short_type_name(typeid(T))), std::move(options));
}

template <class F>
  requires std::is_invocable_v<F&, const Config&, Session&>
Analysis run(F function, RunOptions options) {
  return run_entry(function_entry("function", std::move(function)), std::move(options));
}

// For a trainable that says itself what its trials need.
Analysis run(SizedTrainable trainable, RunOptions options);

// The best trial's best checkpoint as a Trainable in this process, set up with the best
// configuration and loaded. Throws Error (kBadInput), naming the setting, when nothing was saved.
template <class T>
  requires std::is_base_of_v<Trainable, T>
std::unique_ptr<T> restore(const std::filesystem::path& directory) {
  auto trainable = std::make_unique<T>();
  restore_trainable(*trainable, Analysis::load(directory));
  return trainable;
}

// The number of GPUs within CUDA_VISIBLE_DEVICES, found without touching CUDA.
int gpu_count();

}  // namespace tune
