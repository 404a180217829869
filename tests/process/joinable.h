// A sweep of real processes that listens on this host, and agents that join it.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {

// Of 8 steps a trial.
inline std::string joinable_sweep(int trials, int step_ms = 40, const std::string& rest = "") {
  return yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: " +
                         std::to_string(lasting(step_ms)) + "}",
               .num_samples = trials,
               .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 1}\n" + rest});
}

// A sweep that listens on this host, and agents that join it.
struct Joinable {
  explicit Joinable(const std::string& text, const std::string& cpus = "1",
                    const std::function<void(Sandbox&)>& prepare = {}) {
    if (prepare) prepare(box);
    box.write("sweep.yaml", text);
    run.reset(new Running(
        box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", cpus, "--listen", "lo"})));
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
    take_token();
  }
  void take_token() {
    const Finished token = box.tune({"token", "results/s"});
    INFO(token.err);
    REQUIRE(token.code == 0);
    box.set("TUNE_JOIN", lines_of(token.out).at(0));
  }
  std::unique_ptr<Running> agent(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"agent", "--cpus", "1"});
    return std::unique_ptr<Running>(new Running(box.start_tune(more)));
  }
  std::string nodes() const { return box.tune({"nodes", "results/s"}).out; }
  // Lines of `tune nodes` that hold this word.
  std::size_t count(const std::string& word) const {
    std::size_t found = 0;
    for (const std::string& line : lines_of(nodes())) found += testing::has(line, word);
    return found;
  }
  bool runs_a_trial(const Running& agent) const {
    return !box.processes("tune-worker").empty() && running_below(agent.pid()) > 0;
  }
  // Processes that this agent has started, but its zygote.
  std::size_t running_below(pid_t agent) const {
    std::size_t children = 0;
    for (const pid_t pid : box.processes("tune-worker")) {
      const std::string file = "/proc/" + std::to_string(pid) + "/stat";
      if (!std::filesystem::exists(file)) continue;
      const std::string stat = read_file(file);
      children += std::stoi(stat.substr(stat.rfind(')') + 4)) == agent;
    }
    return children > 1 ? children - 1 : 0;
  }
  Finished finish() {
    Finished finished = run->wait(std::chrono::seconds(100));
    INFO(finished.err);
    CHECK(finished.code == 0);
    return finished;
  }

  Sandbox box;
  std::unique_ptr<Running> run;
};

}  // namespace tune
