// YAML of the sweeps that process tests run.
#pragma once

#include <string>

namespace tune {

struct SweepText {
  std::string trainable = "Curve";
  std::string config = "{lr: {loguniform: [1e-3, 1.0]}}";
  int num_samples = 4;
  std::string rest = "stop: {training_iteration: 3}\n";
  std::string metric = "mean_accuracy";
  std::string plugin = TUNE_SYNTHETIC_PLUGIN;
};

// Of a step that other programs are to meet: under a sanitizer they take longer to start.
inline constexpr int lasting(int milliseconds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 4 * milliseconds;
#else
  return milliseconds;
#endif
}

// Without a searcher in `rest`, the configurations are the same whatever the order of results.
inline std::string yaml(const SweepText& text) {
  const bool has_searcher = text.rest.find("searcher:") != std::string::npos;
  return "plugin: " + text.plugin + "\ntrainable: " + text.trainable + "\nconfig: " + text.config +
         "\nnum_samples: " + std::to_string(text.num_samples) + "\nmetric: " + text.metric +
         "\nseed: 5\n" + text.rest + (has_searcher ? "" : "searcher: basic_variant\n");
}

}  // namespace tune
